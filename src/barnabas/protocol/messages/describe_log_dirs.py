"""DescribeLogDirs (key 35), v1-v4: log directories of a broker, and the replicas in them.

v2 flexible; v3 a top-level error; v4 total and usable bytes of the volume (KIP-827).
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import BOOL, INT16, INT32, INT64, STRING, array, field, message, struct


@struct
class DescribableLogDirTopic:
    topic: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 4), flexible=2)
class DescribeLogDirsRequest:
    topics: list[DescribableLogDirTopic] | None = field(array(DescribableLogDirTopic), nullable=1)


@struct
class DescribeLogDirsPartition:
    partition_index: int = field(INT32)
    partition_size: int = field(INT64)
    offset_lag: int = field(INT64)
    is_future_key: bool = field(BOOL)


@struct
class DescribeLogDirsTopic:
    name: str = field(STRING)
    partitions: list[DescribeLogDirsPartition] = field(array(DescribeLogDirsPartition))


@struct
class DescribeLogDirsResult:
    error_code: int = field(INT16)
    log_dir: str = field(STRING)
    topics: list[DescribeLogDirsTopic] = field(array(DescribeLogDirsTopic))
    total_bytes: int = field(INT64, since=4, default=-1, ignorable=True)
    usable_bytes: int = field(INT64, since=4, default=-1, ignorable=True)


@message(api_key=ApiKey.DESCRIBE_LOG_DIRS, versions=(1, 4), flexible=2)
class DescribeLogDirsResponse:
    throttle_time_ms: int = field(INT32)
    error_code: int = field(INT16, since=3, ignorable=True)
    results: list[DescribeLogDirsResult] = field(array(DescribeLogDirsResult))
