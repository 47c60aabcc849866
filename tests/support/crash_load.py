"""Load for a broker that is killed again and again: writers that note what was acknowledged, a reader, and a judge.

Every record says who wrote it and its number, so that a log can be judged by itself: what was acknowledged must stand
at the offset that the acknowledgement named, and an idempotent writer's records exactly once and in order.
"""

from __future__ import annotations

import random
import threading
import time
from typing import NamedTuple

from confluent_kafka import KafkaError, Message, Producer
from raw_client import ConnectionEnded, RawClient, batch

from barnabas.errors import ErrorCode
from barnabas.records import CompressionType, crc_matches, iter_headers, read_records


class Line(NamedTuple):
    """One record as it stands in a log."""

    offset: int
    value: bytes


class Writer:
    """Runs in a thread until `stop`; `acked` maps (partition, offset) to the value that was acknowledged there."""

    def __init__(self, bootstrap: str, topic: str, partitions: int) -> None:
        self.topic = topic
        self.partitions = partitions
        self.acked: dict[tuple[int, int], bytes] = {}
        self.failures: list[str] = []
        self._bootstrap = bootstrap
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"writer of {topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(150)
        assert not self._thread.is_alive(), f"the writer of {self.topic} does not come to an end"
        assert not self.failures, self.failures[:5]

    def _run(self) -> None:
        try:
            self._write()
        except BaseException as error:
            self.failures.append(repr(error))
            raise

    def _write(self) -> None:
        raise NotImplementedError

    def _note(self, partition: int, offset: int, value: bytes) -> None:
        if self.acked.setdefault((partition, offset), value) != value:
            self.failures.append(f"offset {offset} of partition {partition} was acknowledged twice")


class IdempotentWriter(Writer):
    """librdkafka as modern clients have it: acks=all, idempotent, five requests in flight, retried until delivered."""

    def __init__(self, bootstrap: str, topic: str, partitions: int, rate: int) -> None:
        super().__init__(bootstrap, topic, partitions)
        self.sent = [0] * partitions
        self._rate = rate

    def _write(self) -> None:
        producer = Producer(
            {
                "bootstrap.servers": self._bootstrap,
                "enable.idempotence": True,
                "linger.ms": 2,
                "reconnect.backoff.ms": 20,
                "reconnect.backoff.max.ms": 100,
                "retry.backoff.ms": 20,
                "log_level": 0,
            }
        )
        first = list(range(self.partitions))  # each has records before chance decides
        while not self._stopping.is_set() or first:
            partition = first.pop() if first else random.randrange(self.partitions)
            for _ in range(20):
                value = b"%d:%s" % (self.sent[partition], b"x" * 80)
                self.sent[partition] += 1
                self._produce(producer, value, partition)
            producer.poll(20 / self._rate)
            self._stopping.wait(20 / self._rate)
        if producer.flush(120):
            self.failures.append("not everything was delivered after the last restart")

    def _produce(self, producer: Producer, value: bytes, partition: int) -> None:
        """Waits while the queue is full: the broker may be away for long on a busy machine."""
        while True:
            try:
                producer.produce(self.topic, value, partition=partition, on_delivery=self._on_delivery)
                return
            except BufferError:
                producer.poll(0.1)

    def _on_delivery(self, error: KafkaError | None, message: Message) -> None:
        if error is not None:
            self.failures.append(str(error))
        else:
            partition, offset, value = message.partition(), message.offset(), message.value()
            assert partition is not None and offset is not None and value is not None
            self._note(partition, offset, value)


class RawWriter(Writer):
    """acks=1, one request at a time, batches of all sizes and codecs; what has no response is never sent again."""

    def __init__(self, bootstrap: str, topic: str, seed: int) -> None:
        super().__init__(bootstrap, topic, 1)
        self._chance = random.Random(seed)
        self._number = 0

    def _write(self) -> None:
        while not self._stopping.is_set():
            try:
                with RawClient(self._bootstrap, timeout=30) as client:
                    while not self._stopping.is_set():
                        self._write_batch(client)
                        self._stopping.wait(0.003)
            except (ConnectionEnded, OSError):
                self._stopping.wait(0.02)  # the broker is down

    def _write_batch(self, client: RawClient) -> None:
        values = []
        for _ in range(self._chance.choice((1, 1, 2, 30))):
            values.append(b"%d:%s" % (self._number, bytes(self._chance.choice((0, 100, 3000)))))
            self._number += 1
        response = client.produce(
            self.topic, batch(*values, compression=self._chance.choice(list(CompressionType))), acks=1
        )
        if response.error_code != ErrorCode.NONE:
            self.failures.append(ErrorCode(response.error_code).name)
        for delta, value in enumerate(values):
            self._note(0, response.base_offset + delta, value)


