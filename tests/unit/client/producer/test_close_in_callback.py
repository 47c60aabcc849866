"""close() in a delivery callback: at once, without waiting, and nothing more goes out. The recipe against gaps."""

from __future__ import annotations

import asyncio
import logging
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import ClosedError
from barnabas.client.producer.fast_path import Delivery
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey

IN_ORDER = {"batch_size": 0, "max_in_flight_requests_per_connection": 1}


@pytest.fixture
def sending() -> Iterator[Callable[..., Sending]]:
    with sendings() as make:
        yield make


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(topics={"t": 2})


@pytest.fixture
def broker(cluster: FakeCluster) -> ProduceBroker:
    broker = ProduceBroker(cluster)
    all_queued = asyncio.Event()

    async def when_all_are_queued(node_id: int, request: Any) -> Any:
        await all_queued.wait()
        return broker._on_produce(node_id, request)

    cluster.always(ApiKey.PRODUCE, when_all_are_queued)
    broker.all_queued = all_queued.set  # type: ignore[attr-defined]
    return broker


def release(made: Sending, broker: Any) -> None:
    made.io.call(broker.all_queued)


@pytest.mark.parametrize("timeout", [0, None, 30.0])
def test_nothing_goes_out_after_the_record_that_failed(
    cluster: FakeCluster,
    broker: ProduceBroker,
    sending: Callable[..., Sending],
    timeout: float | None,
    caplog: pytest.LogCaptureFixture,
) -> None:
    made = sending(cluster, **IN_ORDER)
    producer = made.producer()
    failures: list[BaseException] = []

    def close_on_failure(delivery: Delivery) -> None:
        error = delivery.exception(0)
        if error is not None:
            failures.append(error)
            producer.close(timeout)

    broker.errors.append(ErrorCode.INVALID_RECORD)
    deliveries = [producer.send("t", b"%d" % number, partition=0, on_delivery=close_on_failure) for number in range(20)]
    release(made, broker)
    errors = [each.exception(20) for each in deliveries]
    assert getattr(errors[0], "code", None) == ErrorCode.INVALID_RECORD
    assert all(isinstance(each, ClosedError) for each in errors[1:]) and len(failures) == 20
    assert broker.values("t") == [] and len(cluster.requests_of(ApiKey.PRODUCE)) == 1
    assert cluster.disconnected, "nor what a connection had not written yet"
    with pytest.raises(ClosedError):
        producer.send("t", b"more")
    producer.close()
    assert made.io.stopped and made.core.metrics()["buffer-available-bytes"] == made.core.options.buffer_memory
    warned = [each for each in caplog.records if each.levelno == logging.WARNING and "callback" in each.message]
    assert bool(warned) == (timeout != 0)


def test_batches_of_the_same_response_keep_their_outcome(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster, linger_ms=10_000)
    producer = made.producer()
    producer.partitions_for("t")
    first = producer.send("t", b"0", partition=0, on_delivery=lambda _: producer.close(0))
    second = producer.send("t", b"1", partition=1, on_delivery=lambda _: producer.close(0))
    release(made, broker)
    made.io.call(setattr, made.core.accumulator.batches, "flushing", 1)
    made.io.call(made.core._wake)
    assert [first.exception(20), second.exception(20)] == [None, None]


def test_in_a_turn_of_the_sender(cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]) -> None:
    """A batch that is given up within a turn: the same turn sends nothing for others."""
    made = sending(cluster, **IN_ORDER)
    producer = made.producer()
    deliveries: list[Delivery] = []

    async def send_and_expire() -> None:
        made.core.accumulator.add_topic("t", 2)
        made.core._sender.on_metadata(cluster.metadata)
        deliveries.append(made.send("t", b"old", partition=0))
        deliveries.append(made.send("t", b"young", partition=1))
        deliveries[0].add_callback(lambda _: producer.close(0))
        deliveries[0].batch.created_ms -= 1_000_000
        made.core._sender._turn()

    made.io.wait(send_and_expire())
    assert isinstance(deliveries[1].exception(20), ClosedError)
    assert cluster.requests_of(ApiKey.PRODUCE) == []


def test_while_another_thread_waits_in_close(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster, **IN_ORDER)
    producer = made.producer()
    broker.errors.append(ErrorCode.INVALID_RECORD)
    deliveries = [
        producer.send("t", b"%d" % number, partition=0, on_delivery=lambda _: producer.close(0)) for number in range(5)
    ]
    closing = threading.Thread(target=producer.close)
    closing.start()
    made.io.wait(cluster.request_of(ApiKey.PRODUCE))
    release(made, broker)
    closing.join()
    assert isinstance(deliveries[4].exception(0), ClosedError) and broker.values("t") == []


def test_the_asyncio_twin(cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]) -> None:
    made = sending(cluster, **IN_ORDER)
    producer = made.aio_producer()
    broker.errors.append(ErrorCode.INVALID_RECORD)

    async def use() -> list[Any]:
        deliveries = [
            await producer.send("t", b"%d" % number, partition=0, on_delivery=lambda _: producer.close(0))
            for number in range(5)
        ]
        release(made, broker)
        results = await asyncio.gather(*deliveries, return_exceptions=True)
        await producer.close()
        await producer.close(0)
        return results

    results = asyncio.run(use())
    assert all(isinstance(each, ClosedError) for each in results[1:])
    assert broker.values("t") == [] and made.io.stopped
