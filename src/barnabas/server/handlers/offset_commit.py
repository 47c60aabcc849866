"""OffsetCommit (key 8), v2-v9: store the offsets of a group.

Topics that the client may not read are answered here with TOPIC_AUTHORIZATION_FAILED, partitions that do not exist with
UNKNOWN_TOPIC_OR_PARTITION; the others go to the group's shard. The
retention time of v2-v4 is not used, as in Kafka. v9 member epochs (KIP-848). v10, with topic ids, is unstable in
Kafka 4.1 and not listed there either.
"""

from collections.abc import Generator
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import OffsetCommit
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.steps import in_steps, is_one_step


def handle_offset_commit(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_offset_commit(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if is_one_step(request.topics, _partition_count):
        return _commit_known(context, request)
    return then(context.in_slices(_commit_in_steps(context, request)), lambda parts: when_all(parts, _join))


def _commit_known(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    refused = _take_out_refused(context, request)
    if refused and not request.topics:
        return OffsetCommitResponse(topics=refused)
    answer = _commit(context, request)
    return then(answer, lambda response: _complete(response, refused)) if refused else answer


def _commit(
    context: RequestContext, request: OffsetCommitRequest
) -> OffsetCommitResponse | Deferred[OffsetCommitResponse]:
    return context.broker.groups.submit(
        request.group_id, OffsetCommit(request, context.version), partial(fail_offset_commit, context, request)
    )


def _commit_in_steps(
    context: RequestContext, request: OffsetCommitRequest
) -> Generator[None, None, list[OffsetCommitResponse | Deferred[OffsetCommitResponse]]]:
    """Offsets of very many partitions are written as several batches."""
    parts = []
    for topics in in_steps(request.topics, _partition_count, _some_partitions):
        some = OffsetCommitRequest(
            group_id=request.group_id,
            generation_id_or_member_epoch=request.generation_id_or_member_epoch,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            retention_time_ms=request.retention_time_ms,
            topics=topics,
        )
        parts.append(_commit_known(context, some))
        yield
    return parts


def _partition_count(topic: OffsetCommitRequestTopic) -> int:
    return len(topic.partitions)


def _some_partitions(topic: OffsetCommitRequestTopic, start: int, end: int) -> OffsetCommitRequestTopic:
    return OffsetCommitRequestTopic(name=topic.name, topic_id=topic.topic_id, partitions=topic.partitions[start:end])


def _join(parts: list[OffsetCommitResponse]) -> OffsetCommitResponse:
    topics: dict[str, OffsetCommitResponseTopic] = {}
    for part in parts:
        for topic in part.topics:
            first = topics.setdefault(topic.name, topic)
            if first is not topic:
                first.partitions += topic.partitions
    return OffsetCommitResponse(topics=list(topics.values()))


def _take_out_refused(context: RequestContext, request: OffsetCommitRequest) -> list[OffsetCommitResponseTopic]:
    """Leaves in the request only what exists and may be read; gives the responses for the rest."""
    image = context.broker.cluster.image
    refused: list[OffsetCommitResponseTopic] = []
    known: list[OffsetCommitRequestTopic] = []
    for topic in request.topics:
        if not context.may_topic(Operation.READ, topic.name):
            refused.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        found = image.topic(topic.name)
        if found is None:
            refused.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            continue
        topic.topic_id = found.topic_id
        count = len(found.partitions)
        if all(0 <= partition.partition_index < count for partition in topic.partitions):
            known.append(topic)
            continue
        inside = [each for each in topic.partitions if 0 <= each.partition_index < count]
        outside = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        topic.partitions = outside
        refused.append(_failed(topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
        if inside:
            known.append(OffsetCommitRequestTopic(name=found.name, topic_id=found.topic_id, partitions=inside))
    request.topics = known
    return refused


def _complete(response: OffsetCommitResponse, refused: list[OffsetCommitResponseTopic]) -> OffsetCommitResponse:
    """Puts the topics that never reached the shard beside its own."""
    answered = {topic.name: topic for topic in response.topics}
    for topic in refused:
        other = answered.get(topic.name)
        if other is None:
            response.topics.append(topic)
        else:
            other.partitions += topic.partitions
    return response


def _failed(topic: OffsetCommitRequestTopic, error: ErrorCode) -> OffsetCommitResponseTopic:
    return OffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            OffsetCommitResponsePartition(partition_index=partition.partition_index, error_code=error)
            for partition in topic.partitions
        ],
    )


def fail_offset_commit(context: RequestContext, request: OffsetCommitRequest, error: ErrorCode) -> OffsetCommitResponse:
    return OffsetCommitResponse(topics=[_failed(topic, error) for topic in request.topics])


HANDLER = Handler(
    api_key=ApiKey.OFFSET_COMMIT,
    min_version=2,
    max_version=9,
    request=OffsetCommitRequest,
    handle=handle_offset_commit,
    fail=fail_offset_commit,
    checks_access=True,
)
