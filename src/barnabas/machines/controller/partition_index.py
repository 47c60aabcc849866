"""Which partitions an event concerns: by broker, and those without a leader, imbalanced or being reassigned.

Kept by the controller machine beside the image, so that the death of a broker costs in proportion to its partitions and
not to all of the cluster's. Dictionaries serve as ordered sets: the same commands always give the same records.
"""

from collections.abc import Iterable, Iterator
from typing import TypeAlias

from barnabas.machines.controller.image import ClusterImage, PartitionImage
from barnabas.types import NO_LEADER, TopicPartition

_Set: TypeAlias = dict[tuple[str, int], None]


class PartitionIndex:
    def __init__(self, image: ClusterImage) -> None:
        self.leaderless: _Set = {}
        self.reassigning: _Set = {}
        self.imbalanced: dict[int, _Set] = {}
        """By preferred leader: the partitions that somebody else leads."""
        self._in_sync: dict[int, _Set] = {}
        self._eligible: dict[int, _Set] = {}
        for topic, partition in image.all_partitions():
            self.add(topic.name, partition)

    def in_sync(self, broker_id: int) -> Iterator[TopicPartition]:
        """The partitions with this broker in the ISR, and so all that it leads."""
        return (TopicPartition(*key) for key in list(self._in_sync.get(broker_id, ())))

    def eligible(self, broker_id: int) -> Iterator[TopicPartition]:
        return (TopicPartition(*key) for key in list(self._eligible.get(broker_id, ())))

    def brokers_in_sync(self) -> list[int]:
        """Brokers that are in any ISR."""
        return list(self._in_sync)

    def all_eligible(self) -> Iterator[TopicPartition]:
        """The partitions with an eligible leader replica."""
        return (TopicPartition(*key) for found in list(self._eligible.values()) for key in found)

    def add(self, topic: str, partition: PartitionImage) -> None:
        key = (topic, partition.partition)
        _put(self._in_sync, partition.in_sync_replicas, key)
        if partition.eligible_leader_replicas:
            _put(self._eligible, partition.eligible_leader_replicas, key)
        if partition.is_reassigning:
            self.reassigning[key] = None
        preferred = partition.preferred_leader
        if partition.leader == NO_LEADER:
            self.leaderless[key] = None
        elif partition.leader != preferred:
            self.imbalanced.setdefault(preferred, {})[key] = None

    def remove(self, topic: str, partition: PartitionImage) -> None:
        key = (topic, partition.partition)
        _take(self._in_sync, partition.in_sync_replicas, key)
        if partition.eligible_leader_replicas:
            _take(self._eligible, partition.eligible_leader_replicas, key)
        self.reassigning.pop(key, None)
        self.leaderless.pop(key, None)
        _take(self.imbalanced, (partition.preferred_leader,), key)

    def check(self, image: ClusterImage) -> None:
        rebuilt = PartitionIndex(image)
        assert self.leaderless == rebuilt.leaderless, (self.leaderless, rebuilt.leaderless)
        assert self.reassigning == rebuilt.reassigning
        assert self.imbalanced == rebuilt.imbalanced
        assert self._in_sync == rebuilt._in_sync
        assert self._eligible == rebuilt._eligible


def _put(sets: dict[int, _Set], brokers: Iterable[int], key: tuple[str, int]) -> None:
    for broker in brokers:
        found = sets.get(broker)
        if found is None:
            sets[broker] = {key: None}
        else:
            found[key] = None


def _take(sets: dict[int, _Set], brokers: Iterable[int], key: tuple[str, int]) -> None:
    for broker in brokers:
        found = sets.get(broker)
        if found is not None:
            found.pop(key, None)
            if not found:
                del sets[broker]
