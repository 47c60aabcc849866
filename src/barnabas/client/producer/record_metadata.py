"""What the broker said about one record: returned by `Delivery.result()` and handed to callbacks and interceptors."""

from typing import Final, NamedTuple

from barnabas.types import TopicPartition

UNKNOWN_OFFSET: Final = -1
"""With acks=0 nobody says where a record went."""


class RecordMetadata(NamedTuple):
    topic: str
    partition: int
    offset: int
    timestamp: int
    """Milliseconds: the record's own, or the broker's when the topic stamps records as they are appended."""

    @property
    def topic_partition(self) -> TopicPartition:
        return TopicPartition(self.topic, self.partition)
