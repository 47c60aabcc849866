"""Removal of expired offsets (of unused groups) and of the offsets of deleted topics.

Runs off the timer `offset-expiry:` every `offsets.retention.check.interval.ms`. Each step writes a bounded number of
tombstones and is then scheduled again at once, so that one batch never exceeds what a log accepts. It checks a bounded
number of offsets, to the nearest group, so that the shard's members do not have to wait.
"""

from collections.abc import Mapping

from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.delayed.progress import DELAYED_GROUP_PREFIX
from barnabas.machines.group.offsets import Offsets, tombstone
from barnabas.machines.group.outcome import Outcome, TimerName, timer_key
from barnabas.machines.group.part import Commands, Records, Timers
from barnabas.machines.group.registry import Group, GroupRegistry
from barnabas.machines.group.settings import GroupSettings
from barnabas.machines.group.stored_offset import StoredOffset, read_stored
from barnabas.types import NO_TIMESTAMP, GroupId, TopicId

EXPIRY_TIMER = "offset-expiry"
DELETION_TIMER = "offset-deletion"
TOMBSTONES_A_STEP = 1000
OFFSETS_A_STEP = 5000


class OffsetRemoval:
    __slots__ = ("_deleted_topics", "_not_looked_at", "_offsets", "_registry", "_settings", "_topic_names")

    def __init__(self, registry: GroupRegistry, offsets: Offsets, settings: GroupSettings) -> None:
        self._registry = registry
        self._offsets = offsets
        self._settings = settings
        self._topic_names: Mapping[TopicId, str] = {}
        self._deleted_topics: dict[str, None] = {}
        self._not_looked_at: list[GroupId] = []
        """Groups left in the current round of expiry, the next one last."""

    def commands(self) -> Commands:
        return {}

    def records(self) -> Records:
        return {}

    def timers(self) -> Timers:
        return {EXPIRY_TIMER: self._on_expiry_timer, DELETION_TIMER: self._on_deletion_timer}

    def on_loaded(self, outcome: Outcome) -> None:
        outcome.arm(timer_key(EXPIRY_TIMER, ""), self._settings.offsets_retention_check_interval_ms)

    def _on_expiry_timer(self, _: TimerName, outcome: Outcome) -> None:
        before = self._not_looked_at = self._not_looked_at or [group.group_id for group in self._registry][::-1]
        looked_at = 0
        while before and looked_at < OFFSETS_A_STEP:
            group = self._registry.get(before[-1])
            if group is not None:
                looked_at += 1 + self._expire_group(group, outcome)
            if len(outcome.records) >= TOMBSTONES_A_STEP:
                break
            before.pop()
        outcome.arm(timer_key(EXPIRY_TIMER, ""), 0 if before else self._settings.offsets_retention_check_interval_ms)

    def _expire_group(self, group: Group, outcome: Outcome) -> int:
        """Returns how many offsets were checked.

        A group is removed with its last offset, unless it has members or open transactions with offsets.
        """
        group_id = group.group_id
        looked_at = 0
        left_over = self._offsets.has_open_transactions(group_id)
        for topic, partitions in self._offsets.of_group(group_id).items():
            subscribed = group.is_subscribed_to(topic)
            for partition, stored in partitions.items():
                if len(outcome.records) >= TOMBSTONES_A_STEP:
                    return looked_at
                looked_at += 1
                if subscribed or not self._has_expired(group, topic, partition, stored, outcome.now.wall_ms):
                    left_over = True
                else:
                    outcome.records.append(tombstone(group_id, topic, partition))
        if not left_over and group.is_empty:
            outcome.records += group.tombstones()
        return looked_at

    def _has_expired(self, group: Group, topic: str, partition: int, stored: StoredOffset, wall_ms: int) -> bool:
        offset = read_stored(stored)
        if group.group_id.startswith(DELAYED_GROUP_PREFIX):
            return False  # the progress of delayed messages: without it all of them would be delivered again
        since = group.offset_kept_since(offset.commit_timestamp)
        if since is None or self._offsets.is_pending(group.group_id, topic, partition):
            return False
        if offset.expire_timestamp != NO_TIMESTAMP:
            return wall_ms >= offset.expire_timestamp
        return wall_ms - since >= self._settings.offsets_retention_ms

    def on_image(self, image: ClusterImage, outcome: Outcome) -> None:
        """Offsets of a topic that was deleted, or recreated under the same name, are removed."""
        before, self._topic_names = self._topic_names, image.topic_names
        if before is image.topic_names:
            return
        gone = sorted(before.keys() - image.topic_names.keys())
        self._deleted_topics.update(dict.fromkeys(before[topic_id] for topic_id in gone))
        if gone:
            self._delete_offsets(outcome)

    def _on_deletion_timer(self, _: TimerName, outcome: Outcome) -> None:
        self._delete_offsets(outcome)

    def _delete_offsets(self, outcome: Outcome) -> None:
        for group_id in self._offsets.group_ids():
            for topic in self._deleted_topics:
                for _, partition in self._offsets.partitions_of(group_id, topic):
                    if len(outcome.records) >= TOMBSTONES_A_STEP:
                        outcome.arm(timer_key(DELETION_TIMER, ""), 0)
                        return
                    outcome.records.append(tombstone(group_id, topic, partition))
        self._deleted_topics.clear()
