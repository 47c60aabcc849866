"""Batches in queues: order, memory, when a batch may be sent, and what the sender is woken for."""

from __future__ import annotations

import dataclasses
import random
import re
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.client.producer import accumulator
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.batch import FlushGroup, ProducerBatch
from barnabas.client.producer.batch_queues import NEVER_MS
from barnabas.client.producer.buffer_pool import Limits, size_bound
from barnabas.client.producer.fast_path import Delivery
from barnabas.client.producer.queues import TopicQueues
from barnabas.clock import ManualClock

LIMITS = Limits(batch_size=200, linger_ms=5, buffer_memory=4000, max_request_size=800, delivery_timeout_ms=1000)


class World:
    def __init__(self, limits: Limits = LIMITS, partitions: int = 1) -> None:
        self.clock = ManualClock()
        self.wakes = 0
        self.accumulator = Accumulator(
            limits, self.clock, wake_sender=self._wake, random_source=random.Random(1)
        ).batches
        self.topic: TopicQueues = self.accumulator.topic("t", partitions)
        self.topic.available = list(range(partitions))
        for queue in self.topic.partitions:
            queue.leader = 0
        self.accumulator.sleeps_until_ms = NEVER_MS

    def _wake(self) -> None:
        self.wakes += 1

    def append(self, value: bytes, partition: int = 0, granted: int = 0) -> Any:
        return self.accumulator.append(self.topic, partition, 1000, None, value, None, granted)

    def take(self, partition: int = 0) -> ProducerBatch:
        return self.accumulator.take(self.topic.partitions[partition])

    def finish(self, batch: ProducerBatch, **how: Any) -> None:
        batch.complete(**how)
        self.accumulator.finish(batch)

    def sendable(self, partition: int = 0) -> bool:
        return self.accumulator.is_sendable(self.topic.partitions[partition], self.clock.monotonic_ms())


def values(batch: ProducerBatch) -> list[bytes | None]:
    assert batch.buffer is not None
    return [record[2] for record in batch.buffer.records()]


def test_sendable_when_full_or_old() -> None:
    world = World()
    world.append(b"x" * 50)
    assert world.wakes == 1, "the sender sets its alarm for linger.ms"
    assert not world.sendable()
    world.clock.advance(5)
    assert world.sendable()
    world = World()
    world.accumulator.sleeps_until_ms = 5
    world.append(b"x" * 50)
    assert world.wakes == 0, "it looks in time anyway"
    world.append(b"x" * 120)
    assert world.sendable() and world.wakes == 1


def test_a_batch_fills_on_until_it_is_taken() -> None:
    world = World()
    for _ in range(6):
        world.append(b"x" * 90)
    assert len(world.topic.partitions[0].batches) == 1, "beyond batch.size, as nobody took it"
    for _ in range(6):
        world.append(b"x" * 90)
    assert len(world.topic.partitions[0].batches) == 2, "but not beyond max.request.size"
    first = world.take()
    assert first.closed and first.size <= 800 and first.limit == -1


def test_a_given_batch_size_bounds_a_batch() -> None:
    world = World(dataclasses.replace(LIMITS, fills_while_busy=False))
    for _ in range(6):
        world.append(b"x" * 60)
    sizes = [batch.current_size() for batch in world.topic.partitions[0].batches]
    assert max(sizes) <= 200 and len(sizes) == 3, "although nobody took the first"
    assert all(batch.closed for batch in list(world.topic.partitions[0].batches)[:-1]) and world.wakes == 1


def test_a_record_larger_than_batch_size_goes_alone() -> None:
    world = World(dataclasses.replace(LIMITS, fills_while_busy=False))
    for length in (10, 500, 10, 10):
        world.append(b"x" * length)
    assert [len(values(batch)) for batch in world.topic.partitions[0].batches] == [1, 1, 2]


def test_no_batch_is_larger_than_a_request() -> None:
    world = World(dataclasses.replace(LIMITS, batch_size=2000, fills_while_busy=False))
    for _ in range(12):
        world.append(b"x" * 190)
    assert max(batch.current_size() for batch in world.topic.partitions[0].batches) <= 800


def test_a_busy_node_is_not_a_reason_to_wake_the_sender() -> None:
    world = World()
    world.accumulator.busy_nodes.add(0)
    for _ in range(5):
        world.append(b"x" * 190)
    assert world.wakes == 0


def test_memory_is_counted_and_comes_back() -> None:
    world = World()
    pool = world.accumulator.pool
    taken = []
    while not isinstance(outcome := world.append(b"x" * 700), int):
        taken.append(outcome)
    assert outcome == size_bound(None, b"x" * 700, None)
    assert pool.available_bytes < outcome
    while world.accumulator.active:
        world.finish(world.take())
    assert pool.available_bytes == 4000
    assert all(delivery.done() for delivery in taken)
    assert isinstance(world.append(b"x"), Delivery)


def test_granted_memory_that_is_not_needed_goes_back() -> None:
    world = World()
    world.append(b"x")
    assert world.accumulator.pool.try_take(500)
    assert isinstance(world.append(b"y", granted=500), Delivery)
    assert world.accumulator.pool.available_bytes == 4000 - 200


def test_without_batching_each_record_is_alone() -> None:
    world = World(Limits(0, 5, 4000, 800, 1000))
    for _ in range(3):
        world.append(b"x")
    assert len(world.topic.partitions[0].batches) == 3


def test_sticky_partitions_get_the_same_bytes() -> None:
    world = World(Limits(200, 5, 1_000_000, 800, 1000), partitions=4)
    counts = [0] * 4
    for number in range(4000):
        delivery = world.append(b"x" * 20, -1)
        counts[delivery.batch.tp.partition] += 1
        if number % 50 == 0:
            for queue in list(world.accumulator.active):
                world.finish(world.accumulator.take(queue))
    assert min(counts) > 800, counts


