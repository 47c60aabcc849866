"""What a member's word sets off in its group, whichever protocol it speaks:

1. Its record is written if it changed; the group's epoch goes up if the subscription did, or the topics behind it.
2. A group whose epoch is ahead of its target gets a new target from the assignor that most members ask for.
3. The member takes the next step to its target (`reconciliation.py`).

A target costs time by the number of members, so a large group does not get one per join: between two targets passes
`assignment_interval_ms`. A member that joins meanwhile has no partitions yet, and the first heartbeat of anybody after
that makes the target for all of them. Kafka 4.1 makes one per join, later versions have an interval as well.

Also how members go: `remove` writes their end and raises the epoch; the next heartbeat of anybody makes the new target.
Nothing here changes the group: all of it goes into records. Only deadlines are set at once.
"""

from collections.abc import Iterable

from barnabas.machines.assignors.broker import BROKER_ASSIGNORS, Partitions
from barnabas.machines.assignors.member import AssignorMember
from barnabas.machines.controller.image import ClusterImage, TopicImage
from barnabas.machines.group.consumer import records
from barnabas.machines.group.consumer.deadlines import Deadlines
from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.member import ConsumerMember, MemberState
from barnabas.machines.group.consumer.reconciliation import reconcile
from barnabas.machines.group.consumer.settings import ConsumerGroupSettings
from barnabas.machines.group.consumer.subscriptions import Subscriptions
from barnabas.machines.group.consumer.topics import existing_topics, metadata_hash
from barnabas.machines.group.outcome import Outcome
from barnabas.types import TopicId

ASSIGN_AT_ONCE_MEMBERS = 100
"""Up to so many members a target takes less than a millisecond."""


def assignment_interval_ms(member_count: int) -> int:
    """A target takes 3 to 6 microseconds per member: this is about one percent of the time."""
    return 0 if member_count <= ASSIGN_AT_ONCE_MEMBERS else member_count // 2


