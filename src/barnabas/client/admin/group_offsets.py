"""Offsets that groups have stored: read, set and delete them. Requests go to the group's coordinator.

Setting and deleting works on partitions that no member reads, or the broker refuses.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.records import by_topic, named_partition
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import GroupOffsets
from barnabas.client.cluster_client import CoordinatorKind
from barnabas.client.consumer.arguments import offsets_of
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages import offset_commit as commit_messages
from barnabas.protocol.messages import offset_delete as delete_messages
from barnabas.protocol.messages import offset_fetch as fetch_messages
from barnabas.types import GroupId, TopicPartition

GROUP = CoordinatorKind.GROUP
BY_NAME = 9
"""Later versions of OffsetFetch and OffsetCommit name topics by id; offsets of deleted topics have names only."""
MANY_GROUPS, STABLE_ONLY, ALL_PARTITIONS = 8, 7, 2
_HAS_MEMBERS = (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH)


@dataclass(frozen=True, slots=True)
class GroupOffsetAdmin:
    """Committed offsets of groups."""

    requests: AdminRequests

    async def list_group_offsets(
        self,
        group_id: str,
        partitions: Iterable[tuple[str, int]] | None = None,
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> GroupOffsets:
        """The offsets that a group has stored, all or of certain partitions (None where there is none).

        `require_stable`: wait for transactions that are about to change them.
        """
        wanted = None if partitions is None else [named_partition(each) for each in partitions]
        deadline = self.requests.deadline(timeout)
        return (await self._fetch({group_id: wanted}, require_stable, deadline)).only(group_id)

    async def list_groups_offsets(
        self,
        groups: Mapping[str, Iterable[tuple[str, int]] | None],
        *,
        require_stable: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupOffsets]:
        """The same of several groups: group id -> partitions, or None for all."""
        wanted = {
            group_id: None if partitions is None else [named_partition(each) for each in partitions]
            for group_id, partitions in groups.items()
        }
        return (await self._fetch(wanted, require_stable, self.requests.deadline(timeout))).all()

    async def _fetch(
        self, wanted: Mapping[str, list[TopicPartition] | None], require_stable: bool, deadline: Deadline
    ) -> Outcome[str, GroupOffsets]:
        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, GroupOffsets | KafkaError]:
            version = await self.requests.cluster.version_of(node_id, ApiKey.OFFSET_FETCH, max_version=BY_NAME)
            if version >= MANY_GROUPS:
                request = _fetch_request(requested, wanted, require_stable)
                response = await self.requests.send(
                    node_id, request, deadline, max_version=BY_NAME, min_version=MANY_GROUPS
                )
                return {each.group_id: _offsets(each, each.group_id) for each in response.groups}
            results: dict[str, GroupOffsets | KafkaError] = {}
            for group_id in requested:
                old_request = _old_fetch_request(group_id, wanted[group_id], require_stable)
                oldest = STABLE_ONLY if require_stable else ALL_PARTITIONS
                response = await self.requests.send(
                    node_id, old_request, deadline, max_version=MANY_GROUPS - 1, min_version=oldest
                )
                results[group_id] = _offsets(response, group_id)
            return results

        on_retry = self.requests.forget_coordinator(GROUP)
        return await self.requests.call_each(
            wanted, self.requests.on_coordinators(GROUP, deadline), send_to, deadline, on_retry=on_retry
        )

    async def alter_group_offsets(
        self,
        group_id: str,
        offsets: Mapping[TopicPartition, int | OffsetAndMetadata] | Mapping[tuple[str, int], int | OffsetAndMetadata],
        *,
        timeout: float | None = None,
    ) -> None:
        """Store offsets for a group, which is made if need be. Its members must be stopped first."""
        wanted = offsets_of(offsets)
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[TopicPartition]) -> Mapping[TopicPartition, bool | KafkaError]:
            request = commit_messages.OffsetCommitRequest(
                group_id=GroupId(group_id),
                topics=[
                    commit_messages.OffsetCommitRequestTopic(
                        name=topic, partitions=[_committed(key, wanted[key]) for key in keys]
                    )
                    for topic, keys in by_topic(requested).items()
                ],
            )
            response = await self.requests.send(node_id, request, deadline, max_version=BY_NAME)
            return _by_partition(group_id, response)

        (await self._drive_group(group_id, wanted, send_to, deadline, (ErrorCode.REBALANCE_IN_PROGRESS,))).all()

    async def delete_group_offsets(
        self, group_id: str, partitions: Iterable[tuple[str, int]], *, timeout: float | None = None
    ) -> None:
        """Delete the offsets of a group for partitions of topics that no member of it reads."""
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[TopicPartition]) -> Mapping[TopicPartition, bool | KafkaError]:
            request = delete_messages.OffsetDeleteRequest(
                group_id=GroupId(group_id),
                topics=[
                    delete_messages.OffsetDeleteRequestTopic(
                        name=topic,
                        partitions=[
                            delete_messages.OffsetDeleteRequestPartition(partition_index=key.partition) for key in keys
                        ],
                    )
                    for topic, keys in by_topic(requested).items()
                ],
            )
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code, group=group_id)
            return _by_partition(group_id, response)

        (await self._drive_group(group_id, (named_partition(each) for each in partitions), send_to, deadline)).all()

    async def _drive_group(
        self,
        group_id: str,
        keys: Iterable[TopicPartition],
        send_to: Any,
        deadline: Deadline,
        also_retried: tuple[ErrorCode, ...] = (),
    ) -> Outcome[TopicPartition, bool]:
        """Keys are partitions; the group's coordinator serves all of them."""

        async def locate(requested: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
            return dict.fromkeys(requested, await self.requests.cluster.coordinator(GROUP, group_id, deadline))

        def on_retry(key: TopicPartition, error: KafkaError) -> None:
            self.requests.forget_coordinator(GROUP)(group_id, error)

        return await self.requests.call_each(
            keys, locate, send_to, deadline, also_retried=also_retried, on_retry=on_retry
        )


def _fetch_request(
    requested: list[str], wanted: Mapping[str, list[TopicPartition] | None], require_stable: bool
) -> fetch_messages.OffsetFetchRequest:
    groups = []
    for group_id in requested:
        partitions = wanted[group_id]
        group = fetch_messages.OffsetFetchRequestGroup(group_id=GroupId(group_id), topics=None)
        if partitions is not None:
            group.topics = [
                fetch_messages.OffsetFetchRequestTopics(name=topic, partition_indexes=[key.partition for key in keys])
                for topic, keys in by_topic(partitions).items()
            ]
        groups.append(group)
    return fetch_messages.OffsetFetchRequest(groups=groups, require_stable=require_stable)


def _old_fetch_request(
    group_id: str, partitions: list[TopicPartition] | None, require_stable: bool
) -> fetch_messages.OffsetFetchRequest:
    request = fetch_messages.OffsetFetchRequest(group_id=GroupId(group_id), topics=None, require_stable=require_stable)
    if partitions is not None:
        request.topics = [
            fetch_messages.OffsetFetchRequestTopic(name=topic, partition_indexes=[key.partition for key in keys])
            for topic, keys in by_topic(partitions).items()
        ]
    return request


def _offsets(
    response: fetch_messages.OffsetFetchResponse | fetch_messages.OffsetFetchResponseGroup, group_id: str
) -> GroupOffsets | KafkaError:
    if response.error_code:
        return admin_error(response.error_code, group=group_id)
    offsets: dict[TopicPartition, OffsetAndMetadata | None] = {}
    for topic in response.topics:
        for each in topic.partitions:
            if each.error_code:
                return admin_error(each.error_code, topic=topic.name, partition=each.partition_index, group=group_id)
            stored = OffsetAndMetadata(each.committed_offset, each.metadata or "", each.committed_leader_epoch)
            offsets[TopicPartition(topic.name, each.partition_index)] = stored if stored.offset >= 0 else None
    return dict(sorted(offsets.items()))


def _committed(key: TopicPartition, offset: OffsetAndMetadata) -> commit_messages.OffsetCommitRequestPartition:
    return commit_messages.OffsetCommitRequestPartition(
        partition_index=key.partition,
        committed_offset=offset.offset,
        committed_leader_epoch=offset.leader_epoch,
        committed_metadata=offset.metadata,
    )


def _by_partition(
    group_id: str, response: commit_messages.OffsetCommitResponse | delete_messages.OffsetDeleteResponse
) -> dict[TopicPartition, bool | KafkaError]:
    results: dict[TopicPartition, bool | KafkaError] = {}
    for topic in response.topics:
        for each in topic.partitions:
            key = TopicPartition(topic.name, each.partition_index)
            hint = "the group has members: stop them first" if each.error_code in _HAS_MEMBERS else None
            results[key] = True
            if each.error_code:
                results[key] = admin_error(
                    each.error_code, topic=key.topic, partition=key.partition, group=group_id, hint=hint
                )
    return results
