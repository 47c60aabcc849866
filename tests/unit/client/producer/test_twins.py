"""The compiled short way and its pure twin: the same outcomes for the same records."""

from __future__ import annotations

import asyncio
import importlib
import threading
from types import ModuleType
from typing import Any

import pytest

from barnabas.client.errors import ClientTimeoutError
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.buffer_pool import Limits
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.codec import BatchBuffer


def twins() -> list[Any]:
    names = ["_fast_pure", "_fast"]
    found = []
    for name in names:
        try:
            found.append(pytest.param(importlib.import_module(f"barnabas.client.producer.{name}"), id=name))
        except ImportError:
            continue
    return found


@pytest.fixture(params=twins())
def twin(request: pytest.FixtureRequest) -> ModuleType:
    module: ModuleType = request.param
    return module


class Path:
    """A topic with one partition and an open batch, on that twin's own slots."""

    def __init__(self, twin: ModuleType) -> None:
        self.slow: list[tuple[Any, ...]] = []
        slow = self.slow

        class Sending(twin.SendPath):  # type: ignore[name-defined,misc]
            def _send_slowly(self, *given: Any) -> str:
                slow.append(given)
                return "slowly"

        class Batch(twin.BatchSlot):  # type: ignore[name-defined,misc]
            def __init__(self) -> None:
                self.hung: list[tuple[Any, Any]] = []

            def add_callback(self, delivery: Any, callback: Any) -> None:
                self.hung.append((delivery, callback))

        self.batch = Batch()
        self.batch.buffer = BatchBuffer(1000)
        self.batch.buffer.append(1, None, b"first", None)
        self.batch.limit = 500
        self.partition = twin.PartitionSlot()
        self.partition.open = self.batch
        self.topic = twin.TopicSlot()
        self.topic.current = self.batch
        self.topic.partitions = [self.partition]
        self.topics = {"t": self.topic}
        self.path = Sending()
        self.path._open_path(self.topics, threading.Lock())


def test_the_short_way(twin: ModuleType) -> None:
    world = Path(twin)
    first, second = world.path.send("t", b"value"), world.path.send("t", b"value", b"key")
    third = world.path.send("t", None, key=None)
    assert [each.index for each in (first, second, third)] == [1, 2, 3]
    assert all(isinstance(each, twin.Delivery) and each.batch is world.batch for each in (first, second, third))
    records = world.batch.buffer.records()
    assert [record[1:3] for record in records[1:]] == [(None, b"value"), (b"key", b"value"), (None, None)]
    assert records[1][0] == first.timestamp > 1_700_000_000_000


def test_the_short_way_with_all_that_may_be_given(twin: ModuleType) -> None:
    world = Path(twin)
    sent = world.path.send("t", b"v", b"k", partition=0, timestamp=5, headers=[("a", b"b")], on_delivery=print)
    assert (sent.index, sent.timestamp) == (1, 5)
    assert world.batch.buffer.records()[1] == (5, b"k", b"v", (("a", b"b"),))
    assert world.batch.hung == [(sent, print)]


@pytest.mark.parametrize(
    "about",
    [
        {"value": "text"},
        {"value": bytearray(b"x")},
        {"key": 5},
        {"key": "text"},
        {"partition": 1},
        {"partition": -1},
        {"partition": "0"},
        {"timestamp": -5},
        {"timestamp": 1 << 80},
        {"timestamp": "now"},
        {"headers": [("a", "text")]},
        {"headers": [(5, b"b")]},
        {"headers": ["abc"]},
        {"headers": (("a", b"b"),)},
        {"headers": [("a", b"text")], "value": b"x" * 600},
        {"value": b"x" * 600},
        {"topic": "unknown"},
    ],
    ids=str,
)
def test_what_takes_the_long_way(twin: ModuleType, about: dict[str, Any]) -> None:
    world = Path(twin)
    given = {"topic": "t", "value": b"v", **about}
    assert world.path.send(**given) == "slowly"
    assert world.batch.buffer.count == 1
    names = ("topic", "value", "key", "partition", "timestamp", "headers", "on_delivery")
    assert world.slow == [tuple(given.get(name) for name in names)]


def test_a_closed_batch_takes_nothing(twin: ModuleType) -> None:
    world = Path(twin)
    world.batch.limit = -1
    assert world.path.send("t", b"v") == "slowly"
    world.topic.current = world.partition.open = None
    assert world.path.send("t", b"v") == "slowly" == world.path.send("t", b"v", b"k")


def delivery(twin: ModuleType) -> tuple[Any, Any]:
    accumulator = Accumulator(Limits(100, 5, 1000, 500, 1000), ManualClock(), wake_sender=lambda: None)
    made: Any = accumulator.batches.append(accumulator.batches.topic("t", 1), 0, 1234, None, b"x", None)
    return twin.Delivery(made.batch, made.index, made.timestamp), made.batch


def test_a_delivery(twin: ModuleType) -> None:
    handle, batch = delivery(twin)
    assert not handle.done() and "on its way" in repr(handle)
    with pytest.raises(ClientTimeoutError):
        handle.result(0)
    called: list[Any] = []
    handle.add_callback(called.append)
    threading.Timer(0.01, batch.complete, kwargs={"base_offset": 40}).start()
    assert handle.result(20) == ("t", 0, 40, 1234)
    assert handle.exception() is None and called == [handle] and "offset 40" in repr(handle)


def test_a_delivery_that_failed(twin: ModuleType) -> None:
    handle, batch = delivery(twin)
    error = KafkaError(ErrorCode.INVALID_RECORD, "bad")
    batch.complete(error=error)
    assert handle.done() and handle.exception() is error and "bad" in repr(handle)
    with pytest.raises(KafkaError, match="bad"):
        handle.result()

    async def wait() -> None:
        await handle

    with pytest.raises(KafkaError, match="bad"):
        asyncio.run(wait())


def test_a_delivery_is_awaited_from_another_loop(twin: ModuleType) -> None:
    handle, batch = delivery(twin)

    async def wait() -> Any:
        asyncio.get_running_loop().call_later(0.01, lambda: threading.Thread(target=batch.complete, args=(7,)).start())
        return await handle

    assert asyncio.run(wait()).offset == 7


def test_a_broker_stamped_the_time(twin: ModuleType) -> None:
    handle, batch = delivery(twin)
    batch.complete(base_offset=0, log_append_time=99)
    assert handle.result().timestamp == 99