class ConsumerRebalance:
    __slots__ = ("_deadlines", "_settings", "_subscriptions", "image")

    def __init__(self, settings: ConsumerGroupSettings, deadlines: Deadlines) -> None:
        self._settings = settings
        self._deadlines = deadlines
        self._subscriptions = Subscriptions()
        self.image = ClusterImage()

    def advance(
        self,
        group: ConsumerGroup,
        before: ConsumerMember,
        member: ConsumerMember,
        owned: Partitions | None,
        replaced_id: str | None,
        outcome: Outcome,
    ) -> ConsumerMember:
        """The member after its step. `before` is what the group knew of it, or of the static member it replaces."""
        is_new = before.member_id not in group.members and replaced_id is None
        resubscribed = is_new
        if member != before or is_new:
            outcome.records.append(records.member_record(group.group_id, member))
            resubscribed = is_new or member.subscription != before.subscription
        epoch = group.epoch
        if not resubscribed and epoch <= group.assignment_epoch and not self._has_cluster_changed(group, outcome):
            target = group.targets.get(replaced_id or member.member_id, {})
            return self._reconcile(group, member, group.assignment_epoch, target, owned, outcome)
        known = group.members.get(replaced_id or member.member_id)
        leaving = () if known is None else (known,)
        regexes = self._subscriptions.resolve(group, group.regexes_after(leaving, (member,)), self.image, outcome)
        topics = self._topics_after(group, leaving, (member,), regexes)
        epoch = self._maybe_bump(group, topics, resubscribed, outcome)
        if epoch > group.assignment_epoch and self._is_target_due(group, outcome):
            members = {each: other for each, other in group.members.items() if each != replaced_id}
            members[member.member_id] = member
            targets = self._new_targets(group, epoch, members, topics, regexes, replaced_id, member, outcome)
            return self._reconcile(group, member, epoch, targets[member.member_id], owned, outcome)
        target = group.targets.get(replaced_id or member.member_id, {})
        return self._reconcile(group, member, group.assignment_epoch, target, owned, outcome)

    def remove(self, group: ConsumerGroup, leaving: list[ConsumerMember], outcome: Outcome) -> None:
        for member in leaving:
            outcome.records += records.member_tombstones(group.group_id, member.member_id)
            self._deadlines.cancel_all(group, member.member_id, outcome)
        regexes = self._subscriptions.resolve(group, group.regexes_after(leaving, ()), self.image, outcome)
        self._maybe_bump(group, self._topics_after(group, leaving, (), regexes), True, outcome)

    def _topics_after(
        self,
        group: ConsumerGroup,
        leaving: Iterable[ConsumerMember],
        joining: Iterable[ConsumerMember],
        regexes: dict[str, tuple[str, ...]],
    ) -> dict[str, TopicImage]:
        return existing_topics(self.image, group.topics_after(leaving, joining, regexes, self.image.topics))

    def _is_target_due(self, group: ConsumerGroup, outcome: Outcome) -> bool:
        if group.assigned_ms is None or not group.assignment_epoch:
            return True
        return outcome.now.monotonic_ms - group.assigned_ms >= assignment_interval_ms(len(group.members))

    def _has_cluster_changed(self, group: ConsumerGroup, outcome: Outcome) -> bool:
        """Since the group last looked. Most heartbeats end here, so this is no more than two comparisons."""
        if group.seen_topics is not self.image.topics:
            return True
        return self._subscriptions.are_out_of_date(group, self.image, outcome.now)

    def _maybe_bump(
        self,
        group: ConsumerGroup,
        topics: dict[str, TopicImage],
        resubscribed: bool,
        outcome: Outcome,
    ) -> int:
        new_hash = metadata_hash(topics)
        group.seen_topics = self.image.topics
        if not resubscribed and new_hash == group.metadata_hash:
            return group.epoch
        if group.has_partition_metadata:
            outcome.records.append(records.partition_metadata_tombstone(group.group_id))
        outcome.records.append(records.epoch_record(group.group_id, group.epoch + 1, new_hash))
        return group.epoch + 1

    def _new_targets(
        self,
        group: ConsumerGroup,
        epoch: int,
        members: dict[str, ConsumerMember],
        topics: dict[str, TopicImage],
        regexes: dict[str, tuple[str, ...]],
        replaced_id: str | None,
        changed: ConsumerMember,
        outcome: Outcome,
    ) -> dict[str, Partitions]:
        before = {each: group.targets.get(each, {}) for each in members}
        if replaced_id is not None:
            before[changed.member_id] = group.targets.get(replaced_id, {})
        specs = {}
        topic_ids: dict[tuple[tuple[str, ...], str], list[TopicId]] = {}
        """By subscription: most members have the same one."""
        for member_id, member in members.items():
            subscribed = topic_ids.get(member.subscription)
            if subscribed is None:
                names = group.topics_of((member,), regexes)
                subscribed = [topics[name].topic_id for name in names if name in topics]
                topic_ids[member.subscription] = subscribed
            specs[member_id] = AssignorMember(
                topics=subscribed,
                instance_id=member.instance_id,
                owned=[(topic_id, p) for topic_id, numbers in before[member_id].items() for p in sorted(numbers)],
            )
        assign = BROKER_ASSIGNORS[self.preferred_assignor(members.values())]
        targets = assign({topic.topic_id: len(topic.partitions) for topic in topics.values()}, specs)
        for member_id, target in targets.items():
            if target != before[member_id] or member_id not in group.targets:
                outcome.records.append(records.target_record(group.group_id, member_id, target))
        outcome.records.append(records.target_epoch_record(group.group_id, epoch))
        group.assigned_ms = outcome.now.monotonic_ms
        return targets

    def preferred_assignor(self, members: Iterable[ConsumerMember]) -> str:
        """Of those asked for by most members, the first in the broker's own order."""
        votes = dict.fromkeys(self._settings.assignors, 0)
        for member in members:
            if member.server_assignor in votes:
                votes[member.server_assignor] += 1
        return max(votes, key=votes.__getitem__)

    def _reconcile(
        self,
        group: ConsumerGroup,
        member: ConsumerMember,
        target_epoch: int,
        target: Partitions,
        owned: Partitions | None,
        outcome: Outcome,
    ) -> ConsumerMember:
        if member.is_reconciled_to(target_epoch):
            return member

        def is_held(topic_id: bytes, partition: int) -> bool:
            return group.is_held_by_another(member.member_id, topic_id, partition)

        moved = reconcile(member, target_epoch, target, owned, is_held)
        if moved is not member:
            outcome.records.append(records.current_assignment_record(group.group_id, moved))
            if moved.classic is None:
                if moved.state is MemberState.UNREVOKED_PARTITIONS:
                    self._deadlines.arm_rebalance(group, moved, outcome)
                else:
                    self._deadlines.cancel_rebalance(group, moved.member_id, outcome)
        return moved
