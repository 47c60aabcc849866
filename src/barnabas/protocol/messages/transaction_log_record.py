"""Records of `__transaction_state`: key (type 0) and value (v0-v1).

v1 flexible, with the previous and next producer id as tagged fields (KIP-890).
"""

from barnabas.protocol.schema import INT8, INT16, INT32, INT64, STRING, array, field, message, struct


@message(record_type=0, versions=(0, 0), flexible=None)
class TransactionLogKey:
    transactional_id: str = field(STRING)


@struct
class PartitionsSchema:
    topic: str = field(STRING)
    partition_ids: list[int] = field(array(INT32))


@message(record_type=0, versions=(0, 1), flexible=1)
class TransactionLogValue:
    producer_id: int = field(INT64)
    previous_producer_id: int = field(INT64, since=1, default=-1, tag=0)
    next_producer_id: int = field(INT64, since=1, default=-1, tag=1)
    producer_epoch: int = field(INT16)
    next_producer_epoch: int = field(INT16, since=1, default=-1, tag=3)
    transaction_timeout_ms: int = field(INT32)
    transaction_status: int = field(INT8)
    transaction_partitions: list[PartitionsSchema] | None = field(array(PartitionsSchema), nullable=0)
    transaction_last_update_timestamp_ms: int = field(INT64)
    transaction_start_timestamp_ms: int = field(INT64)
    client_transaction_version: int = field(INT16, since=1, tag=2)
