"""A load of delayed records, and what must be true of their deliveries: each once, none early, in due order.

Intake and target stamp records as they are appended, so a delivered record tells when it arrived. Its value is its
number; the due time and the moment of the acknowledgement are remembered by the load.
"""

from __future__ import annotations

import threading
import time
from random import Random
from typing import Self

from eventually import eventually

from barnabas import Admin, Consumer, Producer
from barnabas.client.consumer import ConsumerRecord
from barnabas.client.pending_deliveries import PendingReader, group_of

TARGET, INTAKE = "orders", "orders.delayed"
STAMPED = {"message.timestamp.type": "LogAppendTime", "min.insync.replicas": "2"}
PATIENCE_S = 180.0


def make_topics(admin: Admin, partitions: int, replicas: int) -> None:
    admin.create_topic(TARGET, partitions, replicas, STAMPED)
    admin.create_topic(INTAKE, partitions, replicas, {**STAMPED, "delay.target.topic": TARGET})


class DelayedLoad:
    """Sends from a thread until it is left; every record is acknowledged by then."""

    def __init__(self, bootstrap: str, per_second: int, longest_ms: int, seed: int) -> None:
        self._bootstrap = bootstrap
        self._pause_s = 1 / per_second
        self._longest_ms = longest_ms
        self._random = Random(seed)
        self._stopped = threading.Event()
        self._thread = threading.Thread(target=self._run, name="delayed load")
        self._failure: BaseException | None = None
        self.due_ms: list[int] = []
        self.acknowledged_ms: dict[int, int] = {}

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        self._thread.join()
        if self._failure is not None:
            raise self._failure

    def wait_for(self, more: int) -> None:
        """Until so many more were acknowledged."""
        wanted = len(self.acknowledged_ms) + more
        eventually(lambda: self._failure is not None or len(self.acknowledged_ms) >= wanted, timeout=PATIENCE_S)

    def _run(self) -> None:
        try:
            with Producer(self._bootstrap, linger_ms=0, retry_backoff_ms=20) as producer:
                sent = []
                while not self._stopped.is_set():
                    sent.append(self._send(producer))
                    time.sleep(self._pause_s)
                for each in sent:
                    each.result(PATIENCE_S)
        except BaseException as failure:
            self._failure = failure

    def _send(self, producer: Producer):  # type: ignore[no-untyped-def]
        number = len(self.due_ms)
        due_ms = _now_ms() + self._random.randrange(self._longest_ms)
        self.due_ms.append(due_ms)
        key = b"%d" % self._random.randrange(50)
        headers = [("deliver-at", b"%d" % due_ms)]
        sent = producer.send(INTAKE, b"%d" % number, key=key, headers=headers)
        sent.add_callback(lambda done: self.acknowledged_ms.setdefault(number, _now_ms()))
        return sent


def check_deliveries(bootstrap: str, load: DelayedLoad) -> list[ConsumerRecord]:
    """Waits until nothing is pending any more; what was delivered then."""
    assert set(load.acknowledged_ms) == set(range(len(load.due_ms)))
    eventually(lambda: pending_count(bootstrap) == 0, timeout=PATIENCE_S)
    found = delivered(bootstrap)
    numbers = [int(each.value) for each in found]
    assert sorted(numbers) == list(range(len(load.due_ms))), "each once"
    early = [number for number, each in zip(numbers, found) if each.timestamp < load.due_ms[number]]
    assert early == []
    for partition in {each.partition for each in found}:
        _check_order([each for each in found if each.partition == partition], load)
    return found


def _check_order(found: list[ConsumerRecord], load: DelayedLoad) -> None:
    """Of one partition, where all come from one partition of the intake: as many, and with the same keys.

    A record may only come behind one that is due later if that was due before it was acknowledged.
    """
    latest = (-1, -1)
    for each in found:
        number, offset = int(each.value), int(dict(each.headers)["delayed-offset"] or b"")
        assert int(dict(each.headers)["delayed-partition"] or b"") == each.partition
        key = (load.due_ms[number], offset)
        assert key > latest or load.acknowledged_ms[number] > latest[0], (key, latest)
        latest = max(latest, key)


def pending_count(bootstrap: str) -> int:
    with Admin(bootstrap) as admin, Consumer(bootstrap, group_id=None, isolation_level="read_committed") as consumer:
        topic = admin.describe_topics([INTAKE])[INTAKE]
        numbers = [each.partition for each in topic.partitions]
        offsets = admin.list_group_offsets(group_of(INTAKE))
        waiting = PendingReader(consumer, INTAKE, topic.topic_id, numbers, offsets).read(1_000_000, 60.0)
        return len(waiting.rows) if waiting.is_complete else -1


def delivered(bootstrap: str) -> list[ConsumerRecord]:
    found: list[ConsumerRecord] = []
    with Consumer(bootstrap, group_id=None, auto_offset_reset="earliest", isolation_level="read_committed") as consumer:
        partitions = consumer.partitions_for(TARGET)
        keys = [(TARGET, each.partition) for each in partitions]
        consumer.assign(keys)
        ends = consumer.end_offsets(consumer.assignment())
        while any(consumer.position(key) < end for key, end in ends.items()):
            found += consumer.poll(1.0)
    return found


def _now_ms() -> int:
    return time.time_ns() // 1_000_000
