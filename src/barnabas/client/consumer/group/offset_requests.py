"""OffsetCommit and OffsetFetch as values: requests by partition, responses by partition.

Both go by topic name, so at most in v9 (v10 goes by topic id). OffsetFetch has had many groups in one request since v8;
before that it named one.
"""

from collections.abc import Collection, Iterable, Iterator, Mapping

from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopic,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
)
from barnabas.types import GroupId, TopicPartition

MAX_VERSION = 9
GROUPS_VERSION = 8
STABLE_VERSION = 7

FetchedOffset = tuple[TopicPartition, int, OffsetAndMetadata | None]
"""(partition, error code, what was committed)"""


def commit_request(identity: GroupMetadata, offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> OffsetCommitRequest:
    topics: dict[str, list[OffsetCommitRequestPartition]] = {}
    for (topic, partition), committed in offsets.items():
        topics.setdefault(topic, []).append(
            OffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=committed.offset,
                committed_leader_epoch=committed.leader_epoch,
                committed_metadata=committed.metadata,
            )
        )
    return OffsetCommitRequest(
        group_id=GroupId(identity.group_id),
        generation_id_or_member_epoch=identity.generation_id,
        member_id=identity.member_id,
        group_instance_id=identity.group_instance_id,
        topics=[OffsetCommitRequestTopic(name=name, partitions=partitions) for name, partitions in topics.items()],
    )


def commit_errors(response: OffsetCommitResponse) -> dict[TopicPartition, int]:
    return {
        TopicPartition(topic.name, partition.partition_index): partition.error_code
        for topic in response.topics
        for partition in topic.partitions
        if partition.error_code
    }


def fetch_request(
    group_id: GroupId,
    member: GroupMetadata | None,
    partitions: Collection[TopicPartition],
    version: int,
    *,
    require_stable: bool,
) -> OffsetFetchRequest:
    """`member` only in the consumer protocol, whose coordinator then checks the member epoch."""
    by_topic: dict[str, list[int]] = {}
    for topic, partition in partitions:
        by_topic.setdefault(topic, []).append(partition)
    stable = require_stable and version >= STABLE_VERSION
    if version < GROUPS_VERSION:
        old = [OffsetFetchRequestTopic(name=name, partition_indexes=each) for name, each in by_topic.items()]
        return OffsetFetchRequest(group_id=group_id, topics=old, require_stable=stable)
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=each) for name, each in by_topic.items()]
    group = OffsetFetchRequestGroup(group_id=group_id, topics=topics)
    if member is not None:
        group.member_id, group.member_epoch = member.member_id, member.generation_id
    return OffsetFetchRequest(groups=[group], require_stable=stable)


def group_error(response: OffsetFetchResponse) -> int:
    return response.groups[0].error_code if response.groups else response.error_code


def fetched_offsets(response: OffsetFetchResponse) -> Iterator[FetchedOffset]:
    topics: Iterable[object] = response.groups[0].topics if response.groups else response.topics
    for topic in topics:
        for partition in topic.partitions:  # type: ignore[attr-defined]
            committed = None
            if partition.committed_offset >= 0:
                committed = OffsetAndMetadata(
                    partition.committed_offset, partition.metadata or "", partition.committed_leader_epoch
                )
            yield TopicPartition(topic.name, partition.partition_index), partition.error_code, committed  # type: ignore[attr-defined]
