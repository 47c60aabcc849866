"""EndTxn (key 26), v0-v5: commit or abort a transaction.

v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890); v5 every transaction bumps the epoch, so
the response carries producer id and epoch.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, field, message


@message(api_key=ApiKey.END_TXN, versions=(0, 5), flexible=3)
class EndTxnRequest:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    committed: bool = field(BOOL)


@message(api_key=ApiKey.END_TXN, versions=(0, 5), flexible=3)
class EndTxnResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, since=5, default=-1, ignorable=True)
    producer_epoch: int = field(INT16, since=5, default=-1, ignorable=True)
