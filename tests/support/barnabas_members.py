"""Members of a consumer group through our own consumer, polled in turns, with a diary of their rebalances.

They have what `group_members.Member` has (`partitions`, `poll`, `close`), so both kinds can be polled together.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from barnabas import Consumer
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.types import TopicPartition

Partitions = frozenset[tuple[str, int]]


class Diary(RebalanceListener):
    def __init__(self) -> None:
        self.entries: list[tuple[str, list[int]]] = []
        self.on_revocation: Callable[[], None] | None = None

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        self._write("revoked", partitions)
        if self.on_revocation is not None:
            self.on_revocation()

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        self._write("assigned", partitions)

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._write("lost", partitions)

    def _write(self, what: str, partitions: Sequence[TopicPartition]) -> None:
        self.entries.append((what, [each.partition for each in partitions]))

    def of(self, what: str) -> list[int]:
        return [partition for kind, partitions in self.entries if kind == what for partition in partitions]


class OurMember:
    def __init__(self, bootstrap: str, group: str, topics: Any, **options: Any) -> None:
        given = {
            "group_id": group,
            "auto_offset_reset": "earliest",
            "enable_auto_commit": False,
            "retry_backoff_ms": 20,
            "fetch_max_wait_ms": 100,
        }
        if options.get("group_protocol") != "consumer":
            given |= {"session_timeout_ms": 6000, "heartbeat_interval_ms": 200}
        self.consumer = Consumer(bootstrap, **given | options)
        self.diary = Diary()
        self.records: list[tuple[str, int, int]] = []
        self.consumer.subscribe(topics, listener=self.diary)

    @property
    def partitions(self) -> Partitions:
        return frozenset(tuple(each) for each in self.consumer.assignment())

    @property
    def generation(self) -> int:
        return self.consumer.group_metadata().generation_id

    def poll(self, seconds: float = 0.02) -> None:
        self.records += [(each.topic, each.partition, each.offset) for each in self.consumer.poll(seconds)]

    def close(self) -> None:
        self.consumer.close(10)


def poll_until(members: Iterable[Any], wanted: Callable[[], object], timeout: float = 30.0) -> None:
    """Poll all of them in turns until it is as wanted."""
    deadline = time.monotonic() + timeout
    everyone = list(members)
    while not wanted():
        for member in everyone:
            member.poll()
        state = [(type(member).__name__, sorted(member.partitions)) for member in everyone]
        assert time.monotonic() < deadline, f"not within {timeout} s: {state}"


def is_shared(members: Sequence[Any], topic: str, count: int) -> bool:
    """Each partition of the topic has one owner, and nobody is idle."""
    owned = sorted(partition for member in members for partition in member.partitions)
    return owned == [(topic, number) for number in range(count)] and all(member.partitions for member in members)


def poll_until_shared(members: Sequence[Any], topic: str, count: int, timeout: float = 30.0) -> None:
    poll_until(members, lambda: is_shared(members, topic, count), timeout)
