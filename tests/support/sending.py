"""A producer's core over a FakeCluster, and records that are sent through it, without a network.

made = Sending(FakeCluster(topics={"t": 2}), linger_ms=5); made.send("t", b"v", partition=1).result(20); made.close()
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

from fake_cluster import FakeCluster

from barnabas import Producer, aio
from barnabas.client.errors import ClosedError
from barnabas.client.io_thread import IoThread
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.producer.core import ProducerCore
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.record import ProducerRecord
from barnabas.client.producer.user_calls import ProducerCalls
from barnabas.client.retry import Deadline
from barnabas.client.user_side import AsyncSide, BlockingSide


class Sending:
    """A core with a fake cluster, and records that are sent through it."""

    def __init__(self, cluster: FakeCluster, **options: Any) -> None:
        self.cluster = cluster
        self.io = IoThread("test")
        given = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 2, "linger_ms": 0, **options}
        self.core = ProducerCore(ProducerOptions.of("fake:9092", **given), self.io, cluster=cluster)  # type: ignore[arg-type]

    def send(self, topic: str, value: bytes = b"x", **about: Any) -> Delivery:
        record = self.core.intake.prepare(ProducerRecord(topic, value, **about), None)
        outcome = self.core.intake.try_append(record)
        if outcome is None:
            self.io.wait(self.core.load_topic(topic, Deadline(5000), record.partition))
            outcome = self.core.intake.try_append(record)
        assert isinstance(outcome, Delivery)
        return outcome

    def producer(self) -> Producer:
        """The blocking class over this core."""
        made = Producer.__new__(Producer)
        side = BlockingSide()
        made._use(ProducerCalls(self.core, side), side)
        return made

    def aio_producer(self) -> aio.Producer:
        """The asyncio class over this core."""
        made = aio.Producer.__new__(aio.Producer)
        made._core = ProducerCalls(self.core, AsyncSide())
        return made

    def publish(self) -> None:
        """Lets the client know of the cluster's changes, on its I/O thread as metadata comes there."""

        async def publish() -> None:
            self.cluster.publish()

        self.io.wait(publish())

    def flush(self) -> None:
        self.io.wait(self.core.flush(20))

    def close(self) -> None:
        with suppress(ClosedError):  # by the test itself
            self.io.wait(self.core.close(0))
        self.io.stop()


@contextmanager
def sendings(**defaults: Any) -> Iterator[Callable[..., Sending]]:
    """Makes as many as a test wants, and closes them: `make(cluster, linger_ms=5)`."""
    made: list[Sending] = []

    def make(cluster: FakeCluster, **options: Any) -> Sending:
        made.append(Sending(cluster, **{**defaults, **options}))
        return made[-1]

    try:
        yield make
    finally:
        for each in made:
            each.close()
