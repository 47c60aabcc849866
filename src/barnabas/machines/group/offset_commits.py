"""OffsetCommit, TxnOffsetCommit and OffsetDelete: what is written to and removed from the offsets of a group.

A commit to a group that does not exist creates a simple group when it is applied (`GroupShard.apply`): without members,
and with only its offsets in the log.
"""

from collections.abc import Callable, Sequence

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import CoordinatorRecord, ProducerIdAndEpoch, Token
from barnabas.machines.group.commands import OffsetCommit, OffsetDelete, TxnOffsetCommit
from barnabas.machines.group.offsets import Offsets, tombstone
from barnabas.machines.group.outcome import Outcome
from barnabas.machines.group.registry import Group, GroupRegistry
from barnabas.machines.group.settings import GroupSettings
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.messages.offset_delete import (
    OffsetDeleteResponse,
    OffsetDeleteResponsePartition,
    OffsetDeleteResponseTopic,
)
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.types import NO_TIMESTAMP, NO_TOPIC_ID, GroupId

GROUP_NOT_FOUND_SINCE = 9
"""From this version on OffsetCommit reports a missing group as such; before, as an old generation."""
VALUE_VERSION = 4
VALUE_VERSION_WITH_EXPIRY = 1

CommittedPartition = OffsetCommitRequestPartition | TxnOffsetCommitRequestPartition


class OffsetCommits:
    __slots__ = ("_offsets", "_on_commit", "_registry", "_settings")

    def __init__(
        self,
        registry: GroupRegistry,
        offsets: Offsets,
        settings: GroupSettings,
        on_commit: Callable[[Group, str, Outcome], None],
    ) -> None:
        """`on_commit(group, member id, outcome)` is called for each accepted OffsetCommit to an existing group."""
        self._registry = registry
        self._offsets = offsets
        self._settings = settings
        self._on_commit = on_commit

    def commit(self, command: OffsetCommit, token: Token, outcome: Outcome) -> None:
        request = command.request
        group = self._registry.get(request.group_id)
        error = self._check_commit(group, request, command.version)
        if group is not None and not error:
            self._on_commit(group, request.member_id, outcome)
        retention_ms = request.retention_time_ms
        expire_timestamp = NO_TIMESTAMP if retention_ms == -1 else outcome.now.wall_ms + retention_ms
        topics = []
        for topic in request.topics:
            errors = [error or self._check_metadata(partition.committed_metadata) for partition in topic.partitions]
            outcome.records += self._records(
                request.group_id, topic.name, topic.topic_id, topic.partitions, errors, expire_timestamp, outcome
            )
            responses = [
                OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                for partition, code in zip(topic.partitions, errors, strict=True)
            ]
            topics.append(OffsetCommitResponseTopic(name=topic.name, topic_id=topic.topic_id, partitions=responses))
        outcome.if_too_large = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        outcome.reply(token, OffsetCommitResponse(topics=topics))

    def commit_in_transaction(self, command: TxnOffsetCommit, token: Token, outcome: Outcome) -> None:
        request = command.request
        error = self._check_transactional_commit(request, command.version)
        topics = []
        for topic in request.topics:
            errors = [error or self._check_metadata(partition.committed_metadata) for partition in topic.partitions]
            outcome.records += self._records(
                request.group_id, topic.name, NO_TOPIC_ID, topic.partitions, errors, NO_TIMESTAMP, outcome
            )
            responses = [
                TxnOffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=code)
                for partition, code in zip(topic.partitions, errors, strict=True)
            ]
            topics.append(TxnOffsetCommitResponseTopic(name=topic.name, partitions=responses))
        outcome.transaction = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        outcome.if_too_large = ErrorCode.INVALID_COMMIT_OFFSET_SIZE
        outcome.reply(token, TxnOffsetCommitResponse(topics=topics))

    def delete(self, command: OffsetDelete, token: Token, outcome: Outcome) -> None:
        request = command.request
        group = self._registry.get(request.group_id)
        if not request.group_id:
            error = ErrorCode.INVALID_GROUP_ID
        else:
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_offset_delete()
        if group is None or error:
            outcome.reply(token, OffsetDeleteResponse(error_code=error))
            return
        topics = []
        for topic in request.topics:
            subscribed = group.is_subscribed_to(topic.name)
            code = ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC if subscribed else ErrorCode.NONE
            partitions = [partition.partition_index for partition in topic.partitions]
            if not subscribed:
                outcome.records += [
                    tombstone(group.group_id, topic.name, partition)
                    for partition in dict.fromkeys(partitions)
                    if self._offsets.has(group.group_id, topic.name, partition)
                ]
            responses = [OffsetDeleteResponsePartition(partition_index=index, error_code=code) for index in partitions]
            topics.append(OffsetDeleteResponseTopic(name=topic.name, partitions=responses))
        outcome.reply(token, OffsetDeleteResponse(topics=topics))

    def _check_commit(self, group: Group | None, request: OffsetCommitRequest, version: int) -> ErrorCode:
        generation = request.generation_id_or_member_epoch
        if group is not None:
            return group.check_offset_commit(request.member_id, request.group_instance_id, generation, False, version)
        if generation < 0:
            return ErrorCode.NONE
        return ErrorCode.GROUP_ID_NOT_FOUND if version >= GROUP_NOT_FOUND_SINCE else ErrorCode.ILLEGAL_GENERATION

    def _check_transactional_commit(self, request: TxnOffsetCommitRequest, version: int) -> ErrorCode:
        if not request.group_id:
            return ErrorCode.INVALID_GROUP_ID
        group = self._registry.get(request.group_id)
        if group is None:
            return ErrorCode.ILLEGAL_GENERATION if request.generation_id >= 0 else ErrorCode.NONE
        error = group.check_offset_commit(
            request.member_id, request.group_instance_id, request.generation_id, True, version
        )
        return ErrorCode.ILLEGAL_GENERATION if error is ErrorCode.STALE_MEMBER_EPOCH else error

    def _check_metadata(self, metadata: str | None) -> ErrorCode:
        """The limit counts UTF-16 units, as Kafka does."""
        if not metadata or len(metadata) * 2 <= self._settings.offset_metadata_max_bytes:
            return ErrorCode.NONE
        length = len(metadata) if metadata.isascii() else len(metadata.encode("utf-16-le")) // 2
        return (
            ErrorCode.OFFSET_METADATA_TOO_LARGE if length > self._settings.offset_metadata_max_bytes else ErrorCode.NONE
        )

    def _records(
        self,
        group_id: GroupId,
        topic: str,
        topic_id: bytes,
        partitions: Sequence[CommittedPartition],
        errors: list[ErrorCode],
        expire_timestamp: int,
        outcome: Outcome,
    ) -> list[CoordinatorRecord]:
        return [
            CoordinatorRecord(
                OffsetCommitKey(group=group_id, topic=topic, partition=partition.partition_index),
                OffsetCommitValue(
                    offset=partition.committed_offset,
                    leader_epoch=partition.committed_leader_epoch,
                    metadata=partition.committed_metadata or "",
                    commit_timestamp=outcome.now.wall_ms,
                    expire_timestamp=expire_timestamp,
                    topic_id=topic_id,
                ),
                VALUE_VERSION if expire_timestamp == NO_TIMESTAMP else VALUE_VERSION_WITH_EXPIRY,
            )
            for partition, error in zip(partitions, errors, strict=True)
            if not error
        ]
