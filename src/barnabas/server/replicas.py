"""The replicas on this broker: found by topic name or id, made and dropped as the cluster's image says.

Produce and Fetch look partitions up here (two dictionary look-ups, whatever the number of partitions). `on_delta` is
called on the loop with every change of the image, the first one at the start with everything there is.
"""

import logging
from collections.abc import Callable, Iterator

from barnabas.clock import Clock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.partition import PartitionState
from barnabas.machines.partition.follower import NO_BROKER_EPOCH
from barnabas.metadata.image import ClusterImage, Delta, PartitionImage, ResourceType, TopicImage
from barnabas.net.timers import Timers
from barnabas.server.flusher import Flusher
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.metrics.traffic import TrafficTable
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.replica_throttle import ReplicaThrottle
from barnabas.server.unopened_partition import UnopenedPartition
from barnabas.storage.log import Log
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NO_TOPIC_ID, NodeId, TopicId, TopicPartition

logger = logging.getLogger(__name__)

ResolveTopicConfig = Callable[[ClusterImage, str], TopicConfig]


class Replicas:
    def __init__(
        self,
        node_id: NodeId,
        directories: LogDirectories,
        purgatory: FetchPurgatory,
        flusher: Flusher,
        topic_config: ResolveTopicConfig,
        clock: Clock,
        timers: Timers,
        max_lag_ms: int = 30_000,
        throttle_windows: tuple[int, int] = (11, 1000),
    ) -> None:
        self._node_id = node_id
        self._directories = directories
        self._purgatory = purgatory
        self._flusher = flusher
        self._topic_config = topic_config
        self._clock = clock
        self._timers = timers
        self._image = ClusterImage()
        self.max_lag_ms = max_lag_ms
        """replica.lag.time.max.ms"""
        self.leader_throttle = ReplicaThrottle(clock, timers, *throttle_windows)
        self.follower_throttle = ReplicaThrottle(clock, timers, *throttle_windows)
        self._topics: dict[str | bytes, dict[int, HostedPartition]] = {}
        """By name and by id, both to the same inner table."""
        self._offline: dict[tuple[str | bytes, int], UnopenedPartition] = {}
        """Partitions that should be here but whose log cannot be opened; by name and by id."""
        self.traffic = TrafficTable()
        self.isr_shrinks = 0
        self.isr_expands = 0
        """Of partitions that this broker leads."""
        self.on_log_deleted: Callable[[Log], None] | None = None
        self.on_hosted: Callable[[HostedPartition], None] | None = None
        """Called with a partition that is here now, at the start or since."""
        self.on_isr_proposed: Callable[[HostedPartition | UnopenedPartition], None] | None = None
        """Called with a partition whose state proposes another ISR."""

    def __iter__(self) -> Iterator[HostedPartition]:
        for topic, partitions in self._topics.items():
            if isinstance(topic, str):
                yield from partitions.values()

    @property
    def unopened_count(self) -> int:
        """Partitions that should be here but whose log cannot be opened."""
        return len(self._offline) // 2

    def find(self, topic: str | bytes, partition: int) -> HostedPartition:
        """Raises KafkaError: UNKNOWN_TOPIC_ID, UNKNOWN_TOPIC_OR_PARTITION, KAFKA_STORAGE_ERROR, and
        NOT_LEADER_OR_FOLLOWER for a partition of other brokers."""
        partitions = self._topics.get(topic)
        hosted = None if partitions is None else partitions.get(partition)
        if hosted is None:
            unopened = self._offline.get((topic, partition))
            if unopened is not None:
                raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, unopened.reason)
            raise KafkaError(self._error_for_missing(topic, partition))
        if hosted.log.failure is not None:
            # What was read from it now might not be there after a restart.
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(hosted.log.failure))
        return hosted

    def _error_for_missing(self, topic: str | bytes, partition: int) -> ErrorCode:
        image = self._image
        known = image.topic_by_id(TopicId(topic)) if isinstance(topic, bytes) else image.topic(topic)
        if known is None:
            return ErrorCode.UNKNOWN_TOPIC_ID if isinstance(topic, bytes) else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        exists = known.partition(partition) is not None
        return ErrorCode.NOT_LEADER_OR_FOLLOWER if exists else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def find_for_produce(self, topic: str | bytes, partition: int) -> HostedPartition:
        hosted = self.find(topic, partition)
        if hosted.is_internal:
            raise KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, f"{hosted.topic} is written to by the broker only")
        return hosted

    def find_ready(self, topic: str | bytes, partition: int) -> HostedPartition | None:
        """What `find_for_produce` finds, or None where it raises."""
        partitions = self._topics.get(topic)
        hosted = None if partitions is None else partitions.get(partition)
        return None if hosted is None or hosted.is_internal or hosted.log.state.failure is not None else hosted

    def on_delta(self, delta: Delta) -> None:
        before, self._image = self._image, delta.image
        for topic in delta.topics_deleted:
            self._drop_topic(topic)
        # Settings first: with a smaller ISR but the min.insync.replicas of before, records could be committed of which
        # the controller believes that they wait, so that a replica without them is elected.
        for resource in delta.configs_changed:
            if resource.type is ResourceType.TOPIC:
                self._update_config(delta.image, resource.name)
        for topic, partition in delta.partitions:
            if self._node_id in partition.replicas:
                self._host(delta.image, topic, partition, before)
            else:
                self._drop_partition(topic, partition)
        for broker_id in delta.brokers_changed:
            self._on_broker_changed(broker_id)

    def _on_broker_changed(self, broker_id: int) -> None:
        """High watermarks must not wait for a broker that was about to join and no longer may."""
        for hosted in self:
            follower = hosted.state.followers.get(broker_id)
            if follower is not None and follower.joins and not self._may_join_isr(broker_id, follower.broker_epoch):
                hosted.on_follower_ineligible(broker_id)

    def update_all_configs(self, image: ClusterImage) -> None:
        """The broker's own settings changed, and with them the defaults of every topic."""
        for topic in self._topics:
            if isinstance(topic, str):
                self._update_config(image, topic)

    def on_follower_fetch(self, hosted: HostedPartition, replica_id: int, broker_epoch: int, fetch_offset: int) -> None:
        """A follower's fetch was read well: it has everything below the offset."""
        now_ms = self._clock.monotonic_ms()
        state = hosted.state
        if replica_id in state.in_sync_replicas:
            hosted.on_follower_fetch(replica_id, fetch_offset, now_ms, broker_epoch)
            return
        eligible = self._may_join_isr(replica_id, broker_epoch)
        hosted.on_follower_fetch(replica_id, fetch_offset, now_ms, broker_epoch, eligible)
        if eligible and state.propose_isr_expansion(replica_id, now_ms, self.max_lag_ms) is not None:
            self._propose_isr(hosted)

    def shrink_isr(self, hosted: HostedPartition) -> None:
        """To be called for every partition, at intervals of half of replica.lag.time.max.ms."""
        if hosted.on_isr_shrink_due(self._clock.monotonic_ms(), self.max_lag_ms):
            self._propose_isr(hosted)

    def _propose_isr(self, hosted: HostedPartition | UnopenedPartition) -> None:
        if self.on_isr_proposed is not None:
            self.on_isr_proposed(hosted)

    def _may_join_isr(self, replica_id: int, broker_epoch: int) -> bool:
        """Not a broker that is fenced or leaves (KIP-841), nor one that has been started again since (KIP-903)."""
        broker = self._image.brokers.get(replica_id)
        if broker is None or broker.is_fenced or broker.in_controlled_shutdown:
            return False
        return broker_epoch in (broker.epoch, NO_BROKER_EPOCH)

    def on_directory_offline(self) -> None:
        """A log directory failed: requests that wait on one of its partitions fail, and others are to lead them."""
        for hosted in self:
            if hosted.log.failure is not None:
                hosted.on_offline()
        self.resign_failed()

    def resign_failed(self) -> None:
        """Leave partitions whose log directory has failed, or whose log cannot be opened, to replicas in sync, if any.

        Called again at intervals: another change of the ISR may have been on its way.
        """
        for hosted in self:
            if hosted.log.failure is not None and hosted.state.propose_resignation() is not None:
                self._propose_isr(hosted)
        for (topic, _), unopened in self._offline.items():
            if isinstance(topic, bytes):
                self._resign_unopened(unopened)

    def _resign_unopened(self, unopened: UnopenedPartition) -> None:
        if unopened.state.propose_resignation() is not None:
            self._propose_isr(unopened)

    def _update_config(self, image: ClusterImage, topic: str) -> None:
        partitions = self._topics.get(topic)
        if partitions:
            config = self._topic_config(image, topic)
            for hosted in partitions.values():
                hosted.log.update_config(config)
                self._directories.moves.update_config(hosted.log.topic_partition, config)
                hosted.on_config_changed()

    def _host(self, image: ClusterImage, topic: TopicImage, partition: PartitionImage, before: ClusterImage) -> None:
        partitions = self._topics.get(topic.topic_id)
        if partitions is None:
            partitions = self._topics[topic.topic_id] = self._topics[topic.name] = {}
        hosted = partitions.get(partition.partition)
        if hosted is None:
            try:
                self._set_aside_damaged(topic, partition)
                log = self._open_log(image, topic, partition.partition, self._is_new(topic, partition, before))
            except (OSError, StorageError, KafkaError) as error:
                logger.error("cannot open the log of %s-%d: %s", topic.name, partition.partition, error)
                self._on_unopened(topic, partition, str(error))
                return
            self._offline.pop((topic.name, partition.partition), None)
            self._offline.pop((topic.topic_id, partition.partition), None)
            state = PartitionState(self._node_id)
            hosted = partitions[partition.partition] = HostedPartition(
                log, state, self._purgatory, self._flusher, self._timers, self.traffic.open(topic.name)
            )
            if self.on_hosted is not None:
                self.on_hosted(hosted)
        elif hosted.state.is_leader and partition.leader_epoch == hosted.state.leader_epoch:
            change = len(partition.in_sync_replicas) - len(hosted.state.in_sync_replicas)
            self.isr_shrinks += change < 0
            self.isr_expands += change > 0
        hosted.on_image(partition, self._clock.monotonic_ms())

    def _is_new(self, topic: TopicImage, partition: PartitionImage, before: ClusterImage) -> bool:
        """Whether this broker cannot have had the partition before. A restart leaves none with its first epoch."""
        if partition.partition_epoch == 0:
            return True
        known = before.topic_by_id(topic.topic_id)
        known_partition = None if known is None else known.partition(partition.partition)
        return bool(before.brokers) and (known_partition is None or self._node_id not in known_partition.replicas)

    def _on_unopened(self, topic: TopicImage, partition: PartitionImage, reason: str) -> None:
        unopened = self._offline.get((topic.topic_id, partition.partition))
        if unopened is None:
            unopened = UnopenedPartition(self._node_id, topic, partition.partition, reason)
            self._offline[topic.name, partition.partition] = unopened
            self._offline[topic.topic_id, partition.partition] = unopened
        unopened.reason = reason
        unopened.on_image(partition, self._clock.monotonic_ms())
        self._resign_unopened(unopened)

    def _set_aside_damaged(self, topic: TopicImage, partition: PartitionImage) -> None:
        """A log that was refused as damaged is copied again, if every committed record is elsewhere.

        That is so if this replica is not in sync and another one leads. Its files are kept for a person to look at.
        """
        if partition.leader >= 0 and self._node_id not in partition.in_sync_replicas:
            topic_partition = TopicPartition(topic.name, partition.partition)
            kept = self._directories.set_aside_refused(topic_partition)
            if kept is not None:
                logger.warning(
                    "%s is copied from broker %d; its damaged files: %s", topic_partition, partition.leader, kept
                )

    def _open_log(self, image: ClusterImage, topic: TopicImage, partition: int, is_new: bool) -> Log:
        topic_partition = TopicPartition(topic.name, partition)
        config = self._topic_config(image, topic.name)
        log = self._directories.get(topic_partition)
        if log is not None and log.topic_id not in (topic.topic_id, NO_TOPIC_ID):
            renamed = self._directories.set_aside(topic_partition)
            logger.warning("%s on disk belonged to another topic of that name: kept as %s", topic_partition, renamed)
            log = None
        if log is None:
            now_ms = self._clock.now_ms()
            return self._directories.create_log(topic_partition, topic.topic_id, config, now_ms, is_new=is_new)
        if log.topic_id == NO_TOPIC_ID:
            self._directories.assign_topic_id(log, topic.topic_id)
        log.update_config(config)
        return log

    def _drop_topic(self, topic: TopicImage) -> None:
        for partition in topic.partitions:
            self._offline.pop((topic.topic_id, partition.partition), None)
            if self._offline.pop((topic.name, partition.partition), None) is not None:
                self._delete_refused(TopicPartition(topic.name, partition.partition))
        partitions = self._topics.pop(topic.topic_id, None)
        if partitions is not None and self._topics.get(topic.name) is partitions:
            del self._topics[topic.name]
            self.traffic.close(topic.name)
        for hosted in (partitions or {}).values():
            self._delete(hosted)

    def _delete_refused(self, topic_partition: TopicPartition) -> None:
        try:
            self._directories.delete_refused(topic_partition, self._clock.now_ms())
        except StorageError as error:
            logger.error("cannot delete the log of %s: %s", topic_partition, error)

    def _drop_partition(self, topic: TopicImage, partition: PartitionImage) -> None:
        partitions = self._topics.get(topic.topic_id)
        hosted = None if partitions is None else partitions.pop(partition.partition, None)
        unopened = self._offline.get((topic.topic_id, partition.partition))
        if unopened is not None:
            unopened.on_image(partition, self._clock.monotonic_ms())
        if hosted is not None:
            self._delete(hosted)

    def _delete(self, hosted: HostedPartition) -> None:
        hosted.on_deleted()
        if self.on_log_deleted is not None:
            self.on_log_deleted(hosted.log)
        try:
            self._directories.delete_log(hosted.log.topic_partition, self._clock.now_ms())
        except (OSError, StorageError) as error:
            logger.error("cannot delete the log of %s: %s", hosted.log.topic_partition, error)
