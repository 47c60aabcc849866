"""ListTransactions (key 66), v0-v2: transactions that a broker coordinates (KIP-664). All versions are flexible.

v1 filter by duration (KIP-994); v2 filter by a pattern of the transactional id (KIP-1152).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, array, field, message, struct


@message(api_key=ApiKey.LIST_TRANSACTIONS, versions=(0, 2), flexible=0)
class ListTransactionsRequest:
    state_filters: list[str] = field(array(STRING))
    producer_id_filters: list[int] = field(array(INT64))
    duration_filter: int = field(INT64, since=1, default=-1)
    transactional_id_pattern: str | None = field(STRING, since=2, nullable=2, default=None)


@struct
class ListedTransaction:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    transaction_state: str = field(STRING)


@message(api_key=ApiKey.LIST_TRANSACTIONS, versions=(0, 2), flexible=0)
class ListTransactionsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    unknown_state_filters: list[str] = field(array(STRING))
    transaction_states: list[ListedTransaction] = field(array(ListedTransaction))
