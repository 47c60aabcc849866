"""What a test asks of its brokers as any client would: a new topic, everything that is in one.

The clients are imported on first use: they take as long as the broker, and many tests bring their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal

from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.consumer import ConsumerRecord


def create_topic(
    bootstrap: str,
    name: str,
    partitions: int,
    replication_factor: int | None,
    config: Mapping[str, object] | None,
    options: Mapping[str, Any],
) -> None:
    """`options` are the client's, where brokers want to know who it is."""
    from barnabas.client.admin import Admin

    with Admin(bootstrap, **options) as admin:
        admin.create_topic(
            name, partitions=partitions, replication_factor=replication_factor, config=dict(config or {})
        )


def all_records(bootstrap: str, topic: str, *, committed: bool, options: Mapping[str, Any]) -> list[ConsumerRecord]:
    from barnabas.client.consumer import Consumer

    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed" if committed else "read_uncommitted"
    with Consumer(bootstrap, isolation_level=isolation, max_poll_records=10_000, **options) as consumer:
        partitions = [TopicPartition(topic, each.partition) for each in consumer.partitions_for(topic)]
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(partitions)
        found: list[ConsumerRecord] = []
        # By position and not by what came: the last offsets may be those of control records.
        while any(consumer.position(each) < ends[each] for each in partitions):
            found += consumer.poll(1.0)
    found.sort(key=lambda record: (record.partition, record.offset))
    return [each for each in found if each.offset < ends[TopicPartition(topic, each.partition)]]
