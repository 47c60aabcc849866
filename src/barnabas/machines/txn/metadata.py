"""The logged state of one transactional id; each transition returns a new value.

An immutable value: `TransactionShard.apply` replaces it as a whole, so a decision that is never written has no
effect. The record has tagged fields (v1) for the producer ids before and after a rotation, so that a rotation in
progress survives a failover.
"""

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.machines.txn.state import AT_REST, TransactionLogState
from barnabas.protocol.messages.transaction_log_record import PartitionsSchema, TransactionLogKey, TransactionLogValue
from barnabas.types import NO_PRODUCER_ID, NO_TIMESTAMP, TopicPartition

MAX_EPOCH = 2**15 - 1
VALUE_VERSION = 1

Partitions = Mapping[TopicPartition, None]
"""In the order in which they were added. Never changed in place."""
NO_PARTITIONS: Partitions = {}


def is_exhausted(producer_epoch: int) -> bool:
    """The last epoch is never given to a client, so that there is always one left to fence it with."""
    return producer_epoch >= MAX_EPOCH - 1


class TransactionMetadata(NamedTuple):
    transactional_id: str
    producer_id: int
    producer_epoch: int
    timeout_ms: int
    state: TransactionLogState
    last_update_ms: int
    start_ms: int = NO_TIMESTAMP
    partitions: Partitions = NO_PARTITIONS
    previous_producer_id: int = NO_PRODUCER_ID
    """The id before a rotation, until the next transaction completes: identifies retries."""
    next_producer_id: int = NO_PRODUCER_ID
    """Takes over, with epoch 0, when the markers are written."""
    client_transaction_version: int = 0

    # ---- steps

    def initialized(self, producer_epoch: int, timeout_ms: int, now_ms: int) -> "TransactionMetadata":
        return self._replace(
            producer_epoch=producer_epoch,
            timeout_ms=timeout_ms,
            state=TransactionLogState.EMPTY,
            last_update_ms=now_ms,
            start_ms=NO_TIMESTAMP,
            partitions=NO_PARTITIONS,
            previous_producer_id=self.previous_producer_id if producer_epoch == 0 else NO_PRODUCER_ID,
        )

    def rotated(self, producer_id: int, timeout_ms: int, now_ms: int) -> "TransactionMetadata":
        """The epochs of the producer id are used up."""
        fresh = self.initialized(0, timeout_ms, now_ms)
        return fresh._replace(producer_id=producer_id, previous_producer_id=self.producer_id)

    def with_partitions(self, added: Iterable[TopicPartition], version: int, now_ms: int) -> "TransactionMetadata":
        return self._replace(
            state=TransactionLogState.ONGOING,
            last_update_ms=now_ms,
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            partitions={**self.partitions, **dict.fromkeys(added)},
            client_transaction_version=version,
        )

    def prepared(self, committed: bool, now_ms: int) -> "TransactionMetadata":
        """Up to transaction.version 1: the epoch stays."""
        return self._replace(
            state=TransactionLogState.PREPARE_COMMIT if committed else TransactionLogState.PREPARE_ABORT,
            last_update_ms=now_ms,
            start_ms=now_ms if self.state in AT_REST else self.start_ms,
            client_transaction_version=0,
        )

    def prepared_with_bump(self, committed: bool, next_producer_id: int, now_ms: int) -> "TransactionMetadata":
        """transaction.version 2: the markers carry the next epoch, so late records are rejected."""
        return self.prepared(committed, now_ms)._replace(
            producer_epoch=min(self.producer_epoch + 1, MAX_EPOCH),
            next_producer_id=next_producer_id,
            client_transaction_version=2,
        )

    def completed(self, now_ms: int) -> "TransactionMetadata":
        committed = self.state is TransactionLogState.PREPARE_COMMIT
        done = self._replace(
            state=TransactionLogState.COMPLETE_COMMIT if committed else TransactionLogState.COMPLETE_ABORT,
            last_update_ms=now_ms,
            partitions=NO_PARTITIONS,
            previous_producer_id=NO_PRODUCER_ID,
        )
        if self.next_producer_id == NO_PRODUCER_ID:
            return done
        return done._replace(
            producer_id=self.next_producer_id,
            producer_epoch=0,
            previous_producer_id=self.producer_id,
            next_producer_id=NO_PRODUCER_ID,
        )

    # ---- the log

    def record(self) -> CoordinatorRecord:
        key = TransactionLogKey(transactional_id=self.transactional_id)
        value = TransactionLogValue(
            producer_id=self.producer_id,
            previous_producer_id=self.previous_producer_id,
            next_producer_id=self.next_producer_id,
            producer_epoch=self.producer_epoch,
            transaction_timeout_ms=self.timeout_ms,
            transaction_status=int(self.state),
            transaction_partitions=None if self.state is TransactionLogState.EMPTY else self._partitions_by_topic(),
            transaction_last_update_timestamp_ms=self.last_update_ms,
            transaction_start_timestamp_ms=self.start_ms,
            client_transaction_version=self.client_transaction_version,
        )
        return CoordinatorRecord(key, value, VALUE_VERSION)

    def _partitions_by_topic(self) -> list[PartitionsSchema]:
        topics = self.partitions_by_topic()
        return [PartitionsSchema(topic=topic, partition_ids=ids) for topic, ids in topics.items()]

    def partitions_by_topic(self) -> dict[str, list[int]]:
        topics: dict[str, list[int]] = {}
        for topic, partition in self.partitions:
            topics.setdefault(topic, []).append(partition)
        return topics

    @classmethod
    def of(cls, transactional_id: str, value: TransactionLogValue) -> "TransactionMetadata":
        partitions = {
            TopicPartition(schema.topic, partition): None
            for schema in value.transaction_partitions or ()
            for partition in schema.partition_ids
        }
        return cls(
            transactional_id=transactional_id,
            producer_id=value.producer_id,
            producer_epoch=value.producer_epoch,
            timeout_ms=value.transaction_timeout_ms,
            state=TransactionLogState(value.transaction_status),
            last_update_ms=value.transaction_last_update_timestamp_ms,
            start_ms=value.transaction_start_timestamp_ms,
            partitions=partitions,
            previous_producer_id=value.previous_producer_id,
            next_producer_id=value.next_producer_id,
            client_transaction_version=value.client_transaction_version,
        )
