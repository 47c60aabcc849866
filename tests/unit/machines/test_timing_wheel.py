"""The timing wheel against the obvious model: a list that is searched."""

from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.timing_wheel import MAX_SPAN_MS, TimerHandle, TimingWheel


def test_expires_at_the_deadline_and_not_before() -> None:
    wheel: TimingWheel[str] = TimingWheel(start_ms=1000)
    wheel.add(1500, "a")
    assert wheel.advance(1499) == []
    assert wheel.advance(1500) == ["a"]
    assert wheel.advance(9999) == []
    assert len(wheel) == 0


def test_expired_items_come_by_deadline_then_in_the_order_of_adding() -> None:
    wheel: TimingWheel[str] = TimingWheel()
    wheel.add(70_000, "late")
    wheel.add(5_000, "first of two")
    wheel.add(100, "early")
    wheel.add(5_000, "second of two")
    wheel.add(-5, "overdue")
    assert wheel.advance(100_000) == ["overdue", "early", "first of two", "second of two", "late"]


def test_a_deadline_that_has_passed_expires_at_the_next_advance() -> None:
    wheel: TimingWheel[str] = TimingWheel(start_ms=1000)
    wheel.add(1000, "now")
    assert wheel.next_deadline() == 1000
    assert wheel.advance(1000) == ["now"]


def test_cancel_is_idempotent_and_says_whether_it_did_something() -> None:
    wheel: TimingWheel[str] = TimingWheel()
    near, far, overdue, expired = wheel.add(5, "n"), wheel.add(10**7, "f"), wheel.add(0, "o"), wheel.add(1, "e")
    assert wheel.cancel(near)
    assert wheel.cancel(far)
    assert wheel.cancel(overdue)
    assert wheel.advance(1) == ["e"]
    assert not expired.waiting
    for timer in (near, far, overdue, expired):
        assert not wheel.cancel(timer)
    assert len(wheel) == 0
    assert wheel.next_deadline() is None


def test_empty_wheel_needs_no_visit() -> None:
    wheel: TimingWheel[str] = TimingWheel(start_ms=123)
    assert wheel.next_deadline() is None
    assert wheel.advance(10**12) == []


def test_a_timer_beyond_the_span_of_the_wheel_still_expires_on_time() -> None:
    start_ms = (1 << 36) - 12345
    wheel: TimingWheel[str] = TimingWheel(start_ms=start_ms)
    deadline_ms = start_ms + 3 * MAX_SPAN_MS
    wheel.add(deadline_ms, "in six years")
    visits = 0
    while (visit_ms := wheel.next_deadline()) is not None and visit_ms < deadline_ms:
        assert wheel.advance(visit_ms) == []
        visits += 1
        assert visits < 40
    assert wheel.advance(deadline_ms) == ["in six years"]


def test_a_far_timer_asks_for_few_visits() -> None:
    """One visit per level at most, so that waiting ten minutes costs nothing to speak of."""
    wheel: TimingWheel[str] = TimingWheel(start_ms=777)
    wheel.add(777 + 600_000, "idle")
    visits = 0
    while (visit_ms := wheel.next_deadline()) is not None:
        wheel.advance(visit_ms)
        visits += 1
    assert visits <= 4


def test_time_that_goes_back_is_ignored() -> None:
    wheel: TimingWheel[str] = TimingWheel(start_ms=1000)
    wheel.add(2000, "a")
    wheel.advance(1900)
    assert wheel.advance(500) == []
    wheel.add(1800, "b")
    assert wheel.advance(1900) == ["b"]
    assert wheel.advance(2000) == ["a"]


def test_iteration_shows_what_waits() -> None:
    wheel: TimingWheel[str] = TimingWheel()
    wheel.add(0, "overdue")
    wheel.add(5_000_000, "far")
    wheel.cancel(wheel.add(10, "cancelled"))
    assert sorted(wheel) == ["far", "overdue"]


steps = st.lists(
    st.one_of(
        st.tuples(st.just("add"), st.one_of(st.integers(-5, 300), st.integers(0, 20_000_000), st.integers(0, 1 << 38))),
        st.tuples(st.just("cancel"), st.integers(0, 50)),
        st.tuples(
            st.just("advance"), st.one_of(st.integers(0, 300), st.integers(0, 5_000_000), st.integers(0, 1 << 37))
        ),
    ),
    max_size=60,
)


@settings(max_examples=120, deadline=None)
@given(start_ms=st.one_of(st.integers(0, 1 << 40), st.just((1 << 36) - 1)), steps=steps)
def test_behaves_like_a_sorted_list(start_ms: int, steps: list[tuple[str, int]]) -> None:
    wheel: TimingWheel[int] = TimingWheel(start_ms=start_ms)
    now_ms = start_ms
    model: dict[int, int] = {}
    timers: list[TimerHandle[int]] = []
    for action, number in steps:
        if action == "add":
            model[len(timers)] = now_ms + number
            timers.append(wheel.add(now_ms + number, len(timers)))
        elif action == "cancel" and number < len(timers):
            assert wheel.cancel(timers[number]) == (model.pop(number, None) is not None)
        elif action == "advance":
            visit_ms = wheel.next_deadline()
            assert (visit_ms is None) == (not model)
            assert visit_ms is None or visit_ms <= max(now_ms, min(model.values()))
            now_ms += number
            expected = sorted((deadline_ms, item) for item, deadline_ms in model.items() if deadline_ms <= now_ms)
            assert wheel.advance(now_ms) == [item for _, item in expected]
            for _, item in expected:
                del model[item]
        assert len(wheel) == len(model)
