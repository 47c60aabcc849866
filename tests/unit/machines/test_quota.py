"""The rate meter, in virtual time."""

import random

import pytest

from barnabas.machines.quota import RateMeter


def meter() -> RateMeter:
    return RateMeter(11, 1000)


def test_nothing_recorded_is_no_rate() -> None:
    assert meter().per_second(5000) == 0 and meter().wait_ms(1, 5000) == 0


def test_the_first_window_counts_in_full() -> None:
    rate = meter()
    rate.record(500, 10)
    assert rate.per_second(10) == 500, "not 500 bytes in no time"
    assert rate.per_second(1010) == 500
    assert rate.per_second(2010) == 250


def test_a_burst_is_paid_for() -> None:
    rate = meter()
    rate.record(3000, 0)
    assert rate.wait_ms(1000, 0) == 3000
    assert rate.wait_ms(1000, 1200) == 1800
    assert rate.per_second(2999) > 1000 >= rate.per_second(3000)


def test_old_windows_are_forgotten() -> None:
    rate = meter()
    rate.record(1_000_000, 0)
    rate.record(10, 2000)
    assert rate.per_second(10_999) > 90_000
    assert rate.per_second(11_000) == pytest.approx(10 / 9)
    assert rate.per_second(13_000) == 0


def test_a_limit_of_nothing_waits_until_all_is_forgotten() -> None:
    rate = meter()
    rate.record(1, 0)
    rate.record(1, 1500)
    assert rate.wait_ms(0, 2000) == 1500 + 11_000 - 2000


def test_windows_do_not_pile_up() -> None:
    rate = meter()
    for now_ms in range(0, 100_000, 100):
        rate.record(10, now_ms)
    assert len(rate._windows) <= 12
    assert rate.per_second(100_000) == pytest.approx(100, rel=0.02)


@pytest.mark.parametrize("seed", range(30))
def test_the_wait_is_exact(seed: int) -> None:
    """One millisecond before, the rate is exceeded; at the end of the wait it is not."""
    chance = random.Random(seed)
    rate, now_ms, waited = RateMeter(chance.randint(1, 12), chance.choice((100, 1000))), 0, 0
    for _ in range(60):
        now_ms += chance.choice((0, 1, 30, 400, 2500))
        rate.record(chance.randint(0, 5000), now_ms)
        limit = chance.choice((0, 1, 700, 4000))
        wait_ms = rate.wait_ms(limit, now_ms)
        if wait_ms == 0:
            assert rate.per_second(now_ms) <= limit
            continue
        waited += 1
        # Asked of copies, since windows are forgotten when a later time is passed.
        for at_ms in (now_ms, now_ms + wait_ms // 2, now_ms + wait_ms - 1):
            assert copy_of(rate).per_second(at_ms) > limit
        assert copy_of(rate).per_second(now_ms + wait_ms) <= limit
    assert waited


def copy_of(rate: RateMeter) -> RateMeter:
    copy = RateMeter(rate._window_count, rate._window_ms)
    copy._windows, copy._total = rate._windows.copy(), rate._total
    return copy
