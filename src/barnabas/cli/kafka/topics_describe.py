"""`kafka-topics.sh --describe`: one line per topic and one per partition."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import NamedTuple

from barnabas.cli.kafka.flags import Options
from barnabas.client.admin import Admin
from barnabas.client.admin.types import (
    ConfigEntry,
    ConfigResource,
    PartitionDescription,
    PartitionReassignment,
    TopicDescription,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

MIN_ISR = "min.insync.replicas"
NO_TOPIC = "A" * 22
Reassignments = Mapping[TopicPartition, PartitionReassignment]


class View(NamedTuple):
    """What is to be shown, and what is needed to judge a partition."""

    options: Options
    live_brokers: frozenset[int]
    reassignments: Reassignments

    @property
    def only_some_partitions(self) -> bool:
        names = ("under-replicated-partitions", "unavailable-partitions", "under-min-isr-partitions")
        return bool(self.options.given_of(*names, "at-min-isr-partitions"))

    def shows(self, topic: str, partition: PartitionDescription, min_isr: int) -> bool:
        reassignment = self.reassignments.get(TopicPartition(topic, partition.partition))
        in_sync = len(partition.isr)
        reports = {
            "under-replicated-partitions": replication_factor(partition, reassignment) > in_sync,
            "unavailable-partitions": partition.leader not in self.live_brokers,
            "under-min-isr-partitions": partition.leader is None or in_sync < min_isr,
            "at-min-isr-partitions": in_sync == min_isr,
        }
        return any(holds and self.options.has(report) for report, holds in reports.items())


def describe_topics(admin: Admin, options: Options) -> None:
    topics = _described(admin, options)
    configs = admin.describe_configs(ConfigResource.topic(topic.name) for topic in topics) if topics else {}
    brokers = frozenset(broker.node.id for broker in admin.describe_cluster().brokers)
    view = View(options, brokers, _reassignments(admin, topics))
    for topic in topics:
        config = configs[ConfigResource.topic(topic.name)]
        partitions = sorted(topic.partitions, key=lambda each: each.partition)
        own = [f"{entry.name}={entry.value}" for entry in config.values() if not entry.is_default]
        if not view.only_some_partitions and (own or not options.has("topics-with-overrides")):
            print(_topic_line(topic, own, view.reassignments))
        if not options.has("topics-with-overrides"):
            _print_partitions(view, topic.name, partitions, config)


def _print_partitions(
    view: View, topic: str, partitions: Iterable[PartitionDescription], config: Mapping[str, ConfigEntry]
) -> None:
    min_isr = int(config[MIN_ISR].value or 1) if MIN_ISR in config else 1
    for partition in partitions:
        if not view.only_some_partitions or view.shows(topic, partition, min_isr):
            print(_partition_line(topic, partition, view.reassignments.get(TopicPartition(topic, partition.partition))))


def _described(admin: Admin, options: Options) -> list[TopicDescription]:
    from barnabas.cli.kafka.topics import matching_topics

    topic_id = options.value("topic-id")
    if topic_id is not None and topic_id != NO_TOPIC:
        listed = admin.list_topics(include_internal=not options.has("exclude-internal"))
        names = [topic.name for topic in listed.values() if topic.topic_id == topic_id]
        if not names and not options.has("if-exists"):
            raise ValueError(f"TopicId '{topic_id}' does not exist as expected")
    else:
        names = matching_topics(admin, options)
    described = admin.describe_topics(names) if names else {}
    return [_without_elr(described[name]) if topic_id else described[name] for name in names]


def _without_elr(topic: TopicDescription) -> TopicDescription:
    """By id, Kafka sends a request whose response has no eligible leader replicas."""
    partitions = (
        replace(each, eligible_leader_replicas=None, last_known_eligible_leader_replicas=None)
        for each in topic.partitions
    )
    return replace(topic, partitions=tuple(partitions))


def _reassignments(admin: Admin, topics: Iterable[TopicDescription]) -> Reassignments:
    wanted = [TopicPartition(topic.name, each.partition) for topic in topics for each in topic.partitions]
    try:
        return admin.list_partition_reassignments(wanted) if wanted else {}
    except KafkaError as error:
        # A broker that does not report them, or not to this user: the rest of the description is worth having.
        if error.code in (ErrorCode.UNSUPPORTED_VERSION, ErrorCode.CLUSTER_AUTHORIZATION_FAILED):
            return {}
        raise


def replication_factor(partition: PartitionDescription, reassignment: PartitionReassignment | None) -> int:
    """While replicas move, those that are being added do not count."""
    if reassignment is not None:
        moving = {*reassignment.adding_replicas, *reassignment.removing_replicas}
        if moving.intersection(partition.replicas):
            return len(reassignment.replicas) - len(reassignment.adding_replicas)
    return len(partition.replicas)


def _topic_line(topic: TopicDescription, own: list[str], reassignments: Reassignments) -> str:
    first = min(topic.partitions, key=lambda each: each.partition)
    factor = replication_factor(first, reassignments.get(TopicPartition(topic.name, first.partition)))
    cells = [
        f"Topic: {topic.name}",
        f"TopicId: {topic.topic_id}" if topic.topic_id is not None else None,
        f"PartitionCount: {len(topic.partitions)}",
        f"ReplicationFactor: {factor}",
        f"Configs: {','.join(own)}",
    ]
    return "\t".join(cell for cell in cells if cell is not None)


def _partition_line(topic: str, partition: PartitionDescription, reassignment: PartitionReassignment | None) -> str:
    cells = [
        f"\tTopic: {topic}",
        f"Partition: {partition.partition}",
        f"Leader: {'none' if partition.leader is None else partition.leader}",
        f"Replicas: {_ids(partition.replicas)}",
        f"Isr: {_ids(partition.isr)}",
    ]
    if reassignment is not None:
        cells.append(f"Adding Replicas: {_ids(reassignment.adding_replicas)}")
        cells.append(f"Removing Replicas: {_ids(reassignment.removing_replicas)}")
    for name, replicas in (
        ("Elr", partition.eligible_leader_replicas),
        ("LastKnownElr", partition.last_known_eligible_leader_replicas),
    ):
        cells.append(f"{name}: {'N/A' if replicas is None else _ids(replicas)}")
    return "\t".join(cells)


def _ids(brokers: Iterable[int]) -> str:
    return ",".join(map(str, brokers))
