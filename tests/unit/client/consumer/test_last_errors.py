"""Why a partition cannot be read yet: told once for a topic that does not exist, whatever the user does meanwhile."""

import logging

import pytest

from barnabas.client.consumer.last_errors import LastErrors
from barnabas.client.consumer.offsets import LATEST
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import UnknownTopicError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

A, B = TopicPartition("typo", 0), TopicPartition("typo", 1)
NOT_THERE = UnknownTopicError("there is no partition typo-0")


@pytest.fixture
def subscription() -> SubscriptionState:
    made = SubscriptionState(LATEST)
    made.assign([A, B])
    return made


def test_a_seek_does_not_have_it_told_again(subscription: SubscriptionState, caplog: pytest.LogCaptureFixture) -> None:
    errors = LastErrors(subscription)
    with caplog.at_level(logging.WARNING):
        errors.record({A: NOT_THERE})
        errors.clear(A)  # a seek has moved the partition on while it was being looked for
        errors.record({A: NOT_THERE, B: NOT_THERE})
        assert len(caplog.records) == 1
        subscription.assign([TopicPartition("other", 0)])
        errors.record({TopicPartition("other", 0): KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "not yet")})
        subscription.assign([A])
        errors.record({A: NOT_THERE})
    assert [record.getMessage() for record in caplog.records] == 2 * [
        "there is no partition typo-0; it is read as soon as it exists"
    ]
    assert errors.get(A) is NOT_THERE
