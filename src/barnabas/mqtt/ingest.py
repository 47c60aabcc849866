"""Published messages to record batches: all that comes in one turn of the loop for one partition is one batch.

One batch per partition is on its way at a time, so order is kept over retries; what comes meanwhile fills the next one.
A batch that has a message with QoS 1 is written with acks=all, one with QoS 0 alone with acks=0. Each message is called
back with its outcome; what fails for the moment is tried again for a while.
"""

import asyncio
from collections import deque
from collections.abc import Callable
from typing import Final

from barnabas.clock import Clock
from barnabas.errors import ErrorCode
from barnabas.mqtt.partitions import Partitions
from barnabas.net.timers import Timers
from barnabas.records.builder import BatchBuilder

BATCH_BYTES: Final = 512 * 1024
RETRY_MS: Final = 100
GIVE_UP_AFTER_MS: Final = 30_000
OVERHEAD_BYTES: Final = 100

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


class PartitionQueue:
    __slots__ = ("in_flight", "messages", "partition", "topic")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        self.messages: deque[Message] = deque()
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
        if _size(message) > self._max_message_bytes(topic):
            message.on_published(ErrorCode.MESSAGE_TOO_LARGE)
            return
        queue = self._queues.get((topic, partition))
        if queue is None:
            queue = self._queues[topic, partition] = PartitionQueue(topic, partition)
        queue.messages.append(message)
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
            if self._queues.get((queue.topic, queue.partition)) is queue:
                del self._queues[queue.topic, queue.partition]

    def _take(self, queue: PartitionQueue) -> list[Message]:
        limit = min(BATCH_BYTES, self._max_message_bytes(queue.topic))
        taken = [queue.messages.popleft()]
        size = _size(taken[0])
        while queue.messages and size + _size(queue.messages[0]) <= limit:
            message = queue.messages.popleft()
            size += _size(message)
            taken.append(message)
        return taken

    def _send(self, queue: PartitionQueue, messages: list[Message], deadline_ms: int) -> None:
        now_ms = self._clock.now_ms()
        builder = BatchBuilder()
        for message in messages:
            builder.append(now_ms, message.key, message.payload, message.headers)
        acks = -1 if any(message.qos for message in messages) else 0

        def on_appended(error: ErrorCode) -> None:
            if error.retriable and self._clock.monotonic_ms() < deadline_ms:
                self._timers.call_after(RETRY_MS, lambda: self._send(queue, messages, deadline_ms))
                return
            queue.in_flight = False
            for message in messages:
                message.on_published(error)
            if not queue.messages:
                if self._queues.get((queue.topic, queue.partition)) is queue:
                    del self._queues[queue.topic, queue.partition]
            elif queue not in self._due:
                if not self._due:
                    asyncio.get_running_loop().call_soon(self.flush)
                self._due[queue] = None

        self._partitions.append(queue.topic, queue.partition, builder.build(), acks, on_appended)


def _size(message: Message) -> int:
    headers = sum(len(name) + len(value or b"") + 8 for name, value in message.headers)
    return len(message.payload or b"") + len(message.key) + headers + OVERHEAD_BYTES
