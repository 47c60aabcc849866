import pytest

from barnabas.client.consumer.fetch_session import MAX_EPOCH, FetchSession, ForgottenPartition, SessionPartition
from barnabas.errors import ErrorCode
from barnabas.types import NO_TOPIC_ID, TopicPartition

A, B, C = (TopicPartition("t", number) for number in range(3))
ID = b"t" * 16


def at(offset: int, topic_id: bytes = ID, epoch: int = 0) -> SessionPartition:
    return SessionPartition(topic_id, offset, epoch, 1000)


def started(session_id: int = 77) -> FetchSession:
    session = FetchSession(1)
    plan = session.build({A: at(0), B: at(0)})
    assert (plan.session_id, plan.epoch, set(plan.send)) == (0, 0, {A, B})
    assert session.handle_response(0, session_id, {A, B})
    return session


def test_an_incremental_request_names_only_what_changed() -> None:
    session = started()
    plan = session.build({A: at(10), B: at(0), C: at(5)})
    assert (plan.session_id, plan.epoch) == (77, 1)
    assert plan.send == {A: at(10), C: at(5)}
    assert plan.forget == []
    assert session.handle_response(0, 77, {A})
    plan = session.build({A: at(10), C: at(5)})
    assert (plan.epoch, plan.send, plan.forget) == (2, {}, [ForgottenPartition(ID, "t", 1)])


def test_a_topic_made_again_is_forgotten_under_its_old_id() -> None:
    session = started()
    plan = session.build({A: at(0, b"n" * 16), B: at(0)})
    assert plan.send == {A: at(0, b"n" * 16)}
    assert plan.forget == [ForgottenPartition(ID, "t", 0)]


def test_topic_ids_are_used_only_if_all_are_known() -> None:
    session = FetchSession(1)
    assert not session.build({A: at(0), B: at(0, NO_TOPIC_ID)}).uses_topic_ids
    session = FetchSession(1)
    assert session.build({A: at(0)}).uses_topic_ids


def test_epochs_wrap_to_one() -> None:
    session = started()
    session.epoch = MAX_EPOCH
    session.build({A: at(1), B: at(0)})
    assert session.handle_response(0, 77, ())
    assert session.epoch == 1


def test_a_broker_that_made_no_session_gets_full_requests() -> None:
    session = started(session_id=0)
    assert session.build({A: at(1), B: at(0)}).send.keys() == {A, B}


def test_a_session_that_the_broker_ended_starts_again() -> None:
    session = started()
    session.build({A: at(1), B: at(0)})
    assert session.handle_response(0, 0, {A})
    plan = session.build({A: at(2), B: at(0)})
    assert (plan.session_id, plan.epoch, set(plan.send)) == (0, 0, {A, B})


@pytest.mark.parametrize(
    ("error", "session_id"),
    [(ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0), (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 77)],
)
def test_after_an_error_all_is_said_again(error: ErrorCode, session_id: int) -> None:
    session = started()
    session.build({A: at(1), B: at(0)})
    assert not session.handle_response(error, 0, ())
    plan = session.build({A: at(1), B: at(0)})
    assert (plan.session_id, plan.epoch, set(plan.send)) == (session_id, 0, {A, B})


def test_no_response_closes_the_old_session_with_a_new_one() -> None:
    session = started()
    session.build({A: at(1), B: at(0)})
    session.handle_failure()
    plan = session.build({A: at(1), B: at(0)})
    assert (plan.session_id, plan.epoch, set(plan.send)) == (77, 0, {A, B})


def test_responses_that_do_not_fit_are_not_used() -> None:
    session = FetchSession(1)
    session.build({A: at(0), B: at(0)})
    assert not session.handle_response(0, 77, {A})
    session.build({A: at(0), B: at(0)})
    assert not session.handle_response(0, 77, {A, B, C})
    session.build({A: at(0), B: at(0)})
    assert not session.handle_response(0, 0, (), throttle_time_ms=50)
    session = started()
    session.build({A: at(1), B: at(0)})
    assert not session.handle_response(0, 77, {C})
    assert session.is_full
    assert session.session_id == 77


def test_the_end_of_a_session() -> None:
    session = started()
    session.close()
    plan = session.build({})
    assert (plan.session_id, plan.epoch, plan.send) == (77, -1, {})
