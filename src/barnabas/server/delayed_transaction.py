"""The internal transactions of one intake partition of delayed messages: deliveries and progress, all or nothing.

The leader of the partition is a transactional producer like any other: InitProducerId fences its predecessor and
ends what that left open, records go out by Produce, the progress by TxnOffsetCommit, EndTxn commits both. Requests go
over links to the brokers concerned, this one included, so there is one path wherever they are. Any failure ends the
session: the next `open` finds out from the coordinators what was committed.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, Final

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.delayed.progress import DELAYED_GROUP_PREFIX, SavedProgress, read_progress, write_progress
from barnabas.metadata.image import ClusterImage
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from barnabas.records import BatchBuilder
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.server.hosted_partition import ACKS_ALL, HostedPartition
from barnabas.types import GroupId

GROUP, TRANSACTION = 0, 1
TIMEOUT_MS: Final = 30_000
RETRY_MS: Final = 10
GIVE_UP_MS: Final = 5_000
FIRST_PRODUCE_WITH_IDS: Final = 13
NEWEST_OFFSET_FETCH: Final = 9
PASSING: Final = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_ENOUGH_REPLICAS,
    ErrorCode.UNSTABLE_OFFSET_COMMIT,
)
"""Worth another try with the same producer epoch: mostly the markers of the transaction before are on their way."""
CODES: Final = {int(error): error for error in ErrorCode}


class DelayedTransactions:
    def __init__(
        self, hosted: HostedPartition, node_id: int, links: BrokerLinks, image: Callable[[], ClusterImage], clock: Clock
    ) -> None:
        self._hosted = hosted
        self._node_id = node_id
        self._links = links
        self._image = image
        self._clock = clock
        self._transactional_id = f"{DELAYED_GROUP_PREFIX}{hosted.topic}-{hosted.partition}"
        self._group_id = GroupId(DELAYED_GROUP_PREFIX + hosted.topic)
        self._producer_id = self._producer_epoch = -1
        self._transaction_coordinator = self._group_coordinator = -1
        self._sequences: dict[tuple[str, int], int] = {}

    async def open(self) -> tuple[SavedProgress | None, int]:
        """Fences whoever delivered before; the progress that was committed, and the leader epoch of its offset."""
        self._transaction_coordinator = await self._coordinator(TRANSACTION, self._transactional_id)
        self._group_coordinator = await self._coordinator(GROUP, self._group_id)
        response = await self._repeat(self._init_producer_id)
        self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
        self._sequences.clear()
        offset = await self._repeat(self._fetch_progress)
        if offset.committed_offset < 0:
            return None, -1
        try:
            return read_progress(offset.metadata, self._hosted.topic_id), offset.committed_leader_epoch
        except ValueError as fault:
            # Somebody committed an offset for this group: what was delivered is not known any more.
            raise KafkaError(ErrorCode.INVALID_COMMIT_OFFSET_SIZE, f"the progress cannot be read: {fault}") from fault

    async def produce(self, topic: str, partition: int, batch: BatchBuilder) -> None:
        """The batch has its records; producer and sequence are filled in here."""
        batch.producer_id, batch.producer_epoch = self._producer_id, self._producer_epoch
        batch.base_sequence = self._sequences.get((topic, partition), 0)
        self._sequences[topic, partition] = batch.base_sequence + batch.record_count
        data = bytes(batch.build())

        async def attempt() -> Any:
            target = self._image().partition(topic, partition)
            if target is None or target.leader < 0:
                raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE, f"{topic}-{partition} has no leader")
            records = PartitionProduceData(index=partition, records=data)
            request = ProduceRequest(
                transactional_id=self._transactional_id,
                acks=ACKS_ALL,
                timeout_ms=TIMEOUT_MS,
                topic_data=[TopicProduceData(name=topic, partition_data=[records])],
            )
            response = await self._link(target.leader).request(request, FIRST_PRODUCE_WITH_IDS - 1)
            result = response.responses[0].partition_responses[0]
            _check(result.error_code, f"{topic}-{partition}: {result.error_message}")

        await self._repeat(attempt)

    async def commit(self, saved: SavedProgress) -> None:
        """Progress and deliveries count from here on."""

        async def save() -> Any:
            partition = TxnOffsetCommitRequestPartition(
                partition_index=self._hosted.partition,
                committed_offset=saved.progress.end,
                committed_leader_epoch=saved.leader_epoch,
                committed_metadata=write_progress(saved, self._hosted.topic_id),
            )
            request = TxnOffsetCommitRequest(
                transactional_id=self._transactional_id,
                group_id=self._group_id,
                producer_id=self._producer_id,
                producer_epoch=self._producer_epoch,
                member_id="",
                topics=[TxnOffsetCommitRequestTopic(name=self._hosted.topic, partitions=[partition])],
            )
            response = await self._link(self._group_coordinator).request(request)
            _check(response.topics[0].partitions[0].error_code, "the progress of delayed messages")

        await self._repeat(save)
        request = EndTxnRequest(
            transactional_id=self._transactional_id,
            producer_id=self._producer_id,
            producer_epoch=self._producer_epoch,
            committed=True,
        )
        # Once only: where the response is lost, the next session finds out.
        response = await self._link(self._transaction_coordinator).request(request)
        _check(response.error_code, "the end of the transaction")
        if response.producer_id >= 0:
            self._producer_id, self._producer_epoch = response.producer_id, response.producer_epoch
            self._sequences.clear()

    async def _coordinator(self, kind: int, key: str) -> int:
        """Creates the coordinators' topics, if need be."""

        async def attempt() -> Any:
            request = FindCoordinatorRequest(key_type=kind, coordinator_keys=[key])
            found = (await self._link(self._node_id).request(request)).coordinators[0]
            _check(found.error_code, f"the coordinator of {key}")
            return found.node_id

        node_id: int = await self._repeat(attempt)
        return node_id

    async def _init_producer_id(self) -> Any:
        request = InitProducerIdRequest(
            transactional_id=self._transactional_id,
            transaction_timeout_ms=TIMEOUT_MS,
            enable2_pc=False,
            keep_prepared_txn=False,
        )
        response = await self._link(self._transaction_coordinator).request(request, 5)
        _check(response.error_code, "the producer of delayed messages")
        return response

    async def _fetch_progress(self) -> Any:
        topic = OffsetFetchRequestTopics(name=self._hosted.topic, partition_indexes=[self._hosted.partition])
        group = OffsetFetchRequestGroup(group_id=self._group_id, topics=[topic])
        request = OffsetFetchRequest(groups=[group], require_stable=True)
        response = await self._link(self._group_coordinator).request(request, NEWEST_OFFSET_FETCH)
        found = response.groups[0]
        _check(found.error_code, "the progress of delayed messages")
        offset = found.topics[0].partitions[0]
        _check(offset.error_code, "the progress of delayed messages")
        return offset

    async def _repeat(self, attempt: Callable[[], Awaitable[Any]]) -> Any:
        give_up_ms = self._clock.monotonic_ms() + GIVE_UP_MS
        while True:
            try:
                return await attempt()
            except KafkaError as error:
                if error.code not in PASSING or self._clock.monotonic_ms() >= give_up_ms:
                    raise
            await asyncio.sleep(RETRY_MS / 1000)

    def _link(self, node_id: int) -> Any:
        return self._links.to(node_id, LinkUse.DELAYED)


def _check(code: int, what: str) -> None:
    if code != ErrorCode.NONE:
        error = CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR)
        raise KafkaError(error, f"{what}: {error.name}")
