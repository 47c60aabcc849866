"""Responses about topics, converted to the types of the admin client."""

from barnabas.client.admin.errors import admin_error
from barnabas.client.admin.types import (
    ConfigEntry,
    ConfigSource,
    CreatedTopic,
    PartitionDescription,
    TopicDescription,
    TopicListing,
)
from barnabas.client.admin.types.acls import authorized_operations
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.create_topics import CreatableTopicResult
from barnabas.protocol.messages.describe_topic_partitions import DescribeTopicPartitionsResponseTopic
from barnabas.protocol.messages.metadata import MetadataResponseTopic
from barnabas.types import NO_TOPIC_ID, TopicId, topic_id_text

Eligible = dict[int, tuple[tuple[int, ...] | None, tuple[int, ...] | None]]
"""By partition: eligible leader replicas, and those known last."""


def created_topic(topic: CreatableTopicResult, if_not_exists: bool) -> CreatedTopic | KafkaError:
    if topic.error_code == ErrorCode.TOPIC_ALREADY_EXISTS and if_not_exists:
        return CreatedTopic.of_name(topic.name, existed=True)
    if topic.error_code:
        return admin_error(topic.error_code, topic.error_message, topic=topic.name)
    configs = topic.configs if topic.num_partitions >= 0 else None
    return CreatedTopic(
        name=topic.name,
        topic_id=_topic_id(topic.topic_id),
        partitions=topic.num_partitions if topic.num_partitions >= 0 else None,
        replication_factor=topic.replication_factor if topic.replication_factor >= 0 else None,
        config=None
        if configs is None
        else {
            entry.name: ConfigEntry(
                name=entry.name,
                value=entry.value,
                source=ConfigSource(entry.config_source),
                is_read_only=entry.read_only,
                is_sensitive=entry.is_sensitive,
            )
            for entry in configs
        },
    )


def listed_topic(topic: MetadataResponseTopic) -> TopicListing:
    return TopicListing(
        name=topic.name or "",
        topic_id=_topic_id(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=len(topic.partitions),
        replication_factor=len(topic.partitions[0].replica_nodes) if topic.partitions else 0,
    )


def described_by_pages(
    topic: DescribeTopicPartitionsResponseTopic, with_operations: bool
) -> TopicDescription | KafkaError:
    eligible = {
        each.partition_index: (_ids(each.eligible_leader_replicas), _ids(each.last_known_elr))
        for each in topic.partitions
    }
    return _described(topic, with_operations, eligible)


def described_by_metadata(topic: MetadataResponseTopic) -> TopicDescription | KafkaError:
    return _described(topic, True, {})


def _described(
    topic: DescribeTopicPartitionsResponseTopic | MetadataResponseTopic, with_operations: bool, eligible: Eligible
) -> TopicDescription | KafkaError:
    if topic.error_code:
        return admin_error(topic.error_code, topic=topic.name)
    partitions = []
    for each in topic.partitions:
        eligible_leaders, last_known_leaders = eligible.get(each.partition_index, (None, None))
        partition = PartitionDescription(
            partition=each.partition_index,
            leader=_or_none(each.leader_id),
            leader_epoch=_or_none(each.leader_epoch),
            replicas=tuple(each.replica_nodes),
            isr=tuple(each.isr_nodes),
            offline_replicas=tuple(each.offline_replicas),
            eligible_leader_replicas=eligible_leaders,
            last_known_eligible_leader_replicas=last_known_leaders,
        )
        partitions.append(partition)
    return TopicDescription(
        name=topic.name or "",
        topic_id=_topic_id(topic.topic_id),
        is_internal=topic.is_internal,
        partitions=tuple(sorted(partitions, key=lambda each: each.partition)),
        authorized_operations=authorized_operations(topic.topic_authorized_operations) if with_operations else None,
    )


def _topic_id(topic_id: TopicId) -> str | None:
    return None if topic_id == NO_TOPIC_ID else topic_id_text(topic_id)


def _or_none(number: int) -> int | None:
    return number if number >= 0 else None


def _ids(ids: list[int] | None) -> tuple[int, ...] | None:
    return None if ids is None else tuple(ids)
