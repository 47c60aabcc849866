"""Delayed messages on this broker: an intake for each partition that it leads of a topic with `delay.target.topic`.

The broker passes on every change of the cluster's image. `pending_count`, `delivered_count` and `overdue_ms` are for
the metrics.
"""

import asyncio
from collections.abc import Callable

from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.server.broker_links import BrokerLinks
from barnabas.server.delayed_intake import DelayedIntake, ResolveTopicConfig
from barnabas.server.delayed_transaction import DelayedTransactions
from barnabas.server.record_work import RecordWork
from barnabas.server.replicas import Replicas
from barnabas.types import NodeId, TopicPartition


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
        self._delivered_before = 0

    @property
    def pending_count(self) -> int:
        return sum(intake.pending_count for intake, _ in self._intakes.values())

    @property
    def overdue_ms(self) -> int:
        return max((intake.overdue_ms for intake, _ in self._intakes.values()), default=0)

    @property
    def delivered_count(self) -> int:
        """Since the start, also by intakes that others lead by now."""
        return self._delivered_before + sum(intake.delivered_count for intake, _ in self._intakes.values())

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
        self._delivered_before += intake.delivered_count
        intake.close()
        task.cancel()
        self._ended.add(task)
        task.add_done_callback(self._ended.discard)
