"""AlterReplicaLogDirs (key 34), v1-v2: move replicas between the log directories of a broker (KIP-113).

v2 flexible.
"""

from barnabas.protocol.api import ApiKey
from barnabas.protocol.schema import INT16, INT32, STRING, array, field, message, struct


@struct
class AlterReplicaLogDirTopic:
    name: str = field(STRING)
    partitions: list[int] = field(array(INT32))


@struct
class AlterReplicaLogDir:
    path: str = field(STRING)
    topics: list[AlterReplicaLogDirTopic] = field(array(AlterReplicaLogDirTopic))


@message(api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2), flexible=2)
class AlterReplicaLogDirsRequest:
    dirs: list[AlterReplicaLogDir] = field(array(AlterReplicaLogDir))


@struct
class AlterReplicaLogDirPartitionResult:
    partition_index: int = field(INT32)
    error_code: int = field(INT16)


@struct
class AlterReplicaLogDirTopicResult:
    topic_name: str = field(STRING)
    partitions: list[AlterReplicaLogDirPartitionResult] = field(array(AlterReplicaLogDirPartitionResult))


@message(api_key=ApiKey.ALTER_REPLICA_LOG_DIRS, versions=(1, 2), flexible=2)
class AlterReplicaLogDirsResponse:
    throttle_time_ms: int = field(INT32)
    results: list[AlterReplicaLogDirTopicResult] = field(array(AlterReplicaLogDirTopicResult))
