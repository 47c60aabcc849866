"""ReadShareGroupStateSummary (key 87), v0: where share-partitions start (KIP-932); sent by brokers."""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, INT64, STRING, TEXT, UUID, array, field, message, struct


@struct
class PartitionData:
    partition: int = field(INT32)
    leader_epoch: int = field(INT32)


@struct
class ReadStateSummaryData:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionData] = field(array(PartitionData))


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 0), flexible=0)
class ReadShareGroupStateSummaryRequest:
    group_id: str = field(STRING)
    topics: list[ReadStateSummaryData] = field(array(ReadStateSummaryData))


@struct
class PartitionResult:
    partition: int = field(INT32)
    error_code: int = field(INT16)
    error_message: str | None = field(TEXT, nullable=0, default=None)
    state_epoch: int = field(INT32)
    leader_epoch: int = field(INT32)
    start_offset: int = field(INT64)


@struct
class ReadStateSummaryResult:
    topic_id: bytes = field(UUID)
    partitions: list[PartitionResult] = field(array(PartitionResult))


@message(api_key=ApiKey.READ_SHARE_GROUP_STATE_SUMMARY, versions=(0, 0), flexible=0)
class ReadShareGroupStateSummaryResponse:
    results: list[ReadStateSummaryResult] = field(array(ReadStateSummaryResult))
