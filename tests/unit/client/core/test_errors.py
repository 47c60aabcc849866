"""Codes become classes that people catch, and texts that say what to do."""

from __future__ import annotations

import inspect
import pickle

import pytest

import barnabas
from barnabas.client import errors
from barnabas.client.errors import (
    AbortableTransactionError,
    AuthenticationError,
    AuthorizationError,
    BufferFullError,
    ClientTimeoutError,
    CommitFailedError,
    FencedError,
    RebalanceInProgressError,
    RecordTooLargeError,
    UnknownTopicError,
    UnreachableError,
    UnsupportedVersionError,
    error_for,
)
from barnabas.errors import ErrorCode, KafkaError


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        (ErrorCode.REQUEST_TIMED_OUT, ClientTimeoutError),
        (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, UnknownTopicError),
        (ErrorCode.MESSAGE_TOO_LARGE, RecordTooLargeError),
        (ErrorCode.PRODUCER_FENCED, FencedError),
        (ErrorCode.INVALID_PRODUCER_EPOCH, FencedError),
        (ErrorCode.FENCED_INSTANCE_ID, FencedError),
        (ErrorCode.TRANSACTION_ABORTABLE, AbortableTransactionError),
        (ErrorCode.REBALANCE_IN_PROGRESS, RebalanceInProgressError),
        (ErrorCode.ILLEGAL_GENERATION, CommitFailedError),
        (ErrorCode.UNKNOWN_MEMBER_ID, CommitFailedError),
        (ErrorCode.SASL_AUTHENTICATION_FAILED, AuthenticationError),
        (ErrorCode.TOPIC_AUTHORIZATION_FAILED, AuthorizationError),
        (ErrorCode.UNSUPPORTED_VERSION, UnsupportedVersionError),
        (ErrorCode.NOT_LEADER_OR_FOLLOWER, barnabas.NotLeaderError),
    ],
)
def test_the_class_for_a_code(code: ErrorCode, kind: type[KafkaError]) -> None:
    error = error_for(code)
    assert type(error) is kind
    assert error.code is code
    assert code.text in error.message


@pytest.mark.parametrize("code", list(ErrorCode))
def test_every_code_has_an_error_that_keeps_it(code: ErrorCode) -> None:
    error = error_for(int(code))
    assert error.code is code
    assert error.retriable == (code.retriable or code is ErrorCode.REBALANCE_IN_PROGRESS)


def test_what_it_is_about_and_what_to_do_are_in_the_text() -> None:
    text = str(error_for(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, topic="orders", partition=3))
    assert text == (
        "UNKNOWN_TOPIC_OR_PARTITION: partition orders-3: this broker does not host that topic or partition"
        " (create it, or look for a typo in its name)"
    )
    assert "group g" in str(error_for(ErrorCode.GROUP_ID_NOT_FOUND, group="g"))
    assert "the broker said this" in str(error_for(ErrorCode.POLICY_VIOLATION, "the broker said this"))
    refused = error_for(ErrorCode.TOPIC_AUTHORIZATION_FAILED, topic="secret")
    assert isinstance(refused, AuthorizationError) and refused.resource == "secret"


def test_a_code_of_a_later_kafka() -> None:
    error = error_for(9999)
    assert error.code is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "9999" in error.message


def test_time_outs_are_time_outs() -> None:
    assert issubclass(ClientTimeoutError, TimeoutError)
    assert issubclass(BufferFullError, ClientTimeoutError)
    assert UnreachableError("h:1", "gone").retriable


def test_every_class_is_a_kafka_error_and_public() -> None:
    classes = {name for name, value in vars(errors).items() if inspect.isclass(value) and issubclass(value, KafkaError)}
    bases = {"KafkaError", "ClientError", "PartitionsError"}
    assert classes - bases <= set(barnabas.__all__)


def test_public_names_come_when_asked_for() -> None:
    assert barnabas.KafkaError is KafkaError
    assert barnabas.UnreachableError is UnreachableError
    assert "Producer" in dir(barnabas)
    with pytest.raises(AttributeError):
        barnabas.Nothing  # noqa: B018


def test_errors_travel_between_processes() -> None:
    for error in (UnreachableError("h:1", "gone"), error_for(3, topic="t"), ClientTimeoutError("late")):
        copied = pickle.loads(pickle.dumps(error))
        assert (type(copied), str(copied), copied.code) == (type(error), str(error), error.code)


def test_common_codes_have_a_class_of_their_own() -> None:
    assert type(error_for(ErrorCode.TOPIC_ALREADY_EXISTS)) is barnabas.TopicExistsError
    assert type(error_for(ErrorCode.NOT_COORDINATOR)) is barnabas.CoordinatorNotAvailableError
    for code in ErrorCode:
        error = error_for(code)
        if not isinstance(error, barnabas.RebalanceInProgressError):
            assert (error.code, error.retriable) == (code, code.retriable)
