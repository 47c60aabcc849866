"""DescribeTransactions (key 65), v0: state of transactions by transactional id (KIP-664). Flexible."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0), flexible=0)
class DescribeTransactionsRequest:
    transactional_ids: list[str] = field(array(STRING))


@struct
class TopicData:
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@struct
class DescribedTransaction:
    error_code: int = field(INT16)
    transactional_id: str = field(STRING)
    transaction_state: str = field(STRING)
    transaction_timeout_ms: int = field(INT32)
    transaction_start_time_ms: int = field(INT64)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    topics: list[TopicData] = field(array(TopicData))


@message(api_key=ApiKey.DESCRIBE_TRANSACTIONS, versions=(0, 0), flexible=0)
class DescribeTransactionsResponse:
    throttle_time_ms: int = field(INT32)
    transaction_states: list[DescribedTransaction] = field(array(DescribedTransaction))
