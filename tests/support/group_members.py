"""Members of a consumer group through librdkafka, polled together on one thread, with a diary of their rebalances."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from typing import Any

from confluent_kafka import Consumer, KafkaError, KafkaException, TopicPartition

Partitions = frozenset[tuple[str, int]]


class Member:
    """One consumer. `assigned` and `revoked` count its rebalances, `records` holds what it read, in order."""

    def __init__(self, bootstrap: str, group: str, topics: list[str], **settings: Any) -> None:
        given = {
            "bootstrap.servers": bootstrap,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            "session.timeout.ms": 6000,
            "heartbeat.interval.ms": 200,
        }
        if settings.get("group_protocol") == "consumer":
            del given["session.timeout.ms"], given["heartbeat.interval.ms"]
        self.consumer = Consumer(given | {key.replace("_", "."): value for key, value in settings.items()})
        self.records: list[tuple[str, int, int]] = []
        self.values: list[bytes] = []
        self.assigned = 0
        self.revoked = 0
        self.lost = 0
        self.commits_on_revoke = False
        self.consumer.subscribe(topics, on_assign=self._on_assign, on_revoke=self._on_revoke, on_lost=self._on_lost)

    @property
    def partitions(self) -> Partitions:
        return frozenset((each.topic, each.partition) for each in self.consumer.assignment())

    def poll(self, seconds: float = 0.02) -> None:
        message = self.consumer.poll(seconds)
        if message is None:
            return
        if message.error():
            raise KafkaException(message.error())
        self.records.append((message.topic(), message.partition(), message.offset()))
        self.values.append(message.value())

    def commit(self) -> None:
        """What was read so far, if anything was.

        Another member may have left just now: until the next heartbeat has told this one its new epoch (KIP-848),
        commits are refused, by Apache Kafka too, and have to be tried again.
        """
        deadline = time.monotonic() + 10
        while True:
            try:
                self.consumer.commit(asynchronous=False)
                return
            except KafkaException as error:
                code = error.args[0].code()
                if code == KafkaError._NO_OFFSET:
                    return
                if code != KafkaError.STALE_MEMBER_EPOCH or time.monotonic() > deadline:
                    raise
                time.sleep(0.02)

    def close(self) -> None:
        self.consumer.close()

    def _on_assign(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.assigned += 1

    def _on_revoke(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.revoked += 1
        if self.commits_on_revoke:
            self.commit()

    def _on_lost(self, _consumer: Consumer, _partitions: list[TopicPartition]) -> None:
        self.lost += 1


def poll_until(members: Iterable[Member], wanted: Callable[[], object], timeout: float = 30.0) -> None:
    """Poll all of them in turns until it is as wanted."""
    deadline = time.monotonic() + timeout
    everyone = list(members)
    while not wanted():
        for member in everyone:
            member.poll()
        state = [(sorted(member.partitions), len(member.records)) for member in everyone]
        assert time.monotonic() < deadline, f"not within {timeout} s: {state}"


def poll_until_shared(members: list[Member], topic: str, count: int, timeout: float = 30.0) -> None:
    """Until the partitions of the topic are spread over all members, each owned once and nobody idle."""
    poll_until(members, lambda: is_shared(members, topic, count), timeout)


def is_shared(members: list[Member], topic: str, count: int) -> bool:
    owned = [partition for member in members for partition in member.partitions]
    return sorted(owned) == [(topic, number) for number in range(count)] and all(
        member.partitions for member in members
    )
