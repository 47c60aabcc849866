"""What a consumer looks up at brokers without moving a position: ends, offsets by time, topics. A part of the core."""

from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.consumer.arguments import Partition, partitions_of, timestamps_of, topic_of
from barnabas.client.consumer.offsets import EARLIEST_TIMESTAMP, LATEST_TIMESTAMP, OffsetAndTimestamp
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.metadata import PartitionMetadata, TopicMetadata
from barnabas.types import TopicPartition


class LookupCalls:
    """The calls of the consumer that only look something up."""

    def __init__(self, calls: UserCalls, runtime: ConsumerRuntime) -> None:
        self._calls = calls
        self._runtime = runtime

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
        with self._calls.guard:
            deadline = self._calls.deadline(timeout)
            requested = dict.fromkeys(partitions_of(partitions), timestamp)
            found = await self._calls.on_io(self._runtime.lookup.list_offsets(requested, deadline), deadline)
            return {entry: found[entry].offset for entry in requested}

    async def offsets_for_times(
        self, timestamps: Mapping[Any, int], *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        """For each partition the first record at or after its time in ms; None if there is none."""
        with self._calls.guard:
            requested = timestamps_of(timestamps)
            deadline = self._calls.deadline(timeout)
            found = await self._calls.on_io(self._runtime.lookup.list_offsets(requested, deadline), deadline)
            return {
                entry: None if found[entry].offset < 0 else OffsetAndTimestamp(*found[entry]) for entry in requested
            }

    async def partitions_for(self, topic: str, *, timeout: float | None = None) -> tuple[PartitionMetadata, ...]:
        """The partitions of a topic with their leaders and replicas."""
        with self._calls.guard:
            deadline = self._calls.deadline(timeout)
            found = await self._calls.on_io(self._runtime.cluster.topic_metadata(topic_of(topic), deadline), deadline)
            return found.partitions

    async def list_topics(self, *, timeout: float | None = None) -> dict[str, TopicMetadata]:
        """Every topic this user may see."""
        with self._calls.guard:
            deadline = self._calls.deadline(timeout)
            await self._calls.on_io(self._runtime.cluster.refresh_metadata(None), deadline)
            return dict(self._runtime.cluster.metadata.topics)
