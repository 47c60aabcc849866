"""InitProducerId (key 22), v0-v6: a producer id and epoch, plain or for a transactional id.

v2 flexible; v3 the id and epoch held before, to bump the epoch instead (KIP-360); v4 PRODUCER_FENCED; v5
TRANSACTION_ABORTABLE (KIP-890); v6 two-phase commit (KIP-939).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, field, message


@message(api_key=ApiKey.INIT_PRODUCER_ID, versions=(0, 6), flexible=2)
class InitProducerIdRequest:
    transactional_id: str | None = field(STRING, nullable=0)
    transaction_timeout_ms: int = field(INT32)
    producer_id: int = field(INT64, since=3, default=-1)
    producer_epoch: int = field(INT16, since=3, default=-1)
    enable2_pc: bool = field(BOOL, since=6)
    keep_prepared_txn: bool = field(BOOL, since=6)


@message(api_key=ApiKey.INIT_PRODUCER_ID, versions=(0, 6), flexible=2)
class InitProducerIdResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16)
    producer_id: int = field(INT64, default=-1)
    producer_epoch: int = field(INT16)
    ongoing_txn_producer_id: int = field(INT64, since=6, default=-1)
    ongoing_txn_producer_epoch: int = field(INT16, since=6, default=-1)
