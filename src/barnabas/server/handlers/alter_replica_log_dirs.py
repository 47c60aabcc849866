"""AlterReplicaLogDirs (key 34), v1-v2: moves replicas to other log directories of this broker (KIP-113).

A replica that already lies there succeeds, as in Kafka; a directory that the broker does not have is LOG_DIR_NOT_FOUND,
one that failed KAFKA_STORAGE_ERROR. Moving to another directory is not possible yet: UNSUPPORTED_VERSION, since the
response has no room for a message.
"""

from collections.abc import Callable

from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_replica_log_dirs import (
    AlterReplicaLogDirPartitionResult,
    AlterReplicaLogDirsRequest,
    AlterReplicaLogDirsResponse,
    AlterReplicaLogDirTopicResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.replicas import Replicas
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.storage.log_directory import LogDirectory


def handle_alter_replica_log_dirs(
    context: RequestContext, request: AlterReplicaLogDirsRequest
) -> AlterReplicaLogDirsResponse:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_alter_replica_log_dirs(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    replicas = context.broker.replicas
    directories = {directory.path: directory for directory in context.broker.log_directories.directories}
    return _results(request, lambda path, topic, partition: _check(directories.get(path), replicas, topic, partition))


def _check(target: LogDirectory | None, replicas: Replicas, topic: str, partition: int) -> ErrorCode:
    if target is None:
        return ErrorCode.LOG_DIR_NOT_FOUND
    if target.is_offline:
        return ErrorCode.KAFKA_STORAGE_ERROR
    try:
        replicas.find(topic, partition)
    except KafkaError as error:
        return error.code
    return ErrorCode.NONE if (topic, partition) in target.logs else ErrorCode.UNSUPPORTED_VERSION


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
