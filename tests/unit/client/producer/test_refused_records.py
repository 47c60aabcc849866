"""Records that `send` refuses: it says what is wrong with them, and interceptors hear of each."""

from __future__ import annotations

import asyncio
import datetime
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import (
    BufferFullError,
    ClosedError,
    IllegalStateError,
    SerializationError,
    UnknownTopicError,
)


@pytest.fixture
def sending() -> Iterator[Callable[..., Sending]]:
    cluster = FakeCluster(topics={"t": 2})
    ProduceBroker(cluster)
    with sendings() as make:
        yield functools.partial(make, cluster)


@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize(
    ("given", "kind", "words"),
    [
        ({"partition": "0"}, TypeError, "partition is a whole number, not '0'"),
        ({"partition": 1.0}, TypeError, "partition is a whole number, not 1.0"),
        ({"partition": -1}, ValueError, "leave it out"),
        ({"partition": 2**31}, ValueError, "partition is at most"),
        ({"timestamp": datetime.datetime(2024, 1, 1)}, TypeError, "in milliseconds since 1970"),
        ({"timestamp": 1.5}, TypeError, "in milliseconds since 1970"),
        ({"timestamp": "1"}, TypeError, "in milliseconds since 1970"),
        ({"timestamp": -1}, ValueError, "in milliseconds since 1970"),
        ({"timestamp": 2**63}, ValueError, "in milliseconds since 1970"),
        ({"headers": [1]}, SerializationError, "text, bytes or None"),
        ({"headers": 1}, SerializationError, "text, bytes or None"),
        ({"headers": "ab"}, SerializationError, "text, bytes or None"),
        ({"headers": [("a",)]}, SerializationError, "text, bytes or None"),
        ({"headers": [("a", "b")]}, SerializationError, "text, bytes or None"),
        ({"headers": [(b"a", b"b")]}, SerializationError, "text, bytes or None"),
        ({"headers": {"a": 1}}, SerializationError, "text, bytes or None"),
    ],
    ids=str,
)
def test_what_cannot_be_sent(
    sending: Callable[..., Sending], given: dict[str, Any], kind: type[Exception], words: str, first: bool
) -> None:
    """Whether it comes first, or finds an open batch and the fast path to it."""
    made = sending(linger_ms=60_000, delivery_timeout_ms=120_000)
    producer = made.producer()
    if not first:
        for partition in (0, 1):
            producer.send("t", b"x", partition=partition)
    with pytest.raises(kind, match=words):
        producer.send("t", b"x", **given)
    assert made.core.unacknowledged() == (0 if first else 2)


class Index:
    """A whole number of another kind, as numpy has them."""

    def __init__(self, number: int) -> None:
        self.number = number

    def __index__(self) -> int:
        return self.number


def test_whole_numbers_of_other_kinds_are_taken(sending: Callable[..., Sending]) -> None:
    producer = sending().producer()
    given: Any = {"partition": Index(1), "timestamp": Index(5)}
    assert producer.send("t", b"x", **given).result(20)[:2] == ("t", 1)
    assert producer.send("t", b"x", timestamp=2**63 - 1).result(20)


class Heard:
    def __init__(self) -> None:
        self.outcomes: list[BaseException | None] = []

    def on_acknowledgement(self, metadata: Any, error: BaseException | None) -> None:
        self.outcomes.append(error)


@pytest.mark.parametrize("asyncio_too", [False, True])
def test_interceptors_hear_of_records_that_got_no_batch(sending: Callable[..., Sending], asyncio_too: bool) -> None:
    heard = Heard()
    made = sending(interceptor_classes=[heard], max_block_ms=0, buffer_memory=400, batch_size=300)
    producer = made.producer()

    def send(**about: Any) -> Any:
        if not asyncio_too:
            return producer.send(**about)
        return asyncio.run(made.aio_producer().send(**about))

    made.send("t", b"x", partition=0).result(20)
    with pytest.raises(UnknownTopicError):
        send(topic="t", value=b"x", partition=7)
    made.core.accumulator.batches.pool.try_take(400)
    with pytest.raises(BufferFullError):
        send(topic="t", value=b"x")
    made.core.accumulator.batches.pool.give_back(400)
    with pytest.raises(TypeError):
        send(topic="t", value=b"x", partition="0")
    assert [type(each) for each in heard.outcomes] == [type(None), UnknownTopicError, BufferFullError, TypeError]


def test_and_of_those_that_a_partitioner_or_the_transaction_refuses(sending: Callable[..., Sending]) -> None:
    heard = Heard()
    producer = sending(interceptor_classes=[heard], partitioner_class=lambda *_: 5).producer()
    with pytest.raises(IllegalStateError):
        producer.send("t", b"x")
    made = sending(interceptor_classes=[heard], transactional_id="x")
    with pytest.raises(IllegalStateError):
        made.producer().send("t", b"x")
    assert [type(each) for each in heard.outcomes] == [IllegalStateError, IllegalStateError]
    made.core.intake.close()
    with pytest.raises(ClosedError):
        made.producer().send("t", b"x")
