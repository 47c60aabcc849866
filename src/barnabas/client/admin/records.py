"""Records as an administrator sees them: which offsets a partition has, and deleting those before an offset.

Requests go to the partition's leader.
"""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Literal

from barnabas.client.admin.attempts import RETRIED_BRIEFLY, Outcome
from barnabas.client.admin.errors import admin_error
from barnabas.client.admin.requests import AdminRequests
from barnabas.client.admin.types import ListedOffset, OffsetSpec
from barnabas.client.consumer.arguments import MIN_INT32, MIN_INT64, partition_of, whole_number
from barnabas.errors import KafkaError
from barnabas.protocol.messages.delete_records import DeleteRecordsPartition, DeleteRecordsRequest, DeleteRecordsTopic
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.types import TopicPartition

IsolationLevel = Literal["read_uncommitted", "read_committed"]
UP_TO_HIGH_WATERMARK = -1
CLIENT = -1
_FIRST_VERSION = {OffsetSpec.MAX_TIMESTAMP: 7, OffsetSpec.EARLIEST_LOCAL: 8, OffsetSpec.LATEST_TIERED: 9}


@dataclass(frozen=True, slots=True)
class RecordAdmin:
    """Offsets and records of partitions."""

    requests: AdminRequests

    async def list_offsets(
        self,
        partitions: Mapping[TopicPartition, OffsetSpec | int] | Mapping[tuple[str, int], OffsetSpec | int],
        *,
        isolation_level: IsolationLevel = "read_uncommitted",
        timeout: float | None = None,
    ) -> dict[TopicPartition, ListedOffset]:
        """An offset of each partition: earliest, latest, of the largest timestamp, or the first at a timestamp (ms).

        With read_committed the latest offset is the last stable one, before every open transaction.
        """
        wanted = {
            named_partition(key): whole_number(spec, "a time", lowest=MIN_INT64) for key, spec in partitions.items()
        }
        return (await self._list_offsets(wanted, isolation_level, timeout)).all()

    async def _list_offsets(
        self, wanted: Mapping[TopicPartition, int], isolation_level: IsolationLevel, timeout: float | None
    ) -> Outcome[TopicPartition, ListedOffset]:
        deadline = self.requests.deadline(timeout)
        committed = isolation_level == "read_committed"

        async def send_to(
            node_id: int, requested: list[TopicPartition]
        ) -> Mapping[TopicPartition, ListedOffset | KafkaError]:
            topics = [
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=key.partition, timestamp=wanted[key]) for key in keys
                    ],
                )
                for topic, keys in by_topic(requested).items()
            ]
            request = ListOffsetsRequest(replica_id=CLIENT, isolation_level=int(committed), topics=topics)
            request.timeout_ms = self.requests.request_timeout_ms(deadline)
            oldest = max(_FIRST_VERSION.get(wanted[key], 0) for key in requested)  # type: ignore[call-overload]
            response = await self.requests.send(
                node_id, request, deadline, min_version=max(oldest, 2 if committed else 1)
            )
            results: dict[TopicPartition, ListedOffset | KafkaError] = {}
            for topic in response.topics:
                for each in topic.partitions:
                    key = TopicPartition(topic.name, each.partition_index)
                    results[key] = (
                        admin_error(each.error_code, topic=key.topic, partition=key.partition)
                        if each.error_code
                        else ListedOffset(
                            offset=each.offset,
                            timestamp=each.timestamp,
                            leader_epoch=each.leader_epoch if each.leader_epoch >= 0 else None,
                        )
                    )
            return results

        return await self.requests.call_each(
            wanted, self.requests.on_leaders, send_to, deadline, retried_briefly=RETRIED_BRIEFLY
        )

    async def delete_records(
        self,
        before_offsets: Mapping[TopicPartition, int] | Mapping[tuple[str, int], int],
        *,
        timeout: float | None = None,
    ) -> dict[TopicPartition, int]:
        """Delete the records before an offset (-1: all that are committed); gives the new first offsets."""
        wanted = {
            named_partition(key): whole_number(offset, "an offset", lowest=MIN_INT64)
            for key, offset in before_offsets.items()
        }
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[TopicPartition]) -> Mapping[TopicPartition, int | KafkaError]:
            topics = [
                DeleteRecordsTopic(
                    name=topic,
                    partitions=[
                        DeleteRecordsPartition(partition_index=key.partition, offset=wanted[key]) for key in keys
                    ],
                )
                for topic, keys in by_topic(requested).items()
            ]
            request = DeleteRecordsRequest(topics=topics, timeout_ms=self.requests.request_timeout_ms(deadline))
            response = await self.requests.send(node_id, request, deadline)
            return {
                TopicPartition(topic.name, each.partition_index): (
                    admin_error(each.error_code, topic=topic.name, partition=each.partition_index)
                    if each.error_code
                    else each.low_watermark
                )
                for topic in response.topics
                for each in topic.partitions
            }

        return (
            await self.requests.call_each(
                wanted, self.requests.on_leaders, send_to, deadline, retried_briefly=RETRIED_BRIEFLY
            )
        ).all()


def named_partition(given: tuple[str, int]) -> TopicPartition:
    """Checked by type only: that a topic has no such partition is an error of that key, beside those that succeeded."""
    return partition_of(given, lowest=MIN_INT32)


def by_topic(partitions: Iterable[TopicPartition]) -> dict[str, list[TopicPartition]]:
    grouped: dict[str, list[TopicPartition]] = defaultdict(list)
    for key in partitions:
        grouped[key.topic].append(key)
    return grouped
