"""What a librdkafka user notices while brokers come and go: the longest time without an acknowledgement.

A producer with acks=all and its default settings writes one record after the other to each partition, every few
milliseconds, whether or not those before are acknowledged.
"""

from __future__ import annotations

import itertools
import threading
import time
from dataclasses import dataclass, field
from types import TracebackType
from typing import Any, Self

from confluent_kafka import Producer

INTERVAL_S = 0.005


@dataclass
class Writes:
    acknowledged: list[float] = field(default_factory=list)
    """Moments of acknowledgements, by the monotonic clock."""
    sent_at: list[float] = field(default_factory=list)
    """When each of those was sent."""
    failures: list[str] = field(default_factory=list)


class SteadyWriter:
    def __init__(self, bootstrap: str, topic: str, partition: int, **settings: Any) -> None:
        self.writes = Writes()
        self._topic = topic
        self._partition = partition
        self._producer = Producer(
            {"bootstrap.servers": bootstrap, "acks": "all", "linger.ms": 0, "log_level": 0, **settings}
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name="steady writer", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        self.wait_for_acknowledgement(0.0, 180)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self._stopping.set()
        self._thread.join()

    def wait_for_acknowledgement(self, since: float, timeout: float) -> float:
        """Of a record that was sent after `since`: the moment at which it came."""
        ends = time.monotonic() + timeout
        while time.monotonic() < ends:
            for sent, acknowledged in reversed(list(zip(self.writes.sent_at, self.writes.acknowledged))):
                if sent < since:
                    break
                return acknowledged
            time.sleep(0.01)
        raise AssertionError(f"no write was acknowledged within {timeout:.0f} s: {self.writes.failures[-1:]}")

    def longest_gap(self, since: float = 0.0) -> float:
        moments = [each for each in self.writes.acknowledged if each >= since]
        return max((later - earlier for earlier, later in itertools.pairwise(moments)), default=float("inf"))

    def _run(self) -> None:
        number = 0
        while not self._stopping.is_set():
            sent = time.monotonic()

            def on_delivery(error: object, _message: object, sent: float = sent) -> None:
                if error is not None:
                    self.writes.failures.append(str(error))
                else:
                    self.writes.sent_at.append(sent)
                    self.writes.acknowledged.append(time.monotonic())

            self._producer.produce(self._topic, b"%d" % number, partition=self._partition, on_delivery=on_delivery)
            number += 1
            self._producer.poll(INTERVAL_S)
        self._producer.flush(180)
