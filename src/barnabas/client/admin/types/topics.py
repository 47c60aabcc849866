"""What the admin client says of topics, partitions, offsets and the directories that hold them."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import IntEnum

from barnabas.client.admin.types.acls import AclOperation
from barnabas.client.admin.types.configs import ConfigEntry
from barnabas.client.metadata import Node
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition


@dataclass(frozen=True, slots=True, kw_only=True)
class NewTopic:
    """A topic to create: by counts (None: the broker's defaults) or by `assignments`, partition -> broker ids."""

    name: str
    partitions: int | None = None
    replication_factor: int | None = None
    config: Mapping[str, object] = field(default_factory=dict)
    assignments: Mapping[int, Sequence[int]] | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CreatedTopic:
    """A topic as the broker made it. Counts and settings are None where an old broker does not report them."""

    name: str
    topic_id: str | None
    partitions: int | None
    replication_factor: int | None
    config: Mapping[str, ConfigEntry] | None = field(repr=False)
    existed: bool = False
    """True if `if_not_exists` was given and the topic was there already, with counts and settings of its own."""

    @classmethod
    def of_name(cls, name: str, *, existed: bool = False) -> "CreatedTopic":
        """A topic whose response did not come, or had no more."""
        return cls(name=name, topic_id=None, partitions=None, replication_factor=None, config=None, existed=existed)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicListing:
    """A topic as list_topics returns it."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: int
    replication_factor: int


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionDescription:
    """`leader` is None while there is none. Eligible leader replicas are None where the broker does not report them."""

    partition: int
    leader: int | None
    leader_epoch: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    offline_replicas: tuple[int, ...]
    eligible_leader_replicas: tuple[int, ...] | None = None
    last_known_eligible_leader_replicas: tuple[int, ...] | None = None

    @property
    def is_under_replicated(self) -> bool:
        """Whether a replica is not in sync."""
        return len(self.isr) < len(self.replicas)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic with its partitions."""

    name: str
    topic_id: str | None
    is_internal: bool
    partitions: tuple[PartitionDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None

    @property
    def replication_factor(self) -> int:
        """Of the first partition, as Kafka's tools show it."""
        return len(self.partitions[0].replicas) if self.partitions else 0


class OffsetSpec(IntEnum):
    """Which offset of a partition to look up; any number from 0 on is a timestamp in milliseconds."""

    LATEST = -1
    EARLIEST = -2
    MAX_TIMESTAMP = -3
    EARLIEST_LOCAL = -4
    LATEST_TIERED = -5


@dataclass(frozen=True, slots=True, kw_only=True)
class ListedOffset:
    """`offset` is -1 if no record is as late as the given timestamp; `timestamp` is -1 unless one was found."""

    offset: int
    timestamp: int
    leader_epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaInfo:
    """One replica in a log directory. `offset_lag` is how far it is behind the log end (of the current replica)."""

    size: int
    offset_lag: int
    is_future: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class LogDirDescription:
    """A log directory of a broker; bytes of the volume are None where the broker does not report them."""

    path: str
    error: KafkaError | None
    replicas: Mapping[TopicPartition, ReplicaInfo]
    total_bytes: int | None
    usable_bytes: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class PartitionReassignment:
    """A reassignment under way: all replicas, those being added and those being removed."""

    replicas: tuple[int, ...]
    adding_replicas: tuple[int, ...]
    removing_replicas: tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerDescription:
    """A broker, and whether the controller has fenced it."""

    node: Node
    is_fenced: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterDescription:
    """`controller` is None while no broker is it. Brokers come in the order of their ids."""

    cluster_id: str | None
    controller: Node | None
    brokers: tuple[BrokerDescription, ...]
    authorized_operations: frozenset[AclOperation] | None = None
