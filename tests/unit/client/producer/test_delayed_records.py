"""`deliver_at` and `deliver_after`: where the record goes, with which header, and what is refused."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import IllegalStateError, SerializationError
from barnabas.client.producer.delayed import header
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.describe_configs import (
    DescribeConfigsResourceResult,
    DescribeConfigsResponse,
    DescribeConfigsResult,
)


class Settings:
    """Answers DescribeConfigs: the target of each topic that exists."""

    def __init__(self, targets: dict[str, str | None]) -> None:
        self.targets = targets
        self.error = ErrorCode.NONE

    def __call__(self, node_id: int, request: Any) -> DescribeConfigsResponse:
        return DescribeConfigsResponse(results=[self.result(each.resource_name) for each in request.resources])

    def result(self, name: str) -> DescribeConfigsResult:
        error = self.error if name in self.targets else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        entry = DescribeConfigsResourceResult(name="delay.target.topic", value=self.targets.get(name))
        configs = [entry] if error == ErrorCode.NONE else []
        return DescribeConfigsResult(
            error_code=error, error_message="no", resource_type=2, resource_name=name, configs=configs
        )


@pytest.fixture
def settings() -> Settings:
    return Settings({"orders": None, "orders.delayed": "orders", "other": None, "other.delayed": "orders"})


@pytest.fixture
def broker(settings: Settings) -> ProduceBroker:
    cluster = FakeCluster(topics=dict.fromkeys(settings.targets, 2))
    cluster.always(ApiKey.DESCRIBE_CONFIGS, settings)
    return ProduceBroker(cluster)


@pytest.fixture
def sending(broker: ProduceBroker) -> Iterator[Callable[..., Sending]]:
    with sendings() as make:
        yield functools.partial(make, broker.cluster)


@pytest.mark.parametrize("topic", ["orders", "orders.delayed"])
def test_the_record_goes_to_the_intake(sending: Callable[..., Sending], broker: ProduceBroker, topic: str) -> None:
    producer = sending().producer()
    for value in (b"1", b"2"):
        metadata = producer.send(topic, value, partition=1, headers=[("a", b"b")], deliver_at=5).result(20)
        assert (metadata.topic, metadata.partition) == ("orders.delayed", 1)
    assert broker.values("orders.delayed", 1) == [b"1", b"2"]
    assert len(broker.cluster.requests_of(ApiKey.DESCRIBE_CONFIGS)) == 1, "asked once"


def test_the_asyncio_producer_does_the_same(sending: Callable[..., Sending]) -> None:
    async def send() -> str:
        delivery = await sending().aio_producer().send("orders", b"1", deliver_after="10m")
        return (await delivery).topic

    assert asyncio.run(send()) == "orders.delayed"


@pytest.mark.parametrize("topic", ["other", "missing"])
def test_without_an_intake_nothing_is_sent(sending: Callable[..., Sending], topic: str) -> None:
    made = sending()
    with pytest.raises(IllegalStateError, match=rf"create {topic}\.delayed with delay\.target\.topic={topic}"):
        made.producer().send(topic, b"x", deliver_after=1)
    assert made.core.unacknowledged() == 0


def test_whoever_may_not_read_the_settings_is_told(sending: Callable[..., Sending], settings: Settings) -> None:
    settings.error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    with pytest.raises(KafkaError, match="settings of orders"):
        sending().producer().send("orders", b"x", deliver_after=1)


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        ({"deliver_at": 1_700_000_000_000}, ("deliver-at", b"1700000000000")),
        ({"deliver_at": datetime(2027, 1, 1, tzinfo=UTC)}, ("deliver-at", b"1798761600000")),
        ({"deliver_after": timedelta(seconds=1.5)}, ("deliver-after", b"1500")),
        ({"deliver_after": "2h"}, ("deliver-after", b"7200000")),
        ({"deliver_after": 0}, ("deliver-after", b"0")),
    ],
    ids=str,
)
def test_the_header(given: dict[str, Any], expected: tuple[str, bytes]) -> None:
    assert header(given.get("deliver_at"), given.get("deliver_after")) == expected


@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"deliver_at": 1, "deliver_after": 1}, ValueError, "both given"),
        ({"deliver_at": datetime(2027, 1, 1)}, ValueError, "without a time zone"),
        ({"deliver_at": -1}, ValueError, "not negative"),
        ({"deliver_at": 1.5}, TypeError, "milliseconds since 1970"),
        ({"deliver_at": 10**18}, ValueError, "at most"),
        ({"deliver_after": "tomorrow"}, ValueError, "a number with ms, s, m, h or d"),
        ({"deliver_after": 1.5}, TypeError, "milliseconds, a timedelta"),
        ({"deliver_after": 1, "headers": [("deliver-at", b"1")]}, ValueError, "deliver-at was given as well"),
        ({"deliver_after": 1, "headers": {"deliver-after": b"1"}}, ValueError, "deliver-after was given as well"),
        ({"deliver_after": 1, "headers": 5}, SerializationError, "text, bytes or None"),
        ({"deliver_after": 1, "topic": 5}, TypeError, "name of a topic"),
    ],
    ids=str,
)
def test_what_is_refused(
    sending: Callable[..., Sending], given: dict[str, Any], kind: type[Exception], words: str
) -> None:
    with pytest.raises(kind, match=words):
        sending().producer().send(**{"topic": "orders", "value": b"x", **given})
