"""Members of a consumer group through other people's clients, with the same handles as `barnabas_members.OurMember`."""

from __future__ import annotations

import asyncio
import threading
import time
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from aiokafka import AIOKafkaConsumer
from aiokafka.coordinator.assignors.range import RangePartitionAssignor as AioRange
from aiokafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor as AioRoundRobin
from aiokafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor as AioSticky
from group_members import Member as ConfluentMember
from kafka import KafkaConsumer
from kafka.coordinator.assignors.cooperative_sticky import CooperativeStickyAssignor
from kafka.coordinator.assignors.range import RangePartitionAssignor
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor
from kafka.coordinator.assignors.sticky.sticky_assignor import StickyPartitionAssignor

Partitions = frozenset[tuple[str, int]]

KAFKA_PYTHON_ASSIGNORS = {
    "range": RangePartitionAssignor,
    "roundrobin": RoundRobinPartitionAssignor,
    "sticky": StickyPartitionAssignor,
    "cooperative-sticky": CooperativeStickyAssignor,
}
AIOKAFKA_ASSIGNORS = {"range": AioRange, "roundrobin": AioRoundRobin, "sticky": AioSticky}
SETTINGS: dict[str, Any] = {
    "auto_offset_reset": "earliest",
    "enable_auto_commit": False,
    "session_timeout_ms": 6000,
    "heartbeat_interval_ms": 200,
}


class KafkaPythonMember:
    """In a thread of its own, with long polls: one that ends while SyncGroup gets a response makes kafka-python forget
    the response, and it waits forever with its heartbeats off."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        assignors = [KAFKA_PYTHON_ASSIGNORS[strategy]]
        self.consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=assignors,
            **SETTINGS,
        )
        self._ending = threading.Event()
        self._ended: Future[None] = ThreadPoolExecutor(1).submit(self._run)

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self.consumer.poll(timeout_ms=500)
        finally:
            self.consumer.close()

    @property
    def partitions(self) -> Partitions:
        return frozenset((each.topic, each.partition) for each in self.consumer.assignment())

    def poll(self, seconds: float = 0.02) -> None:
        """It does so by itself; if that has failed, it shows here."""
        if self._ended.done():
            self._ended.result()
        time.sleep(seconds)

    def close(self) -> None:
        self._ending.set()
        self._ended.result(30)


class AiokafkaMember:
    """On a loop of its own, which runs while it is polled."""

    def __init__(self, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        self._loop = asyncio.new_event_loop()
        self._loop.run_until_complete(self._start(bootstrap, group, topic, strategy))

    async def _start(self, bootstrap: str, group: str, topic: str, strategy: str) -> None:
        self.consumer = AIOKafkaConsumer(
            topic,
            bootstrap_servers=bootstrap,
            group_id=group,
            partition_assignment_strategy=(AIOKAFKA_ASSIGNORS[strategy],),
            **SETTINGS,
        )
        # start() waits for the first assignment, which others in this thread must be polled for.
        self._starting = asyncio.ensure_future(self.consumer.start())

    @property
    def partitions(self) -> Partitions:
        return frozenset((each.topic, each.partition) for each in self.consumer.assignment() or ())

    def poll(self, seconds: float = 0.02) -> None:
        self._loop.run_until_complete(asyncio.sleep(seconds))
        if self._starting.done():
            self._starting.result()

    def close(self) -> None:
        self._loop.run_until_complete(self._starting)
        self._loop.run_until_complete(self.consumer.stop())
        self._loop.close()


def foreign_member(client: str, bootstrap: str, group: str, topic: str, strategy: str) -> Any:
    """`strategy` is an assignor, or kip848."""
    if client == "kafka-python":
        return KafkaPythonMember(bootstrap, group, topic, strategy)
    if client == "aiokafka":
        return AiokafkaMember(bootstrap, group, topic, strategy)
    if strategy == "kip848":
        return ConfluentMember(bootstrap, group, [topic], group_protocol="consumer")
    return ConfluentMember(bootstrap, group, [topic], partition_assignment_strategy=strategy)
