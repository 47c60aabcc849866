"""Requests to the coordinators of a transaction, each repeated until its response is final.

One at a time, as the coordinator expects. A coordinator that moved is looked up again. What comes back is the outcome,
or the error as an exception; whether that ends the transaction or the producer is the caller's to decide.
"""

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from typing import Any, Protocol

from barnabas.client.cluster_client import ClusterClient, CoordinatorKind
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.errors import AbortableTransactionError, CommitFailedError, error_code, error_for
from barnabas.client.options.producer import ProducerOptions
from barnabas.client.retry import Backoff, Deadline, retry_backoff
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.types import GroupId, TopicPartition

logger = logging.getLogger(__name__)
_LAST_V1 = 4
"""EndTxn and TxnOffsetCommit from v5 on belong to transaction.version 2."""
_LAST_ADD_PARTITIONS = 3
"""Later versions are for brokers."""
_MOVED = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.REQUEST_TIMED_OUT}


class GroupMetadata(Protocol):
    """Who commits: as a consumer's `group_metadata()` gives it."""

    @property
    def group_id(self) -> str: ...
    @property
    def generation_id(self) -> int: ...
    @property
    def member_id(self) -> str: ...
    @property
    def group_instance_id(self) -> str | None: ...


class TransactionRequests:
    """Requests of one transactional id."""

    def __init__(self, transactional_id: str, cluster: ClusterClient, options: ProducerOptions) -> None:
        self._transactional_id = transactional_id
        self._cluster = cluster
        self._options = options
        self._turn = asyncio.Lock()
        self._last_error: KafkaError | None = None

    def last_error(self) -> str:
        """Why the last attempt came to nothing, if it did."""
        return "" if self._last_error is None else self._last_error.message

    async def init_producer_id(self, producer_id: int, producer_epoch: int) -> tuple[int, int]:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=self._options.transaction_timeout_ms,
            producer_id=producer_id,
            producer_epoch=producer_epoch,
        )
        response = await self._to_coordinator(request, lambda given: [given.error_code])
        return response.producer_id, response.producer_epoch

    async def end_txn(self, producer: tuple[int, int], *, committed: bool, v2: bool) -> tuple[int, int] | None:
        """The producer id and epoch to go on with, where the coordinator gives new ones."""
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            committed=committed,
        )
        response = await self._to_coordinator(
            request, lambda given: [given.error_code], max_version=None if v2 else _LAST_V1
        )
        return (response.producer_id, response.producer_epoch) if response.producer_id >= 0 else None

    async def add_partitions(
        self,
        producer: tuple[int, int],
        partitions: Collection[TopicPartition],
        backoff: Backoff,
        busy_pause_ms: float | None,
    ) -> None:
        by_topic: dict[str, list[int]] = {}
        for topic, partition in sorted(partitions):
            by_topic.setdefault(topic, []).append(partition)
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self._transactional_id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=name, partitions=p) for name, p in by_topic.items()],
        )
        await self._to_coordinator(
            request, _partition_codes, max_version=_LAST_ADD_PARTITIONS, backoff=backoff, busy_pause_ms=busy_pause_ms
        )

    async def add_offsets(self, producer: tuple[int, int], group_id: GroupId, wanted: Callable[[], bool]) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=producer[0],
            producer_epoch=producer[1],
            group_id=group_id,
        )
        await self._to_coordinator(request, lambda given: [given.error_code], group=group_id, wanted=wanted)

    async def commit_offsets(
        self,
        producer: tuple[int, int],
        offsets: Mapping[TopicPartition, OffsetAndMetadata],
        group: GroupMetadata,
        *,
        v2: bool,
        wanted: Callable[[], bool],
    ) -> None:
        request = TxnOffsetCommitRequest(
            transactional_id=self._transactional_id,
            group_id=GroupId(group.group_id),
            producer_id=producer[0],
            producer_epoch=producer[1],
            generation_id=group.generation_id,
            member_id=group.member_id,
            group_instance_id=group.group_instance_id,
            topics=_offset_topics(offsets),
        )
        await self._repeat(
            CoordinatorKind.GROUP,
            group.group_id,
            request,
            lambda given: [part.error_code for topic in given.topics for part in topic.partitions],
            max_version=None if v2 else _LAST_V1,
            group=group.group_id,
            wanted=wanted,
        )

    async def _to_coordinator(self, request: Any, codes: Callable[[Any], list[int]], **how: Any) -> Any:
        return await self._repeat(CoordinatorKind.TRANSACTION, self._transactional_id, request, codes, **how)

    async def _repeat(
        self,
        kind: CoordinatorKind,
        key: str,
        request: Any,
        codes: Callable[[Any], list[int]],
        *,
        max_version: int | None = None,
        group: str | None = None,
        backoff: Backoff | None = None,
        busy_pause_ms: float | None = None,
        wanted: Callable[[], bool] | None = None,
    ) -> Any:
        """`wanted`: no attempt follows a failed one when it says no."""
        backoff = backoff or retry_backoff(self._options)
        async with self._turn:
            while True:
                try:
                    # One look-up at a time: its failure is known at once, and reported when a wait times out.
                    node_id = await self._cluster.coordinator(kind, key, Deadline(0))
                    response = await self._cluster.send(node_id, request, max_version=max_version)
                    self._check(codes(response), group)
                    self._last_error = None
                    return response
                except KafkaError as error:
                    if not error.code.retriable or (wanted is not None and not wanted()):
                        raise
                    logger.debug("%s: %s, again", type(request).__name__, error)
                    self._last_error = error
                    if error.code in _MOVED or error.code == ErrorCode.NETWORK_EXCEPTION:
                        self._cluster.forget_coordinator(kind, key)
                    pause_ms = backoff.next_ms()
                    if error.code == ErrorCode.CONCURRENT_TRANSACTIONS and busy_pause_ms is not None:
                        pause_ms = min(pause_ms, busy_pause_ms)
                await asyncio.sleep(pause_ms / 1000)

    def _check(self, codes: list[int], group: str | None) -> None:
        """Raises the error that decides: one for good before one that passes, OPERATION_NOT_ATTEMPTED last."""
        failed = [error_code(code) for code in codes if code != ErrorCode.NONE]
        if not failed:
            return
        code = min(failed, key=lambda each: (each == ErrorCode.OPERATION_NOT_ATTEMPTED, each.retriable))
        if code == ErrorCode.INVALID_PRODUCER_EPOCH:
            code = ErrorCode.PRODUCER_FENCED  # what older coordinators say
        if code in (ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.ILLEGAL_GENERATION, ErrorCode.STALE_MEMBER_EPOCH):
            raise CommitFailedError(
                f"group {group}: the partitions are not this consumer's any more ({code.text}); abort the transaction"
                " and go on with what the next poll gives",
                code,
            )
        if code == ErrorCode.OPERATION_NOT_ATTEMPTED:
            raise AbortableTransactionError("partitions could not be added: abort the transaction", code)
        raise error_for(code, transactional_id=self._transactional_id, group=group)


def _partition_codes(response: Any) -> list[int]:
    return [
        part.partition_error_code
        for topic in response.results_by_topic_v3_and_below
        for part in topic.results_by_partition
    ]


def _offset_topics(offsets: Mapping[TopicPartition, OffsetAndMetadata]) -> list[TxnOffsetCommitRequestTopic]:
    by_topic: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
    for (topic, partition), offset in offsets.items():
        by_topic.setdefault(topic, []).append(
            TxnOffsetCommitRequestPartition(
                partition_index=partition,
                committed_offset=offset.offset,
                committed_leader_epoch=offset.leader_epoch,
                committed_metadata=offset.metadata,
            )
        )
    return [TxnOffsetCommitRequestTopic(name=name, partitions=parts) for name, parts in by_topic.items()]