@pytest.mark.parametrize("fills_while_busy", [True, False])
def test_records_that_fill_a_batch_alone_reach_every_partition(fills_while_busy: bool) -> None:
    limits = Limits(200, 5, 1_000_000, 800, 1000, fills_while_busy=fills_while_busy)
    for size in (limits, dataclasses.replace(limits, batch_size=0)):
        world = World(size, partitions=4)
        reached = {world.append(b"x" * 500, -1).batch.tp.partition for _ in range(100)}
        assert reached == {0, 1, 2, 3}


def test_expired() -> None:
    world = World()
    world.append(b"old")
    world.take()
    world.append(b"in the queue")
    world.clock.advance(999)
    assert world.accumulator.expired(world.clock.monotonic_ms()) == []
    world.clock.advance(1)
    assert len(world.accumulator.expired(world.clock.monotonic_ms())) == 1


def test_a_flush_waits_for_all_parts_of_a_split_batch() -> None:
    world = World()
    deliveries = [world.append(b"%02d" % number * 20) for number in range(12)]
    called: list[int] = []
    deliveries[7].add_callback(lambda delivery: called.append(delivery.result(0).offset))
    batch = world.take()
    flushed: list[bool] = []
    batch.flushes.append(FlushGroup(1, lambda: flushed.append(True)))
    available = world.accumulator.pool.available_bytes
    parts = world.accumulator.split(batch, 300)
    assert len(parts) > 1 and world.accumulator.pool.available_bytes == available
    assert [value for part in parts for value in values(part)] == [b"%02d" % number * 20 for number in range(12)]
    again = world.accumulator.split(parts[0], 150)
    offset = 0
    for part in [*again, *parts[1:]]:
        assert not flushed
        world.finish(part, base_offset=offset)
        offset += part.record_count
    assert flushed == [True] and called == [7]
    assert [delivery.result(0).offset for delivery in deliveries] == list(range(12))
    assert world.accumulator.pool.available_bytes == 4000


@given(st.data())
@settings(max_examples=60, deadline=None)
def test_order_and_memory_whatever_happens(data: st.DataObject) -> None:
    """Appends, sends, retries, splits and completions in any order: a partition's records stay in order, once each."""
    world = World(partitions=2)
    accumulator = world.accumulator
    next_value, next_sequence = [0, 0], [0, 0]
    in_flight: list[list[ProducerBatch]] = [[], []]
    written: list[list[bytes | None]] = [[], []]
    for _ in range(data.draw(st.integers(1, 60))):
        partition = data.draw(st.integers(0, 1))
        queue = world.topic.partitions[partition]
        step = data.draw(st.sampled_from(["append", "append", "append", "take", "ack", "retry", "split"]))
        if step == "append":
            value = b"%05d" % next_value[partition] * data.draw(st.integers(1, 30))
            if isinstance(world.append(value, partition), Delivery):
                next_value[partition] += 1
        elif step == "take" and queue.batches:
            first = queue.batches[0]
            if first.has_sequence and in_flight[partition]:
                continue
            batch = accumulator.take(queue)
            if not batch.has_sequence:
                batch.base_sequence = next_sequence[partition]
                next_sequence[partition] += batch.record_count
            in_flight[partition].append(batch)
        elif step == "ack" and in_flight[partition]:
            if any(b.has_sequence and b.base_sequence < in_flight[partition][0].base_sequence for b in queue.batches):
                continue  # the broker would refuse it: one before it is missing
            batch = in_flight[partition].pop(0)
            written[partition] += values(batch)
            world.finish(batch)
        elif step == "retry" and in_flight[partition]:
            accumulator.put_back(in_flight[partition].pop(data.draw(st.integers(0, len(in_flight[partition]) - 1))))
        elif step == "split" and in_flight[partition] and in_flight[partition][0].record_count > 1:
            batch = in_flight[partition].pop(0)
            sequence = batch.base_sequence
            for part in accumulator.split(batch, batch.size // 2):
                part.base_sequence = sequence
                sequence += part.record_count
                accumulator.put_back(part)
        reserved = sum(batch.reserved_bytes for batch in accumulator.incomplete)
        assert accumulator.pool.available_bytes == 4000 - reserved
    for partition in range(2):
        rest = sorted(
            [*in_flight[partition], *(b for b in world.topic.partitions[partition] if b.has_sequence)],
            key=lambda batch: batch.base_sequence,
        )
        fresh = [batch for batch in world.topic.partitions[partition] if not batch.has_sequence]
        everything = written[partition] + [value for batch in rest + fresh for value in values(batch)]
        assert [int(value[:5]) for value in everything if value] == list(range(next_value[partition]))
        queued = [batch.has_sequence for batch in world.topic.partitions[partition]]
        assert queued == sorted(queued, reverse=True), "what was sent before comes first"
        sequences = [batch.base_sequence for batch in world.topic.partitions[partition] if batch.has_sequence]
        assert sequences == sorted(sequences), "and in its order"


def test_a_record_that_cannot_be_encoded_takes_no_memory() -> None:
    world = World()
    with pytest.raises(TypeError):
        world.accumulator.append(world.topic, 0, 1, None, "text", None)  # type: ignore[arg-type]
    assert world.accumulator.pool.available_bytes == 4000 and not world.accumulator.active


def test_only_the_accumulator_takes_its_lock() -> None:
    """The compiled fast path and its twin are handed the lock by `open_path`."""
    folder = Path(accumulator.__file__).parent
    takers = {path.name for path in folder.glob("*.py") if re.search(r"with [\w.]*_?lock\b", path.read_text())}
    assert takers == {"accumulator.py", "_fast_pure.py", "at_exit.py"}
