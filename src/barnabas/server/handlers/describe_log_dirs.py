"""DescribeLogDirs (key 35), v1-v4: what lies in each log directory, and how full its volume is (v4, KIP-827)."""

import shutil
from collections import defaultdict
from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_log_dirs import (
    DescribableLogDirTopic,
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.steps import PARTITIONS_PER_STEP, in_steps
from barnabas.storage.log import Log
from barnabas.storage.log_directory import LogDirectory

UNKNOWN_LAG = -1


def handle_describe_log_dirs(
    context: RequestContext, request: DescribeLogDirsRequest
) -> DescribeLogDirsResponse | Deferred[DescribeLogDirsResponse]:
    if not context.may(Operation.DESCRIBE, CLUSTER):
        return fail_describe_log_dirs(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return context.in_slices(_describe_all(context, request))


def _describe_all(
    context: RequestContext, request: DescribeLogDirsRequest
) -> Generator[None, None, DescribeLogDirsResponse]:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = set()
        for topics in in_steps(request.topics, _partition_count, _some_partitions):
            wanted.update((topic.topic, partition) for topic in topics for partition in topic.partitions)
            yield
    response = DescribeLogDirsResponse(error_code=ErrorCode.NONE, results=[])
    for directory in context.broker.log_directories.directories:
        response.results.append((yield from _describe(context, directory, wanted)))
    return response


def _partition_count(topic: DescribableLogDirTopic) -> int:
    return len(topic.partitions)


def _some_partitions(topic: DescribableLogDirTopic, start: int, end: int) -> DescribableLogDirTopic:
    return DescribableLogDirTopic(topic=topic.topic, partitions=topic.partitions[start:end])


def _describe(
    context: RequestContext, directory: LogDirectory, wanted: set[tuple[str, int]] | None
) -> Generator[None, None, DescribeLogDirsResult]:
    if directory.failure is not None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[])
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for index, log in enumerate(directory.every_log()):
        topic, partition = log.topic_partition
        if index % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
        if wanted is None or (topic, partition) in wanted:
            row = DescribeLogDirsPartition(
                partition_index=partition,
                partition_size=log.size_in_bytes,
                offset_lag=_lag(context, log),
                is_future_key=log is directory.futures.get(log.topic_partition),
            )
            topics[topic].append(row)
    volume = shutil.disk_usage(directory.path)
    return DescribeLogDirsResult(
        error_code=ErrorCode.NONE,
        log_dir=directory.path,
        topics=[DescribeLogDirsTopic(name=name, partitions=rows) for name, rows in topics.items()],
        total_bytes=volume.total,
        usable_bytes=volume.free,
    )


def _lag(context: RequestContext, log: Log) -> int:
    """How many committed records a follower has not copied yet; -1 for a log that belongs to no partition here.

    Of a copy for this directory: how many records of the log it lacks.
    """
    try:
        hosted = context.broker.replicas.find(*log.topic_partition)
    except KafkaError:
        return UNKNOWN_LAG
    if hosted.log is not log:
        return hosted.log.log_end_offset - log.log_end_offset
    state = hosted.state
    return 0 if state.is_leader else max(0, state.leader_high_watermark - log.log_end_offset)


def fail_describe_log_dirs(
    context: RequestContext, request: DescribeLogDirsRequest, error: ErrorCode
) -> DescribeLogDirsResponse:
    return DescribeLogDirsResponse(error_code=error, results=[])


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_LOG_DIRS,
    min_version=1,
    max_version=4,
    request=DescribeLogDirsRequest,
    handle=handle_describe_log_dirs,
    fail=fail_describe_log_dirs,
    checks_access=True,
)
