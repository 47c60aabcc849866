"""AlterReplicaLogDirs (key 34), v1-v2: moves replicas to other log directories of this broker (KIP-113).

The broker copies in the background (`server/directory_moves`). A partition that is not here yet gets
REPLICA_NOT_AVAILABLE, or UNKNOWN_TOPIC_OR_PARTITION, and is created in that directory later, as in Kafka.
"""

from collections.abc import Callable

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.types import TopicPartition


def handle_alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_alter_replica_log_dirs(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    moves = context.broker.directory_moves
    return _results(request, lambda path, topic, partition: moves.request(path, TopicPartition(topic, partition)))


def _results(
    request: AlterReplicaLogDirsRequest, outcome: Callable[[str, str, int], ErrorCode]
) -> AlterReplicaLogDirsResponse:
    topics: dict[str, list[AlterReplicaLogDirPartitionResult]] = {}
    for directory in request.dirs:
        for topic in directory.topics:
            topics.setdefault(topic.name, []).extend(
                AlterReplicaLogDirPartitionResult(
                    partition_index=partition, error_code=outcome(directory.path, topic.name, partition)
                )
                for partition in topic.partitions
            )
    return AlterReplicaLogDirsResponse(
        results=[AlterReplicaLogDirTopicResult(topic_name=name, partitions=rows) for name, rows in topics.items()]
    )


def fail_alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest, error: ErrorCode
) -> AlterReplicaLogDirsResponse:
    return _results(request, lambda *_: error)


HANDLER = Handler(
    api_key=ApiKey.ALTER_REPLICA_LOG_DIRS,
    min_version=1,
    max_version=2,
    request=AlterReplicaLogDirsRequest,
    handle=handle_alter_replica_log_dirs,
    fail=fail_alter_replica_log_dirs,
    checks_access=True,
)
