"""Delayed messages on this broker: an intake for each partition that it leads of a topic with `delay.target.topic`.

The broker passes on every change of the cluster's image. `figures` are for the metrics.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass, replace

from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.delayed_intake import DelayedIntake, ResolveTopicConfig
from barnabas.server.delayed_transaction import DelayedTransactions
from barnabas.server.record_work import RecordWork
from barnabas.server.replicas import Replicas
from barnabas.types import NodeId, TopicPartition


@dataclass(slots=True)
class IntakeFigures:
    """Of the partitions of an intake that this broker leads; the counters also of those that it led before."""

    pending: int = 0
    overdue_ms: int = 0
    delivered: int = 0
    undeliverable: int = 0

    def add(self, intake: DelayedIntake) -> None:
        self.pending += intake.pending_count
        self.overdue_ms = max(self.overdue_ms, intake.overdue_ms)
        self.count(intake)

    def count(self, intake: DelayedIntake) -> None:
        self.delivered += intake.delivered_count
        self.undeliverable += intake.undeliverable_count


class DelayedMessages:
    def __init__(
        self,
        node_id: NodeId,
        replicas: Replicas,
        links: BrokerLinks,
        image: Callable[[], ClusterImage],
        topic_config: ResolveTopicConfig,
        clock: Clock,
        record_work: RecordWork,
    ) -> None:
        self._node_id = node_id
        self._replicas = replicas
        self._links = links
        self._image = image
        self._topic_config = topic_config
        self._clock = clock
        self._record_work = record_work
        self._intakes: dict[TopicPartition, tuple[DelayedIntake, asyncio.Task[None]]] = {}
        self._ended: set[asyncio.Task[None]] = set()
        self._stopped = False
        self._counted_before: dict[str, IntakeFigures] = {}

    def figures(self) -> dict[str, IntakeFigures]:
        """By topic."""
        found = {topic: replace(before) for topic, before in self._counted_before.items()}
        for key, (intake, _) in self._intakes.items():
            found.setdefault(key.topic, IntakeFigures()).add(intake)
        return found

    def on_delta(self, delta: Delta) -> None:
        """Called after the replicas have taken the delta in."""
        if self._stopped:
            return
        image = delta.image
        touched = {topic.name for topic, _ in delta.partitions} | {topic.name for topic in delta.topics_deleted}
        touched |= {resource.name for resource in delta.configs_changed}
        wanted = {name for name in touched if image.topic(name) and self._topic_config(image, name).delay_target_topic}
        for key in [key for key in self._intakes if key.topic in touched]:
            if key.topic not in wanted or not self._still_leads(key):
                self._close(key)
        for topic in delta.topics_deleted:
            self._counted_before.pop(topic.name, None)
        for name in sorted(wanted):
            for partition in image.topics[name].partitions:
                key = TopicPartition(name, partition.partition)
                if partition.leader == self._node_id and key not in self._intakes:
                    self._open(key)
        if touched:
            for intake, _ in self._intakes.values():
                intake.wake()

    async def stop(self) -> None:
        self._stopped = True
        for key in list(self._intakes):
            self._close(key)
        await asyncio.gather(*self._ended, return_exceptions=True)

    def _still_leads(self, key: TopicPartition) -> bool:
        try:
            hosted = self._replicas.find(*key)
        except KafkaError:
            return False
        intake = self._intakes[key][0]
        return intake.hosted is hosted and hosted.state.is_leader and hosted.state.leader_epoch == intake.leader_epoch

    def _open(self, key: TopicPartition) -> None:
        try:
            hosted = self._replicas.find(*key)
        except KafkaError:
            return
        transactions = DelayedTransactions(hosted, self._node_id, self._links, self._image, self._clock)
        intake = DelayedIntake(hosted, transactions, self._image, self._topic_config, self._clock, self._record_work)
        task = asyncio.get_running_loop().create_task(intake.run(), name=f"delayed messages of {key}")
        self._intakes[key] = intake, task

    def _close(self, key: TopicPartition) -> None:
        intake, task = self._intakes.pop(key)
        self._counted_before.setdefault(key.topic, IntakeFigures()).count(intake)
        intake.close()
        task.cancel()
        self._ended.add(task)
        task.add_done_callback(self._ended.discard)
