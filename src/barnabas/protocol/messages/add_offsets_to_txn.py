"""AddOffsetsToTxn (key 25), v0-v4: a group whose offsets a transaction is about to commit.

v2 PRODUCER_FENCED; v3 flexible; v4 TRANSACTION_ABORTABLE (KIP-890).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, field, message
from barnabas.types import GroupId


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4), flexible=3)
class AddOffsetsToTxnRequest:
    transactional_id: str = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    group_id: GroupId = field(STRING)


@message(api_key=ApiKey.ADD_OFFSETS_TO_TXN, versions=(0, 4), flexible=3)
class AddOffsetsToTxnResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
