"""The batches of one Produce request that belong to a transaction, from the question to the coordinator to the append.

`handlers/produce.py` makes one for a request with a transactional id. `verify` has the coordinator check partitions
that the transaction writes to for the first time; then, for each batch, `check` before the append and `on_appended`
after it. v11 understands TRANSACTION_ABORTABLE; from v12 on the broker adds the partitions itself (KIP-890).
"""

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.net.deferred import Deferred
from barnabas.protocol.produce_request import ProduceFrame
from barnabas.records.header import CURRENT_MAGIC, HEADER_SIZE, TRANSACTIONAL_MASK, BatchHeader, read_header
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.transaction_verification import Errors, Verification, is_ongoing
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

FIRST_ABORTABLE_VERSION = 11
FIRST_ADDING_VERSION = 12
_MAGIC, _ATTRIBUTES_LOW_BYTE = 16, 22

TRY_AGAIN = (
    ErrorCode.CONCURRENT_TRANSACTIONS,
    ErrorCode.NETWORK_EXCEPTION,
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
"""Clients of all ages try again when they read NOT_ENOUGH_REPLICAS, and none refreshes its metadata because of it."""


def is_transactional(records: memoryview) -> bool:
    """By two bytes of the header; a batch that is too short or too old is refused elsewhere."""
    if len(records) < HEADER_SIZE or not records[_ATTRIBUTES_LOW_BYTE] & TRANSACTIONAL_MASK:
        return False
    return records[_MAGIC] == CURRENT_MAGIC


class FirstWrite(NamedTuple):
    hosted: HostedPartition
    header: BatchHeader
    mark: Verification


class TransactionalWrites:
    def __init__(self, broker: "Broker", request: ProduceFrame, version: int) -> None:
        assert request.transactional_id is not None
        self._broker = broker
        self._transactional_id = request.transactional_id
        self._adds = version >= FIRST_ADDING_VERSION
        self._knows_abortable = version >= FIRST_ABORTABLE_VERSION
        self._refused: dict[int, KafkaError] = {}
        self._first_writes: dict[int, FirstWrite] = {}
        self._look_at(request)

    def _look_at(self, request: ProduceFrame) -> None:
        headers = {
            index: read_header(item.records)
            for index, item in enumerate(request.partitions)
            if item.records is not None and is_transactional(item.records)
        }
        producers = dict.fromkeys(
            ProducerIdAndEpoch(each.producer_id, each.producer_epoch) for each in headers.values()
        )
        if len(producers) > 1:
            raise KafkaError(ErrorCode.INVALID_PRODUCER_ID_MAPPING, "more than one producer id in one transaction")
        if not self._adds and not self._broker.config.transaction_partition_verification_enable:
            return
        self._producer = next(iter(producers), None)
        verification = self._broker.transactions.verification
        for index, header in headers.items():
            item = request.partitions[index]
            assert self._producer is not None
            try:
                hosted = self._broker.replicas.find_for_produce(item.topic, item.partition)
                hosted.state.check_leader()
            except KafkaError as error:
                self._refused[index] = error
                continue
            mark = verification.begin(hosted, self._producer, header.base_sequence)
            if mark is not None:
                self._first_writes[index] = FirstWrite(hosted, header, mark)

    def verify(self) -> Coroutine[Any, Any, None] | None:
        """Done when it returns None; else the coroutine is to be awaited, with the batches kept safe meanwhile."""
        if not self._first_writes:
            return None
        verified = self._request_verification()
        if isinstance(verified, Deferred):
            return self._verify_later(verified)
        if self._adds and ErrorCode.CONCURRENT_TRANSACTIONS in verified.values():
            return self._verify_later(None)
        self._take(verified)
        return None

    def check(self, index: int) -> None:
        """Raises if the batch must not be written."""
        refusal = self._refused.get(index)
        if refusal is not None:
            raise refusal
        first = self._first_writes.get(index)
        if first is None:
            return
        hosted, header, mark = first
        if is_ongoing(hosted, header.producer_id, header.producer_epoch):
            # A write that was verified at the same time came first, and took the mark with it.
            return
        if not self._broker.transactions.verification.still_holds(hosted, header.producer_id, mark):
            raise KafkaError(ErrorCode.INVALID_TXN_STATE, "Record was not part of an ongoing transaction")
        if header.producer_epoch == mark.producer_epoch and header.base_sequence > mark.lowest_sequence:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"sequence {header.base_sequence} before {mark.lowest_sequence}, which was refused and comes again",
            )
        if self._adds and header.base_sequence != 0 and hosted.log.producers.producers.get(header.producer_id) is None:
            raise KafkaError(
                ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER,
                f"producer {header.producer_id} is not known here and begins at {header.base_sequence}, not 0",
            )

    def on_appended(self, index: int) -> None:
        first = self._first_writes.get(index)
        if first is not None:
            self._broker.transactions.verification.end(first.hosted, first.header.producer_id)

    def _request_verification(self) -> Errors | Deferred[Errors]:
        assert self._producer is not None
        partitions = tuple(
            TopicPartition(each.hosted.topic, each.hosted.partition) for each in self._first_writes.values()
        )
        return self._broker.transactions.verification.verify(
            self._transactional_id,
            self._producer,
            partitions,
            adds=self._adds,
            knows_abortable=self._knows_abortable,
        )

    async def _verify_later(self, verified: Errors | Deferred[Errors] | None) -> None:
        """The markers of the transaction before may still be on their way: that is worth a short wait."""
        config = self._broker.config
        clock = self._broker.clock
        give_up_ms = clock.monotonic_ms() + config.add_partitions_to_txn_retry_backoff_max_ms
        errors = {} if verified is None else await _settled(verified)
        while verified is None or (self._adds and ErrorCode.CONCURRENT_TRANSACTIONS in errors.values()):
            if verified is not None and clock.monotonic_ms() >= give_up_ms:
                break
            await asyncio.sleep(config.add_partitions_to_txn_retry_backoff_ms / 1000)
            self._mark_again()
            verified = self._request_verification()
            errors = await _settled(verified)
        self._take(errors)

    def _mark_again(self) -> None:
        """Those markers have wiped out the marks of this transaction, too."""
        for index, (hosted, header, _) in list(self._first_writes.items()):
            assert self._producer is not None
            mark = self._broker.transactions.verification.begin(hosted, self._producer, header.base_sequence)
            if mark is None:
                del self._first_writes[index]
            else:
                self._first_writes[index] = FirstWrite(hosted, header, mark)

    def _take(self, errors: Errors) -> None:
        for index, first in self._first_writes.items():
            error = errors.get(TopicPartition(first.hosted.topic, first.hosted.partition))
            if error is None:
                continue
            if error in TRY_AGAIN:
                refusal = KafkaError(
                    ErrorCode.NOT_ENOUGH_REPLICAS,
                    f"Unable to verify the partition has been added to the transaction. Underlying error: {error.name}",
                )
            elif error is ErrorCode.INVALID_TXN_STATE:
                refusal = KafkaError(error, "Partition was not added to the transaction")
            else:
                refusal = KafkaError(error, error.text)
            self._refused[index] = refusal


async def _settled(errors: Errors | Deferred[Errors]) -> Errors:
    return await errors if isinstance(errors, Deferred) else errors
