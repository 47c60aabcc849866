"""DescribeLogDirs (key 35), v1-v4: what lies in each log directory, and how full its volume is (v4, KIP-827)."""

import shutil
from collections import defaultdict

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_log_dirs import (
    DescribeLogDirsPartition,
    DescribeLogDirsRequest,
    DescribeLogDirsResponse,
    DescribeLogDirsResult,
    DescribeLogDirsTopic,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext
from barnabas.storage.log_directory import LogDirectory


def handle_describe_log_dirs(context: RequestContext, request: DescribeLogDirsRequest) -> DescribeLogDirsResponse:
    wanted: set[tuple[str, int]] | None = None
    if request.topics is not None:
        wanted = {(topic.topic, partition) for topic in request.topics for partition in topic.partitions}
    return DescribeLogDirsResponse(
        error_code=ErrorCode.NONE,
        results=[_describe(directory, wanted) for directory in context.broker.log_directories.directories],
    )


def _describe(directory: LogDirectory, wanted: set[tuple[str, int]] | None) -> DescribeLogDirsResult:
    if directory.failure is not None:
        return DescribeLogDirsResult(error_code=ErrorCode.KAFKA_STORAGE_ERROR, log_dir=directory.path, topics=[])
    topics: dict[str, list[DescribeLogDirsPartition]] = defaultdict(list)
    for (topic, partition), log in directory.logs.items():
        if wanted is None or (topic, partition) in wanted:
            row = DescribeLogDirsPartition(
                partition_index=partition, partition_size=log.size_in_bytes, offset_lag=0, is_future_key=False
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
)