class Reader:
    """Follows one partition; what it has once seen at an offset must be there for good."""

    def __init__(self, bootstrap: str, topic: str) -> None:
        self.seen: dict[int, bytes] = {}
        self.failures: list[str] = []
        self._bootstrap = bootstrap
        self._topic = topic
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"reader of {topic}", daemon=True)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._thread.join(150)
        assert not self.failures, self.failures[:5]

    def _run(self) -> None:
        offset = 0
        while not self._stopping.is_set():
            try:
                with RawClient(self._bootstrap, timeout=30) as client:
                    while not self._stopping.is_set():
                        lines, offset = read_from(client, self._topic, 0, offset, max_wait_ms=100)
                        self.seen.update(lines)
            except (ConnectionEnded, OSError):
                self._stopping.wait(0.02)
            except AssertionError as error:
                self.failures.append(str(error))
                return


def read_from(
    client: RawClient, topic: str, partition: int, offset: int, max_wait_ms: int = 0
) -> tuple[list[Line], int]:
    """One fetch: its records, each batch whole, matching its CRC and following on the one before; the next offset."""
    data = client.fetch(
        topic, offset, partition=partition, partition_max_bytes=4 << 20, min_bytes=1, max_wait_ms=max_wait_ms
    )
    assert data.error_code == ErrorCode.NONE, f"{ErrorCode(data.error_code).name} at {offset} of {topic}-{partition}"
    records = bytes(data.records or b"")
    lines: list[Line] = []
    for position, header in iter_headers(records):
        assert crc_matches(records, position, header), f"wrong CRC at {header.base_offset} of {topic}-{partition}"
        assert header.base_offset == offset or not lines, f"{header.base_offset} follows {offset - 1}"
        for record in read_records(records[position : position + header.size_in_bytes]):
            lines.append(Line(record.offset, record.value or b""))
        offset = header.next_offset
    return lines, offset


def read_log(bootstrap: str, topic: str, partition: int = 0, start: int = 0) -> list[Line]:
    """Everything in a partition from an offset on; fails unless the offsets run without a gap."""
    lines: list[Line] = []
    with RawClient(bootstrap) as client:
        while True:
            # A batch that begins before the start comes whole.
            more, offset = read_from(client, topic, partition, start + len(lines))
            more = [line for line in more if line.offset >= start]
            if not more:
                break
            lines += more
            assert offset == start + len(lines)
    offsets = [line.offset for line in lines]
    assert offsets == list(range(start, start + len(lines))), f"offsets of {topic}-{partition} have gaps"
    return lines


def check_acked(writer: Writer, partition: int, log: list[Line], acked: dict[tuple[int, int], bytes]) -> None:
    """`log` may leave out the beginning of the partition."""
    start = log[0].offset if log else 0
    for (where, offset), value in acked.items():
        if where == partition and offset >= start:
            assert offset < start + len(log), f"acknowledged offset {offset} of {writer.topic}-{partition} is lost"
            found = log[offset - start].value
            assert found == value, f"offset {offset} of {writer.topic}-{partition} holds something else"


def number_of(line: Line) -> int:
    return int(line.value.partition(b":")[0])


def check_once_in_order(log: list[Line], first: int = 0) -> None:
    """Of an idempotent writer: nothing twice, nothing missing in between, in their order, from number `first` on."""
    assert [number_of(line) for line in log] == list(range(first, first + len(log)))


def wait_for_progress(writers: list[Writer], least: int, timeout: float = 120.0) -> None:
    """Until each writer has that many more acknowledgements: the broker is under load again."""
    goals = [len(writer.acked) + least for writer in writers]
    deadline = time.monotonic() + timeout
    while any(len(writer.acked) < goal for writer, goal in zip(writers, goals)):
        assert time.monotonic() < deadline, [
            (writer.topic, len(writer.acked), writer.failures[:3]) for writer in writers
        ]
        time.sleep(0.01)
