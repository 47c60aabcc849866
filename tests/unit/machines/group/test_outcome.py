"""Names of timers survive the way to the driver and back, whatever a group is called."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.machines.coordinator import NOTHING, Now
from barnabas.machines.group.outcome import Outcome, TimerName, read_timer_key, timer_key


@pytest.mark.parametrize(
    ("name", "key"),
    [
        (TimerName("join", "g"), "join:g"),
        (TimerName("session", "g", "a-1:2"), "session:g:a-1:2"),
        (TimerName("session", "a:b", "c"), "session:a%3Ab:c"),
        (TimerName("session", "a", "b:c"), "session:a:b:c"),
        (TimerName("join", "100%3A"), "join:100%253A"),
    ],
)
def test_timer_key(name: TimerName, key: str) -> None:
    assert timer_key(name.kind, name.group_id, name.member_id or None) == key
    assert read_timer_key(key) == name


@given(st.text(alphabet=":%3A25ab"), st.text(alphabet=":%3A25ab"))
def test_timer_key_round_trip(group_id: str, member_id: str) -> None:
    assert read_timer_key(timer_key("session", group_id, member_id)) == TimerName("session", group_id, member_id)


def test_the_last_word_on_a_timer_counts() -> None:
    outcome = Outcome(Now(100, 0))
    assert outcome.decision() is NOTHING
    assert outcome.arm("join:g", 5) == 105
    outcome.cancel("join:g")
    outcome.arm("sync:g", 7)
    assert outcome.decision().timers == (("join:g", None), ("sync:g", 107))
