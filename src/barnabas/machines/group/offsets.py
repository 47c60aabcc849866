"""The committed offsets of a shard, and those that wait for the end of a transaction.

Durable state: only `apply` and `apply_marker` write it. Committed and pending offsets of one partition may both exist;
then the one later in the log wins, so that compaction cannot change the result.
"""

from collections.abc import Iterator

from barnabas.machines.coordinator import ApplyContext, CoordinatorRecord
from barnabas.machines.group.stored_offset import CommittedOffset, StoredOffset, read_stored, store_offset
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.types import GroupId

TopicOffsets = dict[int, StoredOffset]
GroupOffsets = dict[str, TopicOffsets]


def tombstone(group_id: GroupId, topic: str, partition: int) -> CoordinatorRecord:
    return CoordinatorRecord(OffsetCommitKey(group=group_id, topic=topic, partition=partition), None)


class Offsets:
    __slots__ = ("_committed", "_open", "_pending")

    def __init__(self) -> None:
        self._committed: dict[GroupId, GroupOffsets] = {}
        self._pending: dict[int, dict[GroupId, GroupOffsets]] = {}
        """Producer id -> group -> topic -> partition."""
        self._open: dict[GroupId, dict[int, None]] = {}
        """Group -> producer ids with pending offsets for it."""

    def of_group(self, group_id: GroupId) -> GroupOffsets:
        return self._committed.get(group_id, {})

    def get(self, group_id: GroupId, topic: str, partition: int) -> CommittedOffset | None:
        stored = self._committed.get(group_id, {}).get(topic, {}).get(partition)
        return None if stored is None else read_stored(stored)

    def has(self, group_id: GroupId, topic: str, partition: int) -> bool:
        """Whether there is an offset, committed or pending."""
        return self.get(group_id, topic, partition) is not None or self.is_pending(group_id, topic, partition)

    def has_open_transactions(self, group_id: GroupId) -> bool:
        return group_id in self._open

    def is_pending(self, group_id: GroupId, topic: str, partition: int) -> bool:
        for producer_id in self._open.get(group_id, ()):
            if partition in self._pending[producer_id][group_id].get(topic, ()):
                return True
        return False

    def partitions_of(self, group_id: GroupId, topic: str | None = None) -> Iterator[tuple[str, int]]:
        """Every partition that the group has an offset for, committed or pending, each once."""
        committed = self._committed.get(group_id, {})
        seen: dict[tuple[str, int], None] = {}
        stores = [committed, *(self._pending[producer_id][group_id] for producer_id in self._open.get(group_id, ()))]
        for store in stores:
            for name in store if topic is None else (topic,):
                seen.update(dict.fromkeys((name, partition) for partition in store.get(name, ())))
        return iter(seen)

    def group_ids(self) -> list[GroupId]:
        """Groups with committed or pending offsets."""
        return list({**self._committed, **self._open})

    def apply(self, key: OffsetCommitKey, value: OffsetCommitValue | None, context: ApplyContext) -> None:
        if value is None:
            self._remove(key.group, key.topic, key.partition)
            return
        committed = CommittedOffset(
            value.offset,
            value.leader_epoch,
            value.metadata,
            value.commit_timestamp,
            value.expire_timestamp,
            value.topic_id,
            context.offset,
        )
        if context.is_transactional:
            groups = self._pending.setdefault(context.producer_id, {})
            self._open.setdefault(key.group, {})[context.producer_id] = None
        else:
            groups = self._committed
        groups.setdefault(key.group, {}).setdefault(key.topic, {})[key.partition] = store_offset(committed)

    def topic_offsets(self, group_id: GroupId, topic: str) -> TopicOffsets:
        """The table of the topic's committed offsets. Only for replay, and the caller adds an offset to it."""
        return self._committed.setdefault(group_id, {}).setdefault(topic, {})

    def apply_marker(self, producer_id: int, committed: bool) -> None:
        groups = self._pending.pop(producer_id, None)
        if groups is None:
            return
        for group_id, topics in groups.items():
            del self._open[group_id][producer_id]
            if not self._open[group_id]:
                del self._open[group_id]
            if committed:
                self._take_over(group_id, topics)

    def _take_over(self, group_id: GroupId, pending: GroupOffsets) -> None:
        for topic, partitions in pending.items():
            for partition, offset in partitions.items():
                known = self.get(group_id, topic, partition)
                if known is None or known.record_offset < read_stored(offset).record_offset:
                    self._committed.setdefault(group_id, {}).setdefault(topic, {})[partition] = offset

    def _remove(self, group_id: GroupId, topic: str, partition: int) -> None:
        _discard(self._committed, group_id, topic, partition)
        for producer_id in list(self._open.get(group_id, ())):
            groups = self._pending[producer_id]
            _discard(groups, group_id, topic, partition)
            if group_id not in groups:
                del self._open[group_id][producer_id]
                if not groups:
                    del self._pending[producer_id]
        if group_id in self._open and not self._open[group_id]:
            del self._open[group_id]

    def check(self) -> None:
        for store in (self._committed, *self._pending.values()):
            assert store is self._committed or store
            assert all(topics and all(topics.values()) for topics in store.values())
        pairs = {(group_id, producer_id) for producer_id, groups in self._pending.items() for group_id in groups}
        assert pairs == {(group_id, producer_id) for group_id, ids in self._open.items() for producer_id in ids}
        assert all(self._open.values())


def _discard(groups: dict[GroupId, GroupOffsets], group_id: GroupId, topic: str, partition: int) -> None:
    """Without leaving empty dictionaries behind."""
    topics = groups.get(group_id)
    if topics is None or topic not in topics:
        return
    topics[topic].pop(partition, None)
    if not topics[topic]:
        del topics[topic]
        if not topics:
            del groups[group_id]
