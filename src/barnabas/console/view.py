"""What the console knows of the cluster at one moment. Written by the collector alone."""

from dataclasses import dataclass, field

from barnabas.client.admin.types import GroupState, GroupType, LogDirDescription
from barnabas.client.metadata import Node, PartitionMetadata
from barnabas.types import NO_LEADER, TopicPartition

UNKNOWN = -1
"""An offset that the cluster has not reported yet."""


@dataclass(slots=True)
class TopicView:
    """A topic with what was measured of it. Lists have one entry per partition."""

    name: str
    topic_id: str
    is_internal: bool
    partitions: tuple[PartitionMetadata, ...]
    starts: list[int]
    ends: list[int]
    size_bytes: int = 0
    """Of all replicas, on disk."""
    rate: float = 0.0
    """Records per second written to it."""
    rates: list[float] = field(default_factory=list)
    """The same by partition."""
    byte_rate: float = 0.0
    measured_at: float = 0.0
    """Monotonic time of `ends`; 0 before the first."""
    lag: int = 0
    """The sum over the groups that read it."""
    lag_seconds: float | None = None
    lag_seconds_at_least: float | None = None
    groups: int = 0

    @property
    def replication_factor(self) -> int:
        return len(self.partitions[0].replicas) if self.partitions else 0

    @property
    def records(self) -> int | None:
        """Offsets between start and end; None until they are known."""
        if not self.measured_at:
            return None
        return sum(max(0, end - start) for start, end in zip(self.starts, self.ends) if start >= 0 and end >= 0)

    def rate_of(self, partition: int) -> float:
        return self.rates[partition] if partition < len(self.rates) else 0.0

    @property
    def out_of_sync(self) -> int:
        return sum(1 for each in self.partitions if len(each.isr) < len(each.replicas))

    @property
    def offline(self) -> int:
        return sum(1 for each in self.partitions if each.leader == NO_LEADER)


@dataclass(slots=True)
class GroupView:
    """A group with its offsets and how far they are behind."""

    group_id: str
    state: GroupState | None
    type: GroupType | None
    protocol_type: str
    members: int | None = None
    assignor: str = ""
    coordinator: int | None = None
    offsets: dict[TopicPartition, int] = field(default_factory=dict)
    lag: int = 0
    lag_seconds: float | None = None
    """Age of the oldest record that is not committed; 0 if there is none, None while it is not known."""
    lag_seconds_at_least: float | None = None
    """The same over the partitions that have been looked up."""
    lags: dict[TopicPartition, int] = field(default_factory=dict)
    times: dict[TopicPartition, float | None] = field(default_factory=dict)
    rate: float = 0.0
    """Records per second that it commits."""
    measured_at: float = 0.0
    described_at: float = 0.0

    @property
    def topics(self) -> list[str]:
        return sorted({partition.topic for partition in self.offsets})


@dataclass(slots=True)
class ClusterView:
    """The whole cluster."""

    cluster_id: str | None = None
    controller: int | None = None
    brokers: dict[int, Node] = field(default_factory=dict)
    topics: dict[str, TopicView] = field(default_factory=dict)
    groups: dict[str, GroupView] = field(default_factory=dict)
    log_dirs: dict[int, dict[str, LogDirDescription]] = field(default_factory=dict)
    error: str | None = None
    """Why nothing is current; None while the cluster responds."""
    error_since: float | None = None
    collected_at: float = 0.0
    """Wall-clock seconds of the last complete look; 0 before the first."""
    rate: float = 0.0
    byte_rate: float = 0.0

    @property
    def partitions(self) -> int:
        return sum(len(topic.partitions) for topic in self.topics.values())

    @property
    def out_of_sync(self) -> int:
        return sum(topic.out_of_sync for topic in self.topics.values())

    @property
    def offline(self) -> int:
        return sum(topic.offline for topic in self.topics.values())

    @property
    def size_bytes(self) -> int:
        return sum(topic.size_bytes for topic in self.topics.values())

    @property
    def lag(self) -> int:
        return sum(group.lag for group in self.groups.values())
