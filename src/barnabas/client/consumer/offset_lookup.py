"""ListOffsets and OffsetForLeaderEpoch for many partitions: one request per leader, retriable errors are retried.

On the I/O thread. Used for beginning, end and time look-ups of the user, for resets and for validation; what the
responses mean for positions is decided in positions.py.
"""

import asyncio
import logging
from collections.abc import Collection, Mapping
from typing import Final, NamedTuple, Protocol

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, UnreachableError, error_for
from barnabas.client.retry import Backoff, Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from barnabas.protocol.messages.offset_for_leader_epoch import (
    OffsetForLeaderEpochRequest,
    OffsetForLeaderEpochResponse,
    OffsetForLeaderPartition,
    OffsetForLeaderTopic,
)
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")
CONSUMER_REPLICA_ID: Final = -1
UNKNOWN_OFFSET: Final = -1


class LookupOptions(Protocol):
    """The options that a lookup uses."""

    @property
    def request_timeout_ms(self) -> int: ...
    @property
    def retry_backoff_ms(self) -> int: ...
    @property
    def retry_backoff_max_ms(self) -> int: ...


class FoundOffset(NamedTuple):
    """An offset as ListOffsets returns it."""

    offset: int
    timestamp: int
    leader_epoch: int


class EpochEnd(NamedTuple):
    """The end offset of a leader epoch."""

    leader_epoch: int
    end_offset: int


class EpochRequest(NamedTuple):
    """Where `epoch` ends; sent to a node that should lead in `leader_epoch`."""

    leader: int
    leader_epoch: int
    epoch: int


class OffsetLookup:
    """Looks up offsets at the leaders of partitions. On the I/O thread."""

    def __init__(self, cluster: ClusterClient, options: LookupOptions, *, read_committed: bool) -> None:
        self._cluster = cluster
        self._options = options
        self._isolation_level = 1 if read_committed else 0

    async def list_offsets(
        self, timestamps: Mapping[TopicPartition, int], deadline: Deadline
    ) -> dict[TopicPartition, FoundOffset]:
        """For every partition, retried until the deadline; one without a record at or after its time has offset -1."""
        found: dict[TopicPartition, FoundOffset] = {}
        backoff = Backoff(self._options.retry_backoff_ms, self._options.retry_backoff_max_ms)
        while True:
            missing = {entry: timestamp for entry, timestamp in timestamps.items() if entry not in found}
            results, failed = await self.list_offsets_once(missing)
            found.update(results)
            if not failed:
                return found
            for error in failed.values():
                if not error.retriable:
                    raise error
            pause_ms = backoff.next_ms()
            if pause_ms >= deadline.remaining_ms:
                raise _timed_out(failed)
            await asyncio.sleep(pause_ms / 1000)
            await self.refresh({entry.topic for entry in failed if self._cluster.metadata.leader(entry) is not None})

    async def list_offsets_once(
        self, timestamps: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, FoundOffset], dict[TopicPartition, KafkaError]]:
        """One attempt: what was found, and what went wrong for the rest."""
        unknown = {entry.topic for entry in timestamps if self._cluster.metadata.leader(entry) is None}
        failed: dict[TopicPartition, KafkaError] = {}
        why = await self.refresh(unknown)
        by_node: dict[int, dict[TopicPartition, tuple[int, int]]] = {}
        for entry, timestamp in timestamps.items():
            leader = self._cluster.metadata.leader(entry)
            if leader is None:
                failed[entry] = why or self.no_leader(entry)
            else:
                by_node.setdefault(leader.node_id, {})[entry] = (leader.leader_epoch, timestamp)
        found: dict[TopicPartition, FoundOffset] = {}
        for results, refused in await asyncio.gather(
            *(self._send_list_offsets(node, requested) for node, requested in by_node.items())
        ):
            found.update(results)
            failed.update(refused)
        return found, failed

    async def _send_list_offsets(
        self, node_id: int, requested: dict[TopicPartition, tuple[int, int]]
    ) -> tuple[dict[TopicPartition, FoundOffset], dict[TopicPartition, KafkaError]]:
        topics: dict[str, list[ListOffsetsPartition]] = {}
        for (topic, partition), (leader_epoch, timestamp) in requested.items():
            topics.setdefault(topic, []).append(
                ListOffsetsPartition(partition_index=partition, current_leader_epoch=leader_epoch, timestamp=timestamp)
            )
        request = ListOffsetsRequest(
            replica_id=CONSUMER_REPLICA_ID,
            isolation_level=self._isolation_level,
            topics=[ListOffsetsTopic(name=topic, partitions=partitions) for topic, partitions in topics.items()],
            timeout_ms=self._options.request_timeout_ms,
        )
        min_version = 2 if self._isolation_level else 0
        try:
            response: ListOffsetsResponse = await self._cluster.send(node_id, request, min_version=min_version)
        except KafkaError as error:
            return {}, dict.fromkeys(requested, error)
        return _read_list_offsets(node_id, response, requested)

    async def epoch_ends(
        self, requested: Mapping[TopicPartition, EpochRequest]
    ) -> tuple[dict[TopicPartition, EpochEnd], dict[TopicPartition, KafkaError]]:
        """One attempt at each leader."""
        by_node: dict[int, dict[TopicPartition, EpochRequest]] = {}
        for entry, epoch_request in requested.items():
            by_node.setdefault(epoch_request.leader, {})[entry] = epoch_request
        found: dict[TopicPartition, EpochEnd] = {}
        failed: dict[TopicPartition, KafkaError] = {}
        sending = [self._send_epochs(node, entries) for node, entries in by_node.items()]
        for results, refused in await asyncio.gather(*sending):
            found.update(results)
            failed.update(refused)
        return found, failed

    async def _send_epochs(
        self, node_id: int, requested: dict[TopicPartition, EpochRequest]
    ) -> tuple[dict[TopicPartition, EpochEnd], dict[TopicPartition, KafkaError]]:
        topics: dict[str, list[OffsetForLeaderPartition]] = {}
        for (topic, partition), epoch_request in requested.items():
            topics.setdefault(topic, []).append(
                OffsetForLeaderPartition(
                    partition=partition,
                    current_leader_epoch=epoch_request.leader_epoch,
                    leader_epoch=epoch_request.epoch,
                )
            )
        request = OffsetForLeaderEpochRequest(
            replica_id=CONSUMER_REPLICA_ID,
            topics=[OffsetForLeaderTopic(topic=topic, partitions=entries) for topic, entries in topics.items()],
        )
        try:
            # Before v3 only brokers may send this: a consumer would get an authorization error.
            response: OffsetForLeaderEpochResponse = await self._cluster.send(node_id, request, min_version=3)
        except KafkaError as error:
            return {}, dict.fromkeys(requested, error)
        found, failed = {}, {}
        for topic_result in response.topics:
            for result in topic_result.partitions:
                entry = TopicPartition(topic_result.topic, result.partition)
                if entry not in requested:
                    _log_not_asked(node_id, entry)
                elif result.error_code:
                    failed[entry] = error_for(result.error_code, topic=entry.topic, partition=entry.partition)
                else:
                    found[entry] = EpochEnd(result.leader_epoch, result.end_offset)
        return found, failed

    def no_leader(self, entry: TopicPartition) -> KafkaError:
        """Why no broker can serve the partition, according to metadata."""
        topic = self._cluster.metadata.topic(entry.topic)
        refused = self._cluster.metadata.invalid_topics.get(entry.topic)
        if topic is None and refused is not None and not refused.retriable:
            return error_for(refused, topic=entry.topic)
        if topic is None:
            return UnknownTopicError(f"there is no partition {entry}: create the topic, or look for a typo in its name")
        if entry.partition >= topic.partition_count:
            numbers = f"the topic has {topic.partition_count} partition(s), numbered from 0"
            return UnknownTopicError(f"there is no partition {entry}: {numbers}")
        return KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{entry} has no leader at the moment")

    async def refresh(self, topics: Collection[str]) -> KafkaError | None:
        """Metadata of these topics; the reason if it cannot be had now, but may be later."""
        try:
            if topics:
                await self._cluster.refresh_metadata(topics)
        except KafkaError as error:
            if not error.retriable:
                raise
            return error
        return None


