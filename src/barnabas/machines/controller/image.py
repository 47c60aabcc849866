"""The cluster as one broker sees it: immutable values, replaced as a whole when something changes.

The controller machine decides on it, `metadata` reads and writes it, every handler reads it (through
`barnabas.metadata.image`). A reader may keep an image for as long as it likes: it never changes.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntEnum
from types import MappingProxyType
from typing import NamedTuple, TypeAlias

from barnabas.machines.controller.acls import AclEntry, ResourcePattern
from barnabas.machines.controller.delegation_tokens import DelegationToken
from barnabas.types import NO_LEADER, NO_LEADER_EPOCH, TopicId

NO_CONTROLLER = -1
NO_BROKER_EPOCH = -1
NO_PARTITION_EPOCH = -1
"""The epoch of a partition that was assigned but never had a leader: its state is not written yet."""

NO_CONFIG: Mapping[str, str] = MappingProxyType({})


class ResourceType(IntEnum):
    """What a setting belongs to, with the numbers of the protocol."""

    USER = -1
    """Not of the protocol: users have requests of their own (KIP-554)."""
    UNKNOWN = 0
    TOPIC = 2
    BROKER = 4
    BROKER_LOGGER = 8
    CLIENT_METRICS = 16
    GROUP = 32

    @classmethod
    def of(cls, number: int) -> "ResourceType":
        try:
            found = cls(number)
        except ValueError:
            return cls.UNKNOWN
        return cls.UNKNOWN if found is cls.USER else found


class ConfigResource(NamedTuple):
    type: ResourceType
    name: str

    @classmethod
    def topic(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.TOPIC, name)

    @classmethod
    def user(cls, name: str) -> "ConfigResource":
        return cls(ResourceType.USER, name)

    @classmethod
    def broker(cls, broker_id: int) -> "ConfigResource":
        return cls(ResourceType.BROKER, str(broker_id))


CLUSTER_DEFAULT = ConfigResource(ResourceType.BROKER, "")
"""Settings for every broker that has none of its own."""


class EntityPart(NamedTuple):
    """One of the things that a quota goes by: a user, a client id or an IP address. None is the default of its type."""

    type: str
    name: str | None


QuotaEntity: TypeAlias = tuple[EntityPart, ...]
"""Whom a quota is for, sorted by type."""


class PartitionImage(NamedTuple):
    partition: int
    replicas: tuple[int, ...]
    in_sync_replicas: tuple[int, ...]
    leader: int = NO_LEADER
    leader_epoch: int = NO_LEADER_EPOCH
    partition_epoch: int = NO_PARTITION_EPOCH
    adding_replicas: tuple[int, ...] = ()
    removing_replicas: tuple[int, ...] = ()
    leader_recovering: bool = False
    eligible_leader_replicas: tuple[int, ...] = ()
    """Left the ISR while it was below min ISR, with every committed record: may lead without loss (KIP-966)."""
    last_known_leader: int = NO_LEADER
    """Who led last, while neither ISR nor eligible replicas are left (KIP-966)."""

    @property
    def preferred_leader(self) -> int:
        return self.replicas[0]

    @property
    def is_reassigning(self) -> bool:
        return bool(self.adding_replicas or self.removing_replicas)


class TopicImage(NamedTuple):
    name: str
    topic_id: TopicId
    partitions: tuple[PartitionImage, ...]

    def partition(self, index: int) -> PartitionImage | None:
        return self.partitions[index] if 0 <= index < len(self.partitions) else None

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas)


class BrokerEndpoint(NamedTuple):
    listener: str
    host: str
    port: int
    security_protocol: str = "PLAINTEXT"


class BrokerImage(NamedTuple):
    node_id: int
    endpoints: tuple[BrokerEndpoint, ...]
    rack: str | None = None
    epoch: int = NO_BROKER_EPOCH
    directory_ids: tuple[str, ...] = ()
    """Of its log directories, in Kafka's text form; a directory that was wiped has a new one."""
    incarnation: str = ""
    """Chosen by the process at each start: tells its own registration from that of a predecessor."""
    previous_epoch: int = NO_BROKER_EPOCH
    """The broker epoch that its directories took part in before this one; of an old copy it is not the last one."""
    unclean_stop: bool = False
    """Its machine may have stopped with records that were not on the disk yet (a killed process loses none)."""
    is_fenced: bool = False
    """Known, but away."""
    in_controlled_shutdown: bool = False

    def endpoint(self, listener: str) -> BrokerEndpoint | None:
        for endpoint in self.endpoints:
            if endpoint.listener == listener:
                return endpoint
        return None


@dataclass(frozen=True, slots=True)
class ClusterImage:
    cluster_id: str = ""
    controller_id: int = NO_CONTROLLER
    controller_epoch: int = 0
    brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    """Those that are there, also while they shut down."""
    fenced_brokers: Mapping[int, BrokerImage] = field(default_factory=dict)
    """Those that are known, but away; forgotten by UnregisterBroker only."""
    topics: Mapping[str, TopicImage] = field(default_factory=dict)
    topic_names: Mapping[TopicId, str] = field(default_factory=dict)
    configs: Mapping[ConfigResource, Mapping[str, str]] = field(default_factory=dict, repr=False)
    """Values may be passwords."""
    acls: Mapping[ResourcePattern, tuple[AclEntry, ...]] = field(default_factory=dict)
    client_quotas: Mapping[QuotaEntity, Mapping[str, float]] = field(default_factory=dict)
    tokens: Mapping[str, DelegationToken] = field(default_factory=dict)
    """Delegation tokens by their ids."""
    next_producer_id: int = 0
    change_number: int = 0
    """The newest entry of the change log that this image contains."""
    folders_adopted: bool = False
    """Whether this store has adopted what was in the log directories; from then on an unknown folder is stray."""

    def topic(self, name: str) -> TopicImage | None:
        return self.topics.get(name)

    def topic_by_id(self, topic_id: TopicId) -> TopicImage | None:
        name = self.topic_names.get(topic_id)
        return None if name is None else self.topics[name]

    def partition(self, topic: str, index: int) -> PartitionImage | None:
        image = self.topics.get(topic)
        return None if image is None else image.partition(index)

    def config(self, resource: ConfigResource) -> Mapping[str, str]:
        """The settings of exactly this resource, without defaults."""
        return self.configs.get(resource, NO_CONFIG)

    def topic_config(self, name: str) -> Mapping[str, str]:
        return self.configs.get(ConfigResource.topic(name), NO_CONFIG)

    def offline_replicas(self, partition: PartitionImage) -> tuple[int, ...]:
        brokers = self.brokers
        return tuple(replica for replica in partition.replicas if replica not in brokers)

    def all_partitions(self) -> Iterator[tuple[TopicImage, PartitionImage]]:
        for topic in self.topics.values():
            for partition in topic.partitions:
                yield topic, partition
