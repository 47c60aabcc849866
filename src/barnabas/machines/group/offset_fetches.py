"""OffsetFetch: the requested offsets of one group, or all of them.

A group that does not exist has no offsets; that is not an error. With `require_stable` (KIP-447) a partition with
an offset in an open transaction gets UNSTABLE_OFFSET_COMMIT, so that a consumer never starts before it.
"""

from collections.abc import Iterable

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import Token
from barnabas.machines.group.commands import OffsetFetch, OffsetPartitions
from barnabas.machines.group.offsets import Offsets, TopicOffsets
from barnabas.machines.group.outcome import Outcome
from barnabas.machines.group.registry import GroupRegistry
from barnabas.machines.group.stored_offset import read_stored
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopics,
)
from barnabas.types import GroupId

NO_OFFSET = -1


class OffsetFetches:
    __slots__ = ("_offsets", "_registry")

    def __init__(self, registry: GroupRegistry, offsets: Offsets) -> None:
        self._registry = registry
        self._offsets = offsets

    def fetch(self, command: OffsetFetch, token: Token, outcome: Outcome) -> None:
        asked = command.group
        group_id = asked.group_id
        group = self._registry.get(group_id)
        error = ErrorCode.NONE if group is None else group.check_offset_fetch(asked.member_id, asked.member_epoch)
        if error:
            outcome.reply(token, OffsetFetchResponseGroup(group_id=group_id, error_code=error))
            return
        known = self._offsets.of_group(group_id)
        if asked.topics is None:
            topics = [
                OffsetFetchResponseTopics(
                    name=name, partitions=self._partitions(group_id, name, partitions, partitions, command)
                )
                for name, partitions in known.items()
            ]
        else:
            topics = [
                OffsetFetchResponseTopics(
                    name=topic.name,
                    topic_id=topic.topic_id,
                    partitions=self._partitions(
                        group_id, topic.name, topic.partition_indexes, known.get(topic.name, {}), command
                    ),
                )
                for topic in asked.topics
            ]
        if command.only_stored:
            topics = [topic for topic in topics if topic.partitions]
        outcome.reply(token, OffsetFetchResponseGroup(group_id=group_id, topics=topics))

    def partitions(self, command: OffsetPartitions, token: Token, outcome: Outcome) -> None:
        known = self._offsets.of_group(command.group_id)
        outcome.reply(token, {name: list(partitions) for name, partitions in known.items()})

    def _partitions(
        self, group_id: GroupId, topic: str, partitions: Iterable[int], known: TopicOffsets, command: OffsetFetch
    ) -> list[OffsetFetchResponsePartitions]:
        responses = []
        may_be_unstable = command.require_stable and self._offsets.has_open_transactions(group_id)
        for partition in partitions:
            stored = known.get(partition)
            if stored is None and command.only_stored:
                continue
            if may_be_unstable and self._offsets.is_pending(group_id, topic, partition):
                response = OffsetFetchResponsePartitions(
                    partition_index=partition,
                    committed_offset=NO_OFFSET,
                    metadata="",
                    error_code=ErrorCode.UNSTABLE_OFFSET_COMMIT,
                )
            elif stored is None:
                response = OffsetFetchResponsePartitions(
                    partition_index=partition, committed_offset=NO_OFFSET, metadata=""
                )
            else:
                offset = read_stored(stored)
                response = OffsetFetchResponsePartitions(
                    partition_index=partition,
                    committed_offset=offset.offset,
                    committed_leader_epoch=offset.leader_epoch,
                    metadata=offset.metadata,
                )
            responses.append(response)
        return responses
