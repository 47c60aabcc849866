"""What a test asks of its brokers as any client would: everything that is in a topic."""

from typing import Literal

from barnabas.client.consumer import Consumer, ConsumerRecord
from barnabas.types import TopicPartition


def all_records(bootstrap: str, topic: str, *, committed: bool) -> list[ConsumerRecord]:
    isolation: Literal["read_committed", "read_uncommitted"] = "read_committed" if committed else "read_uncommitted"
    with Consumer(bootstrap, isolation_level=isolation, max_poll_records=10_000) as consumer:
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
