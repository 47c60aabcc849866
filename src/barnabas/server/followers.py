"""The partitions that this broker follows: each is copied from its leader by the fetcher for that leader.

`on_delta` is called after `replicas.on_delta`, so that every replica has its log and knows its leader. Work is in
proportion to the partitions in the delta.
"""

from collections.abc import Callable
from concurrent.futures import Executor

from barnabas.clock import Clock
from barnabas.config.broker import BrokerConfig
from barnabas.errors import KafkaError
from barnabas.machines.replica_fetch import Key
from barnabas.metadata.image import Delta, PartitionImage, ResourceType, TopicImage
from barnabas.net.timers import Timers
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.leader_fetcher import LeaderFetcher
from barnabas.server.replicas import Replicas
from barnabas.server.truncations import Truncations
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NodeId


class Followers:
    def __init__(
        self,
        node_id: NodeId,
        links: BrokerLinks,
        replicas: Replicas,
        directories: LogDirectories,
        *,
        config: Callable[[], BrokerConfig],
        clock: Clock,
        timers: Timers,
        executor: Executor,
        broker_epoch: Callable[[], int],
    ) -> None:
        self._node_id = node_id
        self._links = links
        self._replicas = replicas
        self._config = config
        self._clock = clock
        self._timers = timers
        self._truncations = Truncations(directories, clock, executor)
        self._broker_epoch = broker_epoch
        self._fetchers: dict[int, LeaderFetcher] = {}
        self._followed: dict[Key, tuple[LeaderFetcher, int]] = {}
        """The fetcher of each partition, and the leader epoch that it fetches in."""
        self._stopped = False

    def on_delta(self, delta: Delta) -> None:
        if self._stopped:
            return
        touched: dict[LeaderFetcher, None] = {}
        for topic in delta.topics_deleted:
            for partition in topic.partitions:
                self._unfollow((topic.topic_id, partition.partition), touched)
        for topic, partition in delta.partitions:
            self._update(topic, partition, touched)
        for resource in delta.configs_changed:
            changed = delta.image.topic(resource.name) if resource.type is ResourceType.TOPIC else None
            if changed is not None:
                self._on_topic_config(changed)
        for fetcher in touched:
            fetcher.fetch(at_once=True)

    async def stop(self) -> None:
        self._stopped = True
        for fetcher in self._fetchers.values():
            fetcher.stop()
        await self._truncations.stop()

    def leader_of(self, topic_id: bytes, partition: int) -> int | None:
        """Whom the partition is copied from; None if it is not."""
        followed = self._followed.get((topic_id, partition))
        return None if followed is None else followed[0].leader_id

    def _update(self, topic: TopicImage, partition: PartitionImage, touched: dict[LeaderFetcher, None]) -> None:
        key = (topic.topic_id, partition.partition)
        hosted = self._find(key) if self._node_id in partition.replicas else None
        if hosted is None or partition.leader < 0 or partition.leader == self._node_id:
            self._unfollow(key, touched)
            return
        followed = self._followed.get(key)
        if followed is not None:
            fetcher, leader_epoch = followed
            if leader_epoch == partition.leader_epoch and fetcher.leader_id == partition.leader:
                fetcher.on_throttle_changed(key)
                return
            self._unfollow(key, touched)
        fetcher = self._fetcher(partition.leader)
        self._followed[key] = (fetcher, partition.leader_epoch)
        fetcher.follow(hosted)
        touched[fetcher] = None

    def _on_topic_config(self, topic: TopicImage) -> None:
        for partition in topic.partitions:
            key = (topic.topic_id, partition.partition)
            followed = self._followed.get(key)
            if followed is not None:
                followed[0].on_throttle_changed(key)

    def _find(self, key: Key) -> HostedPartition | None:
        try:
            return self._replicas.find(*key)
        except KafkaError:
            return None

    def _unfollow(self, key: Key, touched: dict[LeaderFetcher, None]) -> None:
        followed = self._followed.pop(key, None)
        if followed is not None:
            followed[0].unfollow(key)
            touched[followed[0]] = None

    def _fetcher(self, leader_id: int) -> LeaderFetcher:
        fetcher = self._fetchers.get(leader_id)
        if fetcher is None:
            fetcher = self._fetchers[leader_id] = LeaderFetcher(
                leader_id,
                self._node_id,
                link=lambda node_id: self._links.to(node_id, LinkUse.REPLICATION),
                config=self._config,
                clock=self._clock,
                timers=self._timers,
                truncations=self._truncations,
                throttle=self._replicas.follower_throttle,
                broker_epoch=self._broker_epoch,
            )
        return fetcher
