"""What a consumer can look up: positions, ends, offsets by time, lag, topics. See core.py."""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.consumer.arguments import Partition, partition_of, partitions_of, timestamps_of, topic_of
from barnabas.client.consumer.offset_reset import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP
from barnabas.client.consumer.offsets import OffsetAndTimestamp
from barnabas.client.consumer.polling import PollingCore
from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, UnreachableError
from barnabas.client.metadata import PartitionMetadata, TopicMetadata
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition


class LookupCore(PollingCore):
    async def position(self, partition: Partition, *, timeout: float | None = None) -> int:
        """The offset of the next record that poll will return; waits until it is known."""
        with self._guard:
            state = self._subscription.state(partition_of(partition))
            deadline = self._deadline(timeout)
            self._runtime.kick()
            while not state.has_position:
                self._check_woken()
                if (error := self._runtime.next_error()) is not None:
                    raise error
                if deadline.expired:
                    raise _no_position(state.topic_partition, self._runtime.why_no_position(state.topic_partition))
                await self._side.wait(deadline.remaining_s)
            return state.offset

    async def beginning_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset of the first record of each."""
        return await self._list(partitions, EARLIEST_TIMESTAMP, timeout)

    async def end_offsets(
        self, partitions: Iterable[Partition], *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """The offset after the last record of each; with read_committed that of the first open transaction."""
        return await self._list(partitions, LATEST_TIMESTAMP, timeout)

    async def _list(
        self, partitions: Iterable[Partition], timestamp: int, timeout: float | None
    ) -> dict[TopicPartition, int]:
        with self._guard:
            deadline = self._deadline(timeout)
            asked = dict.fromkeys(partitions_of(partitions), timestamp)
            found = await self._on_io(self._runtime.lookup.list_offsets(asked, deadline), deadline)
            return {entry: found[entry].offset for entry in asked}

    async def offsets_for_times(
        self, timestamps: Mapping[Any, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record at or after its time in ms; None if there is none."""
        with self._guard:
            asked = timestamps_of(timestamps)
            deadline = self._deadline(timeout)
            found = await self._on_io(self._runtime.lookup.list_offsets(asked, deadline), deadline)
            return {entry: None if found[entry].offset < 0 else OffsetAndTimestamp(*found[entry]) for entry in asked}

    def current_lag(self, partition: Partition) -> int | None:
        """How far the position is behind the end, as of the last fetch; None before the first."""
        state = self._subscription.state(partition_of(partition))
        return state.lag(self.options.isolation_level == "read_committed")

    async def lag(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """How far the positions are behind the end, asked of the brokers now; of all assigned if left out."""
        with self._guard:
            chosen = self._chosen(partitions)
            deadline = self._deadline(timeout)
            ends = await self.end_offsets(chosen, timeout=timeout)
            return {
                entry: max(0, ends[entry] - await self.position(entry, timeout=deadline.remaining_s))
                for entry in chosen
            }

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[PartitionMetadata, ...]:
        """The partitions of a topic with their leaders and replicas."""
        with self._guard:
            deadline = self._deadline(timeout)
            found = await self._on_io(self._runtime.cluster.topic_metadata(topic_of(topic), deadline), deadline)
            return found.partitions

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicMetadata]:
        """Every topic this user may see."""
        with self._guard:
            deadline = self._deadline(timeout)
            await self._on_io(self._runtime.cluster.refresh_metadata(None), deadline)
            return dict(self._runtime.cluster.metadata.topics)

    def metrics(self) -> dict[str, float]:
        return self._runtime.metrics()


def _no_position(entry: TopicPartition, why: KafkaError | None) -> KafkaError:
    """What kept it says more than that the time is over."""
    if isinstance(why, UnknownTopicError | UnreachableError):
        return why
    return ClientTimeoutError(
        f"no position for {entry} yet{'' if why is None else f' ({why.message})'}: try again, or seek"
    )
