"""How often and how far apart the driver asks for offsets: fetchOffset.numRetries and fetchOffset.retryIntervalMs."""

from __future__ import annotations

import time
from typing import Any

import pytest

from barnabas.client.errors import UnknownTopicError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.spark.cluster_view import ClusterView
from barnabas.spark.options import read_source_options
from barnabas.types import TopicPartition

PARTITION = TopicPartition("orders", 0)
AWAY = KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, "no leader yet")
FORBIDDEN = KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED, "not allowed")


class FailingConsumer:
    """Responds when all its errors are used up."""

    def __init__(self, *errors: Exception) -> None:
        self.errors = list(errors)
        self.asked = 0

    def end_offsets(self, partitions: Any) -> dict[TopicPartition, int]:
        self.asked += 1
        if self.errors:
            raise self.errors.pop(0)
        return dict.fromkeys(partitions, 7)


@pytest.fixture
def slept(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    waits: list[float] = []
    monkeypatch.setattr(time, "sleep", waits.append)
    return waits


def view_of(consumer: FailingConsumer, **options: str) -> ClusterView:
    given = {f"fetchOffset.{name}": value for name, value in options.items()}
    view = ClusterView(read_source_options({"kafka.bootstrap.servers": "nowhere:1", "subscribe": "orders", **given}))
    view._consumer = consumer  # type: ignore[assignment]
    return view


def test_as_often_as_told_and_as_far_apart(slept: list[float]) -> None:
    consumer = FailingConsumer(AWAY, AWAY, AWAY)
    assert view_of(consumer, numRetries="4", retryIntervalMs="250").latest([PARTITION]) == {PARTITION: 7}
    assert consumer.asked == 4 and slept == [0.25] * 3


@pytest.mark.parametrize(("options", "tries"), [({}, 3), ({"numRetries": "1"}, 1), ({"numRetries": "2"}, 2)])
def test_no_more_often_than_told(slept: list[float], options: dict[str, str], tries: int) -> None:
    """Three times, a second apart, unless told: as the official connector."""
    consumer = FailingConsumer(*[AWAY] * 9)
    with pytest.raises(KafkaError, match="no leader yet"):
        view_of(consumer, **options).latest([PARTITION])
    assert consumer.asked == tries and slept == [1.0] * (tries - 1)


@pytest.mark.parametrize("error", [FORBIDDEN, UnknownTopicError("there is no topic orders")], ids=["forbidden", "gone"])
def test_what_does_not_pass_is_not_asked_again(slept: list[float], error: Exception) -> None:
    consumer = FailingConsumer(error)
    with pytest.raises(type(error)):
        view_of(consumer).latest([PARTITION])
    assert consumer.asked == 1 and slept == []
