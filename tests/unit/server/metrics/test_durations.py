from barnabas.server.metrics.durations import BOUNDS, WINDOW_MS, Durations, quantiles_ms, sum_of


def test_a_quantile_is_within_a_quarter_of_the_truth() -> None:
    durations = Durations()
    for milliseconds in range(1, 101):
        durations.add(milliseconds * 1_000_000)
    half, most = quantiles_ms(durations.recent(0), (0.5, 0.99))
    assert 50 <= half <= 50 * 1.26
    assert 99 <= most <= 99 * 1.26
    assert durations.count == 100
    assert durations.total_ns == sum(range(1, 101)) * 1_000_000


def test_requests_that_did_not_wait_count_as_zero() -> None:
    durations = Durations()
    durations.add(10_000_000)
    assert quantiles_ms(durations.recent(0), (0.5, 0.999), zeros=9)[0] == 0
    assert quantiles_ms(durations.recent(0), (0.999,), zeros=9)[0] >= 10


def test_nothing_observed_is_zero() -> None:
    assert quantiles_ms(Durations().recent(0), (0.5,)) == [0.0]


def test_old_durations_leave_the_quantiles_but_not_the_sums() -> None:
    durations = Durations()
    durations.add(BOUNDS[-1])
    durations.recent(1)
    durations.recent(1 + WINDOW_MS)
    durations.add(1000)
    assert sum(durations.recent(2 + 2 * WINDOW_MS)) == 2, "the last window counts too"
    assert sum(durations.recent(3 + 2 * WINDOW_MS)) == 1
    assert durations.count == 2


def test_a_sample_stands_for_several() -> None:
    durations = Durations()
    durations.add(5000, 8)
    assert durations.count == 8
    assert sum_of([durations.recent(0), durations.recent(0)]) == [2 * each for each in durations.recent(0)]
