"""What a client knows of the cluster: brokers, topics, partitions, leaders.

Written on the I/O thread only (by `cluster` and by hints in responses), read from any thread: every change puts new
dictionaries in place of the old ones, and what is in them never changes.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import NamedTuple

from barnabas.client.errors import error_code
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.messages.metadata import MetadataResponse, MetadataResponsePartition, MetadataResponseTopic
from barnabas.types import NO_LEADER, NO_LEADER_EPOCH, NO_TOPIC_ID, TopicId, TopicPartition


class Node(NamedTuple):
    """The address of a broker."""

    id: int
    host: str
    port: int
    rack: str | None = None

    @property
    def address(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


class NodeAndEpoch(NamedTuple):
    """The leader of a partition, and its leader epoch (-1 where the broker is too old to say)."""

    node_id: int
    leader_epoch: int


class PartitionMetadata(NamedTuple):
    """A partition with its leader and replicas."""

    partition: int
    leader: int = NO_LEADER
    leader_epoch: int = NO_LEADER_EPOCH
    replicas: tuple[int, ...] = ()
    isr: tuple[int, ...] = ()
    offline: tuple[int, ...] = ()
    error: ErrorCode = ErrorCode.NONE


@dataclass(frozen=True, slots=True)
class TopicMetadata:
    """A topic with its partitions."""

    name: str
    topic_id: TopicId = NO_TOPIC_ID
    partitions: tuple[PartitionMetadata, ...] = ()
    """By number, without gaps."""
    is_internal: bool = False
    error: ErrorCode = ErrorCode.NONE
    authorized_operations: int = -(1 << 31)

    @property
    def partition_count(self) -> int:
        return len(self.partitions)


class MetadataCache:
    """What is known of the cluster."""

    __slots__ = ("brokers", "cluster_id", "controller_id", "invalid_topics", "names", "topics", "version")

    def __init__(self) -> None:
        self.cluster_id: str | None = None
        self.controller_id = -1
        self.brokers: Mapping[int, Node] = MappingProxyType({})
        self.topics: Mapping[str, TopicMetadata] = MappingProxyType({})
        """Topics that exist, with their partitions."""
        self.invalid_topics: Mapping[str, ErrorCode] = MappingProxyType({})
        """Topics that were requested and came back with an error."""
        self.names: Mapping[TopicId, str] = MappingProxyType({})
        self.version = 0
        """One more at each change."""

    def topic(self, name: str) -> TopicMetadata | None:
        return self.topics.get(name)

    def partition(self, tp: TopicPartition) -> PartitionMetadata | None:
        topic = self.topics.get(tp.topic)
        return topic.partitions[tp.partition] if topic and 0 <= tp.partition < len(topic.partitions) else None

    def leader(self, tp: TopicPartition) -> NodeAndEpoch | None:
        """The leader, if there is one and its address is known."""
        found = self.partition(tp)
        if found is None or found.leader not in self.brokers:
            return None
        return NodeAndEpoch(found.leader, found.leader_epoch)

    def replica_racks(self) -> dict[str, list[frozenset[str]]]:
        """By topic, per partition the racks of its replicas, in sync or not; empty if no broker has a rack."""
        rack_of = {node.id: node.rack for node in self.brokers.values() if node.rack}
        if not rack_of:
            return {}
        return {
            name: [frozenset(rack_of[each] for each in part.replicas if each in rack_of) for part in topic.partitions]
            for name, topic in self.topics.items()
        }

    def update(self, response: MetadataResponse, *, all_topics: bool) -> None:
        """Take over a response. `all_topics`: a topic that it does not name is gone."""
        self.brokers = MappingProxyType(
            {broker.node_id: Node(broker.node_id, broker.host, broker.port, broker.rack) for broker in response.brokers}
        )
        self.cluster_id = response.cluster_id
        self.controller_id = response.controller_id
        topics = {} if all_topics else dict(self.topics)
        invalid = {} if all_topics else dict(self.invalid_topics)
        for given in response.topics:
            name = given.name or self.names.get(given.topic_id)
            if name is None:
                continue
            if given.error_code:
                self._take_error(topics, invalid, name, error_code(given.error_code))
            else:
                invalid.pop(name, None)
                topics[name] = _merged(self.topics.get(name), _topic(name, given))
        self._put(topics, invalid)

    def update_leader(self, tp: TopicPartition, leader: int, leader_epoch: int) -> bool:
        """A hint from a response (KIP-951); taken only if it is newer than what is known. True if it was."""
        known = self.partition(tp)
        if known is None or leader not in self.brokers or leader_epoch <= known.leader_epoch:
            return False
        changed = known._replace(leader=leader, leader_epoch=leader_epoch, error=ErrorCode.NONE)
        topic = self.topics[tp.topic]
        partitions = (*topic.partitions[: tp.partition], changed, *topic.partitions[tp.partition + 1 :])
        self._put({**self.topics, tp.topic: replace(topic, partitions=partitions)}, dict(self.invalid_topics))
        return True

    def add_nodes(self, nodes: Iterable[Node]) -> None:
        """Brokers named next to a hint, which may be newer than the last response."""
        self.brokers = MappingProxyType({**self.brokers, **{node.id: node for node in nodes}})
        self.version += 1

    def forget(self, names: Iterable[str]) -> None:
        """Topics that nobody uses any more."""
        gone = set(names)
        topics = {name: topic for name, topic in self.topics.items() if name not in gone}
        self._put(topics, {name: code for name, code in self.invalid_topics.items() if name not in gone})

    def _take_error(
        self, topics: dict[str, TopicMetadata], invalid: dict[str, ErrorCode], name: str, code: ErrorCode
    ) -> None:
        """A topic that is known stays as it was while its leader is being elected; else the error counts."""
        invalid[name] = code
        if code != ErrorCode.LEADER_NOT_AVAILABLE:
            topics.pop(name, None)

    def _put(self, topics: dict[str, TopicMetadata], invalid: dict[str, ErrorCode]) -> None:
        self.names = MappingProxyType(
            {topic.topic_id: name for name, topic in topics.items() if topic.topic_id != NO_TOPIC_ID}
        )
        self.topics = MappingProxyType(topics)
        self.invalid_topics = MappingProxyType(invalid)
        self.version += 1


def _topic(name: str, given: MetadataResponseTopic) -> TopicMetadata:
    by_number = {partition.partition_index: _partition(partition) for partition in given.partitions}
    count = max(by_number, default=-1) + 1
    if count > 2 * len(by_number) or min(by_number, default=0) < 0:
        raise ProtocolError(f"topic {name} is said to have {len(by_number)} partitions, numbered up to {count - 1}")
    partitions = tuple(
        by_number.get(number) or PartitionMetadata(number, error=ErrorCode.LEADER_NOT_AVAILABLE)
        for number in range(count)
    )
    return TopicMetadata(
        name, given.topic_id, partitions, given.is_internal, ErrorCode.NONE, given.topic_authorized_operations
    )


def _partition(given: MetadataResponsePartition) -> PartitionMetadata:
    return PartitionMetadata(
        given.partition_index,
        given.leader_id,
        given.leader_epoch,
        tuple(given.replica_nodes),
        tuple(given.isr_nodes),
        tuple(given.offline_replicas),
        error_code(given.error_code),
    )


def _merged(known: TopicMetadata | None, new: TopicMetadata) -> TopicMetadata:
    """A broker that lags behind may respond with an older leader epoch: those partitions stay as they are.

    Epochs are compared within one topic id only: a topic that was deleted and made again begins again.
    """
    if known is None or known.topic_id != new.topic_id:
        return new
    partitions = tuple(
        old if old.leader_epoch > fresh.leader_epoch >= 0 else fresh
        for fresh, old in zip(new.partitions, (*known.partitions, *new.partitions[len(known.partitions) :]))
    )
    return replace(new, partitions=partitions)
