"""What a follower fetches: sessions, late responses, errors, and where it cuts its log."""

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.replica_fetch import (
    FollowedPartition,
    Phase,
    Remedy,
    ReplicaFetch,
    remedy_for,
    truncation_offset,
)

A, B, C = ((bytes([number]) * 16, 0) for number in (1, 2, 3))


def followed(key: tuple[bytes, int], offset: int = 10, epoch: int = 1) -> FollowedPartition:
    return FollowedPartition(key, epoch, offset, 0, 0)


def machine_with(*keys: tuple[bytes, int]) -> ReplicaFetch:
    """With a session."""
    machine = ReplicaFetch()
    for key in keys:
        machine.follow(followed(key))
    plan = machine.next_request()
    assert plan is not None and plan.session_epoch == 0
    assert machine.on_response(0, ErrorCode.NONE, 77)
    return machine


def sent(machine: ReplicaFetch) -> tuple[int, int, list[tuple[bytes, int]], list[tuple[bytes, int]]]:
    plan = machine.next_request()
    assert plan is not None
    return plan.session_id, plan.session_epoch, [each.key for each in plan.partitions], plan.forgotten


def test_nothing_to_fetch() -> None:
    machine = ReplicaFetch()
    assert machine.next_request() is None
    machine.follow(followed(A))
    machine.unfollow(A)
    assert machine.next_request() is None


def test_the_first_request_names_everything_and_later_ones_what_is_new() -> None:
    machine = machine_with(A, B)
    assert sent(machine) == (77, 1, [], [])
    a = machine.current(A)
    assert a is not None
    machine.on_fetched(a, 15, 1, 0)
    assert sent(machine) == (77, 2, [A], [])
    assert a.sent_offset == 15
    machine.on_fetched(a, 15, 1, 0)
    machine.follow(followed(C))
    machine.unfollow(B)
    assert sent(machine) == (77, 3, [C], [B])
    assert sent(machine) == (77, 4, [], [])
    machine.on_fetched(a, 15, 1, 4)
    assert sent(machine)[2] == [A], "the leader wants to know the log's start"


@pytest.mark.parametrize("error", [ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH])
def test_a_session_that_is_over_begins_again(error: ErrorCode) -> None:
    machine = machine_with(A, B)
    machine.next_request()
    assert not machine.on_response(1, error, 0)
    assert machine.current(A) is None, "nothing that comes now was asked for"
    assert sent(machine) == (77, 0, [A, B], [])


def test_a_leader_without_room_for_a_session() -> None:
    machine = ReplicaFetch()
    machine.follow(followed(A))
    for _ in range(3):
        assert sent(machine) == (0, 0, [A], [])
        assert machine.on_response(0, ErrorCode.NONE, 0)


def test_late_responses_are_dropped() -> None:
    machine = machine_with(A, B)
    machine.follow(followed(A, 10, epoch=2))  # a new leader epoch, same offset
    assert machine.current(A) is None
    b = machine.current(B)
    assert b is not None
    machine.pause(b)
    assert machine.current(B) is None
    machine.resume(b, 10, 0, 0)
    assert machine.current(B) is None, "the response to what was asked before it was cut"
    machine.next_request()
    assert machine.current(A) is not None and machine.current(B) is b
    machine.unfollow(B)
    assert machine.current(B) is None
    other_topic = (b"other id of the ", 0)
    assert machine.current(other_topic) is None


def test_a_response_to_an_earlier_request_is_late_though_the_offset_is_the_same() -> None:
    """Two requests are on their way: the second has the partition in another leader epoch, at the same offset."""
    machine = machine_with(A, B)
    first = machine.next_request()
    machine.follow(followed(A, 10, epoch=2))
    second = machine.next_request()
    assert first is not None and second is not None
    assert machine.current(A, first.number) is None
    assert machine.current(B, first.number) is not None
    assert machine.current(A, second.number) is not None


def test_a_look_up_for_an_earlier_leader_epoch_does_not_pause_the_partition() -> None:
    machine = machine_with(A, B)
    before = machine.current(A)
    assert before is not None
    machine.pause(before)
    assert sent(machine)[2:] == ([], [A])
    machine.follow(followed(A, 10, epoch=2))
    machine.pause(before)
    assert sent(machine)[2:] == ([A], [])
    machine.pause(before)
    assert sent(machine)[2:] == ([], []), "it stays in the session"
    assert machine.current(A) is not None


def test_after_an_error_it_waits_and_the_pauses_grow() -> None:
    machine = machine_with(A, B)
    a = machine.current(A)
    assert a is not None
    pauses = []
    now_ms = 1000
    for _ in range(6):
        machine.delay(a, now_ms, 1000)
        assert machine.next_due_ms is not None
        pauses.append(machine.next_due_ms - now_ms)
        assert not machine.wake(machine.next_due_ms - 1)
        now_ms = machine.next_due_ms
        assert machine.wake(now_ms) and machine.next_due_ms is None
    assert pauses == [50, 100, 200, 400, 800, 1000]
    machine.on_fetched(a, 11, 1, 0)
    machine.delay(a, now_ms, 1000)
    assert machine.next_due_ms == now_ms + 50
    assert sent(machine)[2:] == ([], [A])
    machine.wake(now_ms + 50)
    assert sent(machine)[2:] == ([A], [])


def test_what_failed_stays_out_until_something_new_is_decided() -> None:
    machine = machine_with(A)
    a = machine.current(A)
    assert a is not None
    machine.fail(a)
    assert machine.next_request() is None
    machine.wake(1 << 40)
    assert a.phase is Phase.FAILED
    machine.follow(followed(A, epoch=2))
    assert sent(machine)[2] == [A]


def test_one_that_is_not_followed_any_more_does_not_come_back() -> None:
    machine = machine_with(A, B)
    a = machine.current(A)
    assert a is not None
    machine.pause(a)
    machine.unfollow(A)
    machine.resume(a, 5, 0, 0)
    machine.delay(a, 0, 1000)
    assert A not in machine.partitions and machine.next_due_ms is None


def test_remedies() -> None:
    assert remedy_for(ErrorCode.OFFSET_OUT_OF_RANGE, 10, 11) is Remedy.START_OVER
    assert remedy_for(ErrorCode.OFFSET_OUT_OF_RANGE, 10, 10) is Remedy.LOOK_UP
    assert remedy_for(ErrorCode.FENCED_LEADER_EPOCH, 10, -1) is Remedy.RETRY


@pytest.mark.parametrize(
    ("leader", "own", "end", "expected"),
    [
        pytest.param((1, 20), (1, 30), 30, 20, id="the leader's epoch was shorter"),
        pytest.param((1, 20), (1, 15), 30, 15, id="the own epoch was shorter, a later one came"),
        pytest.param((2, 20), (1, 12), 30, 12, id="an epoch that the follower never had: cut to the one below"),
        pytest.param((1, 20), (-1, -1), 30, 20, id="no epochs of its own"),
        pytest.param((1, 40), (1, 35), 30, 30, id="never beyond the end"),
    ],
)
def test_where_a_log_is_cut(leader: tuple[int, int], own: tuple[int, int], end: int, expected: int) -> None:
    assert truncation_offset(*leader, *own, end) == expected
