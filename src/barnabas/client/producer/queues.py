"""The queues of one topic: for each partition the batches that wait to be sent, and where keyless records go now.

Part of the accumulator and touched with its lock held only.
"""

from collections import deque
from collections.abc import Container, Iterator
from typing import TYPE_CHECKING

from barnabas.client.metadata import TopicMetadata
from barnabas.client.producer.fast_path import PartitionSlot, TopicSlot
from barnabas.client.producer.partitioner import RoundRobin, StickyPartition
from barnabas.client.producer.sequences import MAX_SEQUENCE
from barnabas.types import NO_LEADER, NO_TOPIC_ID, TopicId, TopicPartition

if TYPE_CHECKING:
    from barnabas.client.producer.accumulator import Accumulator
    from barnabas.client.producer.batch import ProducerBatch


class PartitionQueue(PartitionSlot):
    """The batches of one partition that wait to be sent."""

    __slots__ = ("accumulator", "batches", "gone", "leader", "muted", "topic", "tp")

    open: "ProducerBatch | None"
    """The last batch, while it takes records."""

    def __init__(self, accumulator: "Accumulator", topic: "TopicQueues", partition: int) -> None:
        self.accumulator = accumulator
        self.topic = topic
        self.tp = TopicPartition(topic.name, partition)
        self.batches: deque[ProducerBatch] = deque()
        self.open = None
        self.leader = NO_LEADER
        self.gone = False
        """The topic was created again and does not have this partition any more: what is here fails."""
        self.muted = False
        """A batch is on its way and the next must not overtake it (no idempotence, one request in flight)."""

    def put_back(self, batch: "ProducerBatch") -> None:
        """A batch to be sent again comes before all that were not sent yet, and among its like in order."""
        if not batch.has_sequence:
            self.batches.appendleft(batch)
            return
        place = 0
        for other in self.batches:
            if not other.has_sequence or not _before(other.base_sequence, batch.base_sequence):
                break
            place += 1
        self.batches.insert(place, batch)

    def queued_bytes(self) -> int:
        return sum(batch.current_size() for batch in self.batches)

    def __iter__(self) -> Iterator["ProducerBatch"]:
        return iter(self.batches)


class TopicQueues(TopicSlot):
    """The queues of one topic."""

    __slots__ = (
        "_mark",
        "_replaced_id",
        "_topic_id",
        "_was_gone",
        "accumulator",
        "available",
        "max_batch_bytes",
        "name",
        "round_robin",
        "sticky",
    )

    partitions: list[PartitionQueue]
    current: "ProducerBatch | None"
    """The open batch of the sticky partition: where `send` looks first."""

    def __init__(self, accumulator: "Accumulator", name: str, sticky: StickyPartition, max_batch_bytes: int) -> None:
        self.accumulator = accumulator
        self.name = name
        self.partitions = []
        self.available: list[int] = []
        """Partitions that have a leader."""
        self.sticky = sticky
        self.round_robin = RoundRobin()
        self.max_batch_bytes = max_batch_bytes
        """The broker's limit as far as it is known: MESSAGE_TOO_LARGE lowers it."""
        self.current = None
        self._mark = 0
        self._topic_id = self._replaced_id = NO_TOPIC_ID
        self._was_gone = False

    def follow(self, known: TopicMetadata | None, brokers: Container[int]) -> list[PartitionQueue] | None:
        """Takes over leaders and the number of partitions.

        If the topic was created again, gives the queues of partitions that are not there any more, else None.
        Partitions are never taken away from a topic: fewer of them mean a broker that lags behind, and are ignored,
        unless the topic is another one of the same name. Without topic ids that is known if it was missed in between.
        """
        if known is None:
            self._was_gone = True
            self.available = []
            for queue in self.partitions:
                queue.leader = NO_LEADER
            return None
        gone = self._shrink(known.partition_count) if self._is_another(known.topic_id) else None
        self._was_gone = False
        self.grow(known.partition_count)
        self.available = [each.partition for each in known.partitions if each.leader in brokers]
        for each in known.partitions:
            self.partitions[each.partition].leader = each.leader if each.leader in brokers else NO_LEADER
        return gone

    def grow(self, partition_count: int) -> None:
        for partition in range(len(self.partitions), partition_count):
            self.partitions.append(PartitionQueue(self.accumulator, self, partition))

    def _is_another(self, topic_id: TopicId) -> bool:
        """Than the one whose metadata came before. An id that was replaced comes from who lags behind."""
        before, self._topic_id = self._topic_id, topic_id
        if NO_TOPIC_ID in (before, topic_id):
            return self._was_gone
        if topic_id == self._replaced_id:
            self._topic_id = before
            return False
        if topic_id != before:
            self._replaced_id = before
        return topic_id != before

    def _shrink(self, partition_count: int) -> list[PartitionQueue]:
        gone = self.partitions[partition_count:]
        if gone:
            # In one step: the fast path, which takes no lock, reads the count and then the queue of a lower number.
            del self.partitions[partition_count:]
            self.sticky.update_load(())
        for queue in gone:
            queue.gone = True
            queue.leader = NO_LEADER
        return gone

    def sticky_queue(self, batch_size: int) -> PartitionQueue:
        """The queue for a record without a key, after `batch.size` bytes another one.

        It changes when the batch is full, so that none goes out half empty, at the latest after twice the bytes.
        """
        self.count_current()
        sticky = self.sticky
        if sticky.partition < 0 or sticky.partition >= len(self.partitions) or self._had_enough(batch_size):
            sticky.draw(self.available, len(self.partitions))
            self.set_current(self.partitions[sticky.partition].open)
        return self.partitions[sticky.partition]

    def set_current(self, batch: "ProducerBatch | None", counted_bytes: int | None = None) -> None:
        """`counted_bytes`: how much of the batch is not to be counted, all that it has so far unless given."""
        self.count_current()
        self.current = batch
        if counted_bytes is None:
            counted_bytes = 0 if batch is None else batch.current_size()
        self._mark = counted_bytes

    def count_current(self) -> None:
        """Adds what the current batch has grown by to the bytes that the sticky partition got."""
        if self.current is not None:
            size = self.current.current_size()
            self.sticky.produced_bytes += size - self._mark
            self._mark = size

    def bytes_to_switch(self, batch_size: int) -> int:
        """How many bytes the sticky partition may still get before the next check."""
        if len(self.partitions) == 1:
            return MAX_SEQUENCE
        produced = self.sticky.produced_bytes
        return (batch_size if produced < batch_size else 2 * batch_size) - produced

    def _had_enough(self, batch_size: int) -> bool:
        produced = self.sticky.produced_bytes
        if produced < batch_size or len(self.partitions) == 1:
            return False
        full = self.current is None or self.current.current_size() >= batch_size
        return full or produced >= 2 * batch_size


def _before(sequence: int, other: int) -> bool:
    """In the order of sequence numbers, which go on at 0 after 2^31 - 1."""
    return 0 < (other - sequence) & MAX_SEQUENCE < 1 << 30
