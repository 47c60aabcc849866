"""AddPartitionsToTxn (key 24), v0-v5: partitions that a transaction is about to write to.

v2 PRODUCER_FENCED; v3 flexible, the last version for clients; v4 many transactions, verify only, between brokers
(KIP-890); v5 TRANSACTION_ABORTABLE.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class AddPartitionsToTxnTopic:
    name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@struct
class AddPartitionsToTxnTransaction:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    verify_only: bool = field(BOOL)
    topics: list[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic))


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5), flexible=3)
class AddPartitionsToTxnRequest:
    transactions: list[AddPartitionsToTxnTransaction] = field(array(AddPartitionsToTxnTransaction), since=4)
    v3_and_below_transactional_id: str = field(STRING, until=3)
    v3_and_below_producer_id: int = field(INT64, until=3)
    v3_and_below_producer_epoch: int = field(INT16, until=3)
    v3_and_below_topics: list[AddPartitionsToTxnTopic] = field(array(AddPartitionsToTxnTopic), until=3)


@struct
class AddPartitionsToTxnPartitionResult:
    partition_index: int = field(INT32)
    partition_error_code: int = field(INT16)


@struct
class AddPartitionsToTxnTopicResult:
    name: str = field(STRING)
    results_by_partition: list[AddPartitionsToTxnPartitionResult] = field(array(AddPartitionsToTxnPartitionResult))


@struct
class AddPartitionsToTxnResult:
    transactional_id: str = field(STRING)
    topic_results: list[AddPartitionsToTxnTopicResult] = field(array(AddPartitionsToTxnTopicResult))


@message(api_key=ApiKey.ADD_PARTITIONS_TO_TXN, versions=(0, 5), flexible=3)
class AddPartitionsToTxnResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=4, ignorable=True)
    results_by_transaction: list[AddPartitionsToTxnResult] = field(array(AddPartitionsToTxnResult), since=4)
    results_by_topic_v3_and_below: list[AddPartitionsToTxnTopicResult] = field(
        array(AddPartitionsToTxnTopicResult), until=3
    )
