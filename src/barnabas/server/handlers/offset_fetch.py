"""OffsetFetch (key 9), v1-v9: read the stored offsets of groups.

Up to v7 one group, from v8 on many (KIP-709), each answered by its shard. v2 null topics for all; v7 only offsets that
no open transaction may change (KIP-447); v9 member id and epoch (KIP-848). In v1 an error of the group stands at each
of its partitions. v10, with topic ids, is unstable in Kafka 4.1 and not listed there either.
"""

from collections.abc import Generator
from functools import partial
from typing import cast

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import OffsetFetch, OffsetPartitions
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
    OffsetFetchResponse,
    OffsetFetchResponseGroup,
    OffsetFetchResponsePartition,
    OffsetFetchResponsePartitions,
    OffsetFetchResponseTopic,
    OffsetFetchResponseTopics,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.steps import PARTITIONS_PER_STEP, in_steps, is_one_step
from barnabas.types import GroupId

FIRST_GROUP_ERROR_VERSION = 2
FIRST_BATCHED_VERSION = 8
MIN_PARTITION_BYTES = 20
"""What an offset takes in a response, without metadata."""

Stored = dict[str, list[int]] | ErrorCode
"""The partitions that a group has offsets for, by topic."""
Parts = list[OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]]


def handle_offset_fetch(
    context: RequestContext, request: OffsetFetchRequest
) -> OffsetFetchResponse | Deferred[OffsetFetchResponse]:
    version = context.version
    if version < FIRST_BATCHED_VERSION:
        group = _only_group(request)
        request.groups = [group]
        return then(
            context.in_slices(_fetch_each(context, request)),
            lambda groups: then(
                groups[0], lambda response: context.in_slices(_one_group_in_slices(group, response, version))
            ),
        )
    return then(
        context.in_slices(_fetch_each(context, request)),
        lambda groups: when_all(groups, lambda groups: OffsetFetchResponse(groups=groups)),
    )


def _fetch_each(
    context: RequestContext, request: OffsetFetchRequest
) -> Generator[None, None, list[OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]]]:
    responses = []
    for group in request.groups:
        response = yield from _fetch_visible(context, group, request.require_stable)
        responses.append(response)
        if not isinstance(response, Deferred):
            size_bytes = sum(len(topic.partitions) for topic in response.topics) * MIN_PARTITION_BYTES
            context.count_response(len(response.group_id) + size_bytes)
        yield
    return responses


def _fetch_visible(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> Generator[None, None, OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]]:
    """Topics that the client may not describe are refused if they are named, else left out."""
    if context.broker.authorizer is None:
        return (yield from _fetch_in_steps(context, group, require_stable))
    if not context.may(Operation.DESCRIBE, Resource.group(group.group_id)):
        return _failed(group, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    named = group.topics
    denied: list[OffsetFetchRequestTopics] = []
    if named is not None:
        denied = [topic for topic in named if not context.may_topic(Operation.DESCRIBE, topic.name)]
        group.topics = [topic for topic in named if topic not in denied] if denied else named
    response = yield from _fetch_in_steps(context, group, require_stable)

    def complete(response: OffsetFetchResponseGroup) -> OffsetFetchResponseGroup:
        if named is None:
            response.topics = [each for each in response.topics if context.may_topic(Operation.DESCRIBE, each.name)]
        elif not response.error_code:
            response.topics += map(_denied, denied)
        return response

    return then(response, complete)


def _denied(topic: OffsetFetchRequestTopics) -> OffsetFetchResponseTopics:
    error = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return OffsetFetchResponseTopics(
        name=topic.name,
        partitions=[
            OffsetFetchResponsePartitions(partition_index=index, committed_offset=-1, metadata="", error_code=error)
            for index in topic.partition_indexes
        ],
    )


def _fetch_in_steps(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool
) -> Generator[None, None, OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]]:
    """A group with many partitions is looked up in several steps."""
    if group.topics is not None:
        return when_all((yield from _fetch_topics(context, group, require_stable, group.topics)), _join)
    stored = context.broker.groups.submit(group.group_id, OffsetPartitions(GroupId(group.group_id)), _error)
    if not isinstance(stored, Deferred):
        return when_all((yield from _fetch_all(context, group, require_stable, stored)), _join)
    parts = stored.then(lambda stored: context.in_slices(_fetch_all(context, group, require_stable, stored)))
    return parts.then(lambda parts: when_all(parts, _join))


def _fetch_all(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool, stored: Stored
) -> Generator[None, None, Parts]:
    if isinstance(stored, ErrorCode):
        return [_failed(group, stored)]
    topics = [OffsetFetchRequestTopics(name=name, partition_indexes=indexes) for name, indexes in stored.items()]
    return (yield from _fetch_topics(context, group, require_stable, topics))