def _read_list_offsets(
    node_id: int, response: ListOffsetsResponse, requested: Mapping[TopicPartition, object]
) -> tuple[dict[TopicPartition, FoundOffset], dict[TopicPartition, KafkaError]]:
    found: dict[TopicPartition, FoundOffset] = {}
    failed: dict[TopicPartition, KafkaError] = {}
    for topic in response.topics:
        for result in topic.partitions:
            entry = TopicPartition(topic.name, result.partition_index)
            if entry not in requested:
                _log_not_asked(node_id, entry)
            elif result.error_code == ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT:
                found[entry] = FoundOffset(UNKNOWN_OFFSET, -1, -1)
            elif result.error_code:
                failed[entry] = error_for(result.error_code, topic=entry.topic, partition=entry.partition)
            else:
                found[entry] = FoundOffset(result.offset, result.timestamp, result.leader_epoch)
    for entry in requested:
        if entry not in found and entry not in failed:
            failed[entry] = KafkaError(ErrorCode.UNKNOWN_SERVER_ERROR, f"the broker left {entry} out of its response")
    return found, failed


def _log_not_asked(node_id: int, entry: TopicPartition) -> None:
    logger.warning("node %d sent an offset of %s, which was not requested: ignored", node_id, entry)


def _timed_out(failed: Mapping[TopicPartition, KafkaError]) -> KafkaError:
    entry, error = next(iter(failed.items()))
    if isinstance(error, UnknownTopicError | UnreachableError):
        return error
    return ClientTimeoutError(
        f"no offsets for {len(failed)} partition(s) in time, the first is {entry}: {error.message}; "
        "try again, or give it more time (default_api_timeout_ms)"
    )
