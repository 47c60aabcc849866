"""A consumer group: what the log says of it, its indexes over that, and the deadlines of its members.

Durable state (epochs, members, targets, resolved expressions) changes only in `GroupShard.apply`, by the methods named
`put_` and `remove_`; the one exception is a group that changes its protocol, see registry.py. Deadlines and what was
last seen of the cluster are soft. A group in this class never answers a request itself.

On replay of a compacted log a partition may for a while seem to have two owners: the record that took it from the first
is gone, a later one of that member still to come. So the last record counts, and `check` holds only afterwards.
"""

from collections import Counter
from collections.abc import Container, Iterable, Mapping

from barnabas.errors import ErrorCode
from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.machines.group.classic.protocols import CONSUMER_PROTOCOL_TYPE
from barnabas.machines.group.consumer.member import ConsumerMember
from barnabas.machines.group.consumer.records import group_tombstones, partition_metadata_tombstone
from barnabas.machines.group.registry import GroupType
from barnabas.types import GroupId, TopicId

MEMBER_EPOCH_SINCE = 9
"""OffsetCommit carries a member epoch from this version on."""


class ConsumerGroup:
    __slots__ = (
        "_owners",
        "_regex_topics",
        "_regex_uses",
        "_topic_uses",
        "assigned_ms",
        "assignment_epoch",
        "deadlines",
        "epoch",
        "group_id",
        "has_partition_metadata",
        "members",
        "metadata_hash",
        "regexes",
        "regexes_resolved_ms",
        "seen_names",
        "seen_topics",
        "static_members",
        "targets",
    )

    def __init__(self, group_id: GroupId) -> None:
        self.group_id = group_id
        self.epoch = 0
        self.metadata_hash = 0
        self.assignment_epoch = 0
        self.members: dict[str, ConsumerMember] = {}
        self.targets: dict[str, Partitions] = {}
        self.regexes: dict[str, tuple[str, ...]] = {}
        """Expression -> the topics that it stands for."""
        self.static_members: dict[str, str] = {}
        """Instance id -> member id."""
        self.has_partition_metadata = False
        """Kafka before 4.1 wrote a record that is no longer needed: it is removed when the group next changes."""
        self.deadlines: dict[str, int] = {}
        """Timer -> deadline: a timer that fires without standing here, or too early, was replaced or cancelled."""
        self.seen_topics: object = None
        """The topics of the image that the metadata hash was last compared with."""
        self.seen_names: object = None
        """The names that the expressions were last resolved against."""
        self.regexes_resolved_ms: int | None = None
        self.assigned_ms: int | None = None
        """When the target was last worked out, on this broker."""
        self._owners: dict[tuple[TopicId, int], str] = {}
        self._topic_uses: dict[str, int] = {}
        """Topic -> how many members subscribe to it by name. A join must not look at all the other members."""
        self._regex_uses: dict[str, int] = {}
        self._regex_topics: frozenset[str] | None = None

    def look_at_topics_again(self) -> None:
        """At the next heartbeat, whether they have changed or not."""
        self.seen_topics = self.seen_names = self.regexes_resolved_ms = self.assigned_ms = None

    # As a Group of the registry

    @property
    def group_type(self) -> GroupType:
        return GroupType.CONSUMER

    @property
    def state_name(self) -> str:
        if not self.members:
            return "Empty"
        if self.epoch > self.assignment_epoch:
            return "Assigning"
        reconciled = all(member.is_reconciled_to(self.assignment_epoch) for member in self.members.values())
        return "Stable" if reconciled else "Reconciling"

    @property
    def protocol_type_name(self) -> str:
        return CONSUMER_PROTOCOL_TYPE

    @property
    def is_empty(self) -> bool:
        return not self.members

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, transactional: bool, version: int
    ) -> ErrorCode:
        if generation < 0 and self.is_empty:
            return ErrorCode.NONE  # a tool, or a consumer that assigns its partitions itself
        member = self.members.get(member_id)
        if member is None:
            return ErrorCode.UNKNOWN_MEMBER_ID
        if not transactional and member.classic is None and version < MEMBER_EPOCH_SINCE:
            return ErrorCode.UNSUPPORTED_VERSION
        return _check_epoch(member, generation)

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode:
        if member_id is None and member_epoch < 0:
            return ErrorCode.NONE
        member = self.members.get(member_id or "")
        return ErrorCode.UNKNOWN_MEMBER_ID if member is None else _check_epoch(member, member_epoch)

    def check_offset_delete(self) -> ErrorCode:
        return ErrorCode.NONE

    def check_delete(self) -> ErrorCode:
        return ErrorCode.NONE if self.is_empty else ErrorCode.NON_EMPTY_GROUP

    def tombstones(self) -> list[CoordinatorRecord]:
        return self.tombstones_of(list(self.members))

    def tombstones_of(self, member_ids: list[str]) -> list[CoordinatorRecord]:
        records = group_tombstones(self.group_id, member_ids, list(self.regexes))
        if self.has_partition_metadata:
            records.insert(0, partition_metadata_tombstone(self.group_id))
        return records

    def is_subscribed_to(self, topic: str) -> bool:
        if topic in self._topic_uses:
            return True
        if self._regex_topics is None:
            self._regex_topics = frozenset(name for topics in self.regexes.values() for name in topics)
        return topic in self._regex_topics

    def offset_kept_since(self, commit_timestamp: int) -> int | None:
        return commit_timestamp

    # What follows from the state

    @staticmethod
    def topics_of(members: Iterable[ConsumerMember], regexes: Mapping[str, tuple[str, ...]]) -> dict[str, None]:
        topics: dict[str, None] = {}
        for member in members:
            topics.update(dict.fromkeys(member.subscribed_topic_names))
            topics.update(dict.fromkeys(regexes.get(member.subscribed_topic_regex, ())))
        return topics

    def topics_after(
        self,
        leaving: Iterable[ConsumerMember],
        joining: Iterable[ConsumerMember],
        regexes: Mapping[str, Iterable[str]],
        existing: Mapping[str, object],
    ) -> list[str]:
        """Of the existing topics, what all members subscribe to once these have left and those have joined.

        `regexes` are all the expressions that then count.
        """
        change = _difference(
            (name for member in leaving for name in member.subscribed_topic_names),
            (name for member in joining for name in member.subscribed_topic_names),
        )
        uses = self._topic_uses
        # Whichever is shorter: members may subscribe to any number of topics that do not exist.
        candidates = existing if len(existing) < len(uses) else dict.fromkeys((*uses, *change))
        by_name = [name for name in candidates if uses.get(name, 0) + change.get(name, 0)]
        return [name for name in set(by_name).union(*regexes.values()) if name in existing]

    def regexes_after(self, leaving: Iterable[ConsumerMember], joining: Iterable[ConsumerMember]) -> list[str]:
        """The expressions in use once these have left and those have joined."""
        change = _difference(
            (member.subscribed_topic_regex for member in leaving),
            (member.subscribed_topic_regex for member in joining),
        )
        uses = self._regex_uses
        used = dict.fromkeys((*uses, *change))
        return [regex for regex in used if regex and uses.get(regex, 0) + change.get(regex, 0)]

    def static_member(self, instance_id: str) -> ConsumerMember | None:
        member_id = self.static_members.get(instance_id)
        return None if member_id is None else self.members.get(member_id)

    def is_held_by_another(self, member_id: str, topic_id: TopicId, partition: int) -> bool:
        """Assigned, or not yet given up."""
        return self._owners.get((topic_id, partition), member_id) != member_id

    def waits_for_others(self, member: ConsumerMember) -> bool:
        """Whether something in its target is still held by another member."""
        assigned = member.assigned_partitions
        return any(
            self.is_held_by_another(member.member_id, topic_id, partition)
            for topic_id, partitions in self.targets.get(member.member_id, {}).items()
            for partition in sorted(partitions - assigned.get(topic_id, frozenset()))
        )

    def uses_regex(self, regex: str, except_member_ids: tuple[str, ...] = ()) -> bool:
        return any(
            member.subscribed_topic_regex == regex and member.member_id not in except_member_ids
            for member in self.members.values()
        )

    def supports_protocols(self, protocol_type: str, names: Iterable[str]) -> bool:
        """Whether a classic member with these protocols can be in the group with the classic members there are."""
        if protocol_type != CONSUMER_PROTOCOL_TYPE:
            return False
        offered = [dict(member.classic.protocols) for member in self.members.values() if member.classic is not None]
        return any(all(name in protocols for protocols in offered) for name in names)

    def only_classic_without(self, member_ids: Container[str]) -> bool:
        """Whether the last member of the consumer protocol is among these, and everybody else is classic."""
        found = False
        for member in self.members.values():
            if member.classic is None:
                if member.member_id not in member_ids:
                    return False
                found = True
        return found

    # Durable state

    def put_member(self, member: ConsumerMember) -> None:
        before = self.members.get(member.member_id)
        if before is not None:
            self._release(before)
        if before is None or before.subscription != member.subscription:
            self._count(member, 1)
            if before is not None:
                self._count(before, -1)
        self.members[member.member_id] = member
        if member.instance_id is not None:
            self.static_members[member.instance_id] = member.member_id
        for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    self._owners[topic_id, number] = member.member_id

    def remove_member(self, member_id: str) -> None:
        member = self.members.pop(member_id, None)
        if member is None:
            return
        self._release(member)
        self._count(member, -1)
        if member.instance_id is not None and self.static_members.get(member.instance_id) == member_id:
            del self.static_members[member.instance_id]

    def _count(self, member: ConsumerMember, difference: int) -> None:
        names, regex = member.subscription
        for uses, keys in ((self._topic_uses, names), (self._regex_uses, (regex,))):
            for key in keys:
                uses[key] = uses.get(key, 0) + difference
                if not uses[key]:
                    del uses[key]

    def put_regex(self, regex: str, topics: tuple[str, ...]) -> None:
        self.regexes[regex] = topics
        self._regex_topics = None

    def remove_regex(self, regex: str) -> None:
        self.regexes.pop(regex, None)
        self._regex_topics = None

    def _release(self, member: ConsumerMember) -> None:
        for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
            for topic_id, numbers in partitions.items():
                for number in numbers:
                    if self._owners.get((topic_id, number)) == member.member_id:
                        del self._owners[topic_id, number]

    def check(self) -> None:
        owners: dict[tuple[TopicId, int], str] = {}
        for member_id, member in self.members.items():
            assert member.member_id == member_id
            assert member.member_epoch <= self.assignment_epoch <= self.epoch, member
            for partitions in (member.assigned_partitions, member.partitions_pending_revocation):
                for topic_id, numbers in partitions.items():
                    for number in sorted(numbers):
                        assert (topic_id, number) not in owners, f"{number} of {topic_id!r} has two owners"
                        owners[topic_id, number] = member_id
        assert owners == self._owners
        targeted: dict[tuple[TopicId, int], str] = {}
        for member_id, target in self.targets.items():
            assert member_id in self.members
            for topic_id, numbers in target.items():
                for number in sorted(numbers):
                    assert targeted.setdefault((topic_id, number), member_id) == member_id
        assert all(self.members[member_id].instance_id == each for each, member_id in self.static_members.items())
        assert all(self.uses_regex(regex) for regex in self.regexes)
        members = self.members.values()
        assert self._topic_uses == Counter(name for member in members for name in member.subscribed_topic_names)
        assert self._regex_uses == Counter(member.subscribed_topic_regex for member in members)


def _difference(less: Iterable[str], more: Iterable[str]) -> dict[str, int]:
    difference: dict[str, int] = {}
    for key in less:
        difference[key] = difference.get(key, 0) - 1
    for key in more:
        difference[key] = difference.get(key, 0) + 1
    return difference


def _check_epoch(member: ConsumerMember, epoch: int) -> ErrorCode:
    if epoch == member.member_epoch:
        return ErrorCode.NONE
    return ErrorCode.STALE_MEMBER_EPOCH if member.classic is None else ErrorCode.ILLEGAL_GENERATION