def _fetch_topics(
    context: RequestContext,
    group: OffsetFetchRequestGroup,
    require_stable: bool,
    topics: list[OffsetFetchRequestTopics],
) -> Generator[None, None, Parts]:
    if is_one_step(topics, _index_count):
        return [_fetch(context, group, require_stable)]
    parts: Parts = []
    for some_topics in in_steps(topics, _index_count, _some_indexes):
        some = OffsetFetchRequestGroup(
            group_id=group.group_id, member_id=group.member_id, member_epoch=group.member_epoch, topics=some_topics
        )
        # Of all offsets, one that was deleted since they were looked up is none.
        parts.append(_fetch(context, some, require_stable, only_stored=group.topics is None))
        yield
    return parts


def _index_count(topic: OffsetFetchRequestTopics) -> int:
    return len(topic.partition_indexes)


def _some_indexes(topic: OffsetFetchRequestTopics, start: int, end: int) -> OffsetFetchRequestTopics:
    indexes = topic.partition_indexes[start:end]
    return OffsetFetchRequestTopics(name=topic.name, partition_indexes=indexes)


def _join(parts: list[OffsetFetchResponseGroup]) -> OffsetFetchResponseGroup:
    if len(parts) == 1:
        return parts[0]
    failed = next((part for part in parts if part.error_code), None)
    if failed is not None:
        return failed
    topics: dict[str, OffsetFetchResponseTopics] = {}
    for part in parts:
        for topic in part.topics:
            first = topics.setdefault(topic.name, topic)
            if first is not topic:
                first.partitions += topic.partitions
    return OffsetFetchResponseGroup(group_id=parts[0].group_id, topics=list(topics.values()))


def _fetch(
    context: RequestContext, group: OffsetFetchRequestGroup, require_stable: bool, only_stored: bool = False
) -> OffsetFetchResponseGroup | Deferred[OffsetFetchResponseGroup]:
    command = OffsetFetch(group, require_stable, only_stored)
    return context.broker.groups.submit(group.group_id, command, partial(_failed, group))


def _error(error: ErrorCode) -> Stored:
    return error


def _only_group(request: OffsetFetchRequest) -> OffsetFetchRequestGroup:
    topics = request.topics
    return OffsetFetchRequestGroup(
        group_id=request.group_id,
        topics=None
        if topics is None
        else [OffsetFetchRequestTopics(name=topic.name, partition_indexes=topic.partition_indexes) for topic in topics],
    )


def _one_group(group: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup, version: int) -> OffsetFetchResponse:
    work = _one_group_in_slices(group, answer, version)
    try:
        while True:
            next(work)
    except StopIteration as end:
        return cast(OffsetFetchResponse, end.value)


def _one_group_in_slices(
    group: OffsetFetchRequestGroup, answer: OffsetFetchResponseGroup, version: int
) -> Generator[None, None, OffsetFetchResponse]:
    error = answer.error_code
    if error and version < FIRST_GROUP_ERROR_VERSION:
        topics = []
        for asked in group.topics or ():
            rows = [_no_offset(index, error) for index in asked.partition_indexes]
            topics.append(OffsetFetchResponseTopic(name=asked.name, partitions=rows))
            yield
        return OffsetFetchResponse(topics=topics)
    response = OffsetFetchResponse(error_code=error, topics=[])
    for topic in answer.topics:
        rows = []
        for start in range(0, len(topic.partitions), PARTITIONS_PER_STEP):
            rows += map(_of_one_group, topic.partitions[start : start + PARTITIONS_PER_STEP])
            yield
        response.topics.append(OffsetFetchResponseTopic(name=topic.name, partitions=rows))
    return response


def _of_one_group(each: OffsetFetchResponsePartitions) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(
        partition_index=each.partition_index,
        committed_offset=each.committed_offset,
        committed_leader_epoch=each.committed_leader_epoch,
        metadata=each.metadata,
        error_code=each.error_code,
    )


def _no_offset(index: int, error: int) -> OffsetFetchResponsePartition:
    return OffsetFetchResponsePartition(partition_index=index, committed_offset=-1, metadata="", error_code=error)


def _failed(group: OffsetFetchRequestGroup, error: ErrorCode) -> OffsetFetchResponseGroup:
    return OffsetFetchResponseGroup(group_id=group.group_id, topics=[], error_code=error)


def fail_offset_fetch(context: RequestContext, request: OffsetFetchRequest, error: ErrorCode) -> OffsetFetchResponse:
    if context.version < FIRST_BATCHED_VERSION:
        group = _only_group(request)
        return _one_group(group, _failed(group, error), context.version)
    return OffsetFetchResponse(groups=[_failed(group, error) for group in request.groups])


HANDLER = Handler(
    api_key=ApiKey.OFFSET_FETCH,
    min_version=1,
    max_version=9,
    request=OffsetFetchRequest,
    handle=handle_offset_fetch,
    fail=fail_offset_fetch,
    checks_access=True,
)
