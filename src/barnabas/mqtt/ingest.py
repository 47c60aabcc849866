"""Published messages to record batches: all that comes in one turn of the loop for one partition is one batch.

One batch per partition is on its way at a time, so order is kept over retries; what comes meanwhile fills the next one.
A batch that has a message with QoS 1 is written with acks=all, one with QoS 0 alone with acks=0. Each message is called
back with its outcome (QoS 0: only if it failed); what fails for the moment is tried again for a while.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import ErrorCode
from barnabas.mqtt.partitions import Partitions
from barnabas.net.timers import Timers
from barnabas.records.builder import batch_of_encoded, encode_headers
from barnabas.records.varint import encode_varint

BATCH_BYTES: Final = 512 * 1024
RETRY_MS: Final = 100
GIVE_UP_AFTER_MS: Final = 30_000
OVERHEAD_BYTES: Final = 100
_NULL: Final = encode_varint(-1)

OnPublished = Callable[[ErrorCode], None]
Headers = list[tuple[str, bytes | None]]


class Message:
    __slots__ = ("headers", "key", "on_published", "payload", "qos")

    def __init__(
        self, key: bytes, payload: bytes | None, headers: Headers, qos: int, on_published: OnPublished
    ) -> None:
        self.key = key
        self.payload = payload
        self.headers = headers
        self.qos = qos
        self.on_published = on_published


Item = tuple[bytes, bytes | None, bytes, int, int, OnPublished]
"""A message as it waits: key and headers as they stand in the record, the payload between them; QoS, size."""


class PartitionQueue:
    __slots__ = ("in_flight", "messages", "partition", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.messages: deque[Item] = deque()
        self.in_flight = False


class Ingest:
    def __init__(
        self, partitions: Partitions, timers: Timers, clock: Clock, max_message_bytes: Callable[[str], int]
    ) -> None:
        self._partitions = partitions
        self._timers = timers
        self._clock = clock
        self._max_message_bytes = max_message_bytes
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        self._due: dict[PartitionQueue, None] = {}

    def publish(self, topic: str, partition: int, message: Message) -> None:
        before, after = encoded_key(message.key), encode_headers(message.headers)
        size = len(message.payload or b"") + len(before) + len(after) + OVERHEAD_BYTES
        if size > self._max_message_bytes(topic):
            message.on_published(ErrorCode.MESSAGE_TOO_LARGE)
            return
        queue = self.queue(topic, partition)
        queue.messages.append((before, message.payload, after, message.qos, size, message.on_published))
        self.on_added(queue)

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        """Where messages for the partition wait, in this turn of the loop. Call `on_added` afterwards."""
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = PartitionQueue(topic, partition)
        return queue

    def on_added(self, queue: PartitionQueue) -> None:
        if not queue.in_flight and queue not in self._due:
            if not self._due:
                asyncio.get_running_loop().call_soon(self.flush)
            self._due[queue] = None

    def is_busy(self, topic: str, partition: int) -> bool:
        """Whether something is published that is not written yet."""
        return (topic, partition) in self._queues

    def flush(self) -> None:
        """Write what was published so far."""
        due, self._due = self._due, {}
        for queue in due:
            self._send_next(queue)

    def _send_next(self, queue: PartitionQueue) -> None:
        while queue.messages and not queue.in_flight:
            batch = self._take(queue)
            queue.in_flight = True
            self._send(queue, batch, self._clock.monotonic_ms() + GIVE_UP_AFTER_MS)
        if not queue.messages and not queue.in_flight:
            self._forget(queue)

    def _forget(self, queue: PartitionQueue) -> None:
        if self._queues.get((queue.topic, queue.partition)) is queue:
            del self._queues[queue.topic, queue.partition]

    def _take(self, queue: PartitionQueue) -> list[Item]:
        limit = min(BATCH_BYTES, self._max_message_bytes(queue.topic))
        waiting = queue.messages
        taken = [waiting.popleft()]
        size = taken[0][4]
        while waiting:
            size += waiting[0][4]
            if size > limit:
                break
            taken.append(waiting.popleft())
        return taken

    def _send(self, queue: PartitionQueue, messages: list[Item], deadline_ms: int) -> None:
        batch = batch_of_encoded(_encode(messages), len(messages), self._clock.now_ms())
        acks = -1 if any(message[3] for message in messages) else 0

        def on_appended(error: ErrorCode) -> None:
            if error.retriable and self._clock.monotonic_ms() < deadline_ms:
                self._timers.call_after(RETRY_MS, lambda: self._send(queue, messages, deadline_ms))
                return
            queue.in_flight = False
            for *_, qos, _, on_published in messages:
                if qos or error is not ErrorCode.NONE:
                    on_published(error)
            if not queue.messages:
                self._forget(queue)
            elif queue not in self._due:
                if not self._due:
                    asyncio.get_running_loop().call_soon(self.flush)
                self._due[queue] = None

        self._partitions.append(queue.topic, queue.partition, batch, acks, on_appended)


def encoded_key(key: bytes) -> bytes:
    """As it stands in a record."""
    return encode_varint(len(key)) + key


def _encode(messages: list[Item]) -> bytes:
    """Records of one time: length | attributes, timestamp delta | offset delta | key | value | headers"""
    parts: list[bytes] = []
    for index, (before, payload, after, _, _, _) in enumerate(messages):
        number = encode_varint(index)
        if payload is None:
            length, payload = _NULL, b""
        else:
            length = encode_varint(len(payload))
        size = 2 + len(number) + len(before) + len(length) + len(payload) + len(after)
        parts += (encode_varint(size), b"\0\0", number, before, length, payload, after)
    return b"".join(parts)
