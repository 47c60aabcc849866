"""TxnOffsetCommit (key 28), v0-v5: offsets of a group as part of a transaction.

v2 leader epochs (KIP-320); v3 flexible, member id, instance id and generation for fencing (KIP-447); v4
TRANSACTION_ABORTABLE (KIP-890); v5 adds the group to the transaction implicitly.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, array, field, message, struct
from barnabas.types import GroupId


@struct
class TxnOffsetCommitRequestPartition:
    partition_index: int = field(INT32)
    committed_offset: int = field(INT64)
    committed_leader_epoch: int = field(INT32, since=2, default=-1, ignorable=True)
    committed_metadata: str | None = field(STRING, nullable=0)


@struct
class TxnOffsetCommitRequestTopic:
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitRequestPartition] = field(array(TxnOffsetCommitRequestPartition))


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5), flexible=3)
class TxnOffsetCommitRequest:
    transactional_id: str = field(STRING)
    group_id: GroupId = field(STRING)
    producer_id: int = field(INT64)
    producer_epoch: int = field(INT16)
    generation_id: int = field(INT32, since=3, default=-1)
    member_id: str = field(STRING, since=3)
    group_instance_id: str | None = field(STRING, since=3, nullable=3, default=None)
    topics: list[TxnOffsetCommitRequestTopic] = field(array(TxnOffsetCommitRequestTopic))


@struct
class TxnOffsetCommitResponsePartition:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class TxnOffsetCommitResponseTopic:
    name: str = field(STRING)
    partitions: list[TxnOffsetCommitResponsePartition] = field(array(TxnOffsetCommitResponsePartition))


@message(api_key=ApiKey.TXN_OFFSET_COMMIT, versions=(0, 5), flexible=3)
class TxnOffsetCommitResponse:
    throttle_time_ms: int = field(INT32)
    topics: list[TxnOffsetCommitResponseTopic] = field(array(TxnOffsetCommitResponseTopic))
