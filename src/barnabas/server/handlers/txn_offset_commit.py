"""TxnOffsetCommit (key 28), v0-v5: offsets of a group as part of a transaction.

The transaction coordinator checks first whether the group's partition of `__consumer_offsets` belongs to the
transaction (v5: has it added), then the group's shard writes the offsets, which count once the transaction commits. v3
fencing by member and generation (KIP-447); v4 TRANSACTION_ABORTABLE. Before v2 clients may fall over
COORDINATOR_LOAD_IN_PROGRESS and read COORDINATOR_NOT_AVAILABLE instead.
"""

from collections.abc import Generator
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.group.commands import TxnOffsetCommit
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
    TxnOffsetCommitResponsePartition,
    TxnOffsetCommitResponseTopic,
)
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.steps import in_steps, is_one_step
from barnabas.server.transaction_verification import Errors, is_ongoing
from barnabas.server.transactional_writes import TRY_AGAIN
from barnabas.types import NO_SEQUENCE, TopicPartition

FIRST_LOADING_VERSION = 2
FIRST_ABORTABLE_VERSION = 4
FIRST_ADDING_VERSION = 5


def handle_txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    if not context.may(Operation.WRITE, Resource.transactional_id(request.transactional_id)):
        return fail_txn_offset_commit(context, request, ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_txn_offset_commit(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    if is_one_step(request.topics, _partition_count):
        return _commit_known(context, request)
    return then(context.in_slices(_commit_in_steps(context, request)), lambda parts: when_all(parts, _join))


def _commit_in_steps(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> Generator[None, None, list[TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]]]:
    """Offsets of very many partitions are written as several batches."""
    parts = []
    for topics in in_steps(request.topics, _partition_count, _some_partitions):
        some = TxnOffsetCommitRequest(
            transactional_id=request.transactional_id,
            group_id=request.group_id,
            producer_id=request.producer_id,
            producer_epoch=request.producer_epoch,
            generation_id=request.generation_id,
            member_id=request.member_id,
            group_instance_id=request.group_instance_id,
            topics=topics,
        )
        parts.append(_commit_known(context, some))
        yield
    return parts


def _partition_count(topic: TxnOffsetCommitRequestTopic) -> int:
    return len(topic.partitions)


def _some_partitions(topic: TxnOffsetCommitRequestTopic, start: int, end: int) -> TxnOffsetCommitRequestTopic:
    return TxnOffsetCommitRequestTopic(name=topic.name, partitions=topic.partitions[start:end])


def _join(parts: list[TxnOffsetCommitResponse]) -> TxnOffsetCommitResponse:
    topics: dict[str, TxnOffsetCommitResponseTopic] = {}
    for part in parts:
        for topic in part.topics:
            first = topics.setdefault(topic.name, topic)
            if first is not topic:
                first.partitions += topic.partitions
    return TxnOffsetCommitResponse(topics=list(topics.values()))


def _commit_known(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    refused = _take_out_refused(context, request)
    if not request.topics:
        return TxnOffsetCommitResponse(topics=refused)
    return then(_verify_and_commit(context, request), lambda response: _complete(context, response, refused))


def _verify_and_commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    broker = context.broker
    partition = broker.groups.partition_for(request.group_id)
    shard = broker.groups.runtime.shard(partition)
    if shard is None:
        return fail_txn_offset_commit(context, request, ErrorCode.NOT_COORDINATOR)
    adds = context.version >= FIRST_ADDING_VERSION
    producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
    verification = broker.transactions.verification
    mark = None
    if adds or broker.config.transaction_partition_verification_enable:
        mark = verification.begin(shard.hosted, producer, NO_SEQUENCE)
    if mark is None:
        return _commit(context, request)

    def commit_if_verified(errors: Errors) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
        for error in errors.values():
            return fail_txn_offset_commit(context, request, _for_client(error))
        if not (
            is_ongoing(shard.hosted, *producer) or verification.still_holds(shard.hosted, request.producer_id, mark)
        ):
            return fail_txn_offset_commit(context, request, ErrorCode.INVALID_TXN_STATE)
        response = _commit(context, request)
        if is_ongoing(shard.hosted, *producer):
            # Not before: where the group refuses the offsets, those verified meanwhile are still the first write.
            verification.end(shard.hosted, request.producer_id)
        return response

    verified = verification.verify(
        request.transactional_id,
        producer,
        (TopicPartition(GROUP_METADATA_TOPIC, partition),),
        adds=adds,
        knows_abortable=context.version >= FIRST_ABORTABLE_VERSION,
    )
    return then(verified, commit_if_verified)


def _commit(
    context: RequestContext, request: TxnOffsetCommitRequest
) -> TxnOffsetCommitResponse | Deferred[TxnOffsetCommitResponse]:
    return context.broker.groups.submit(
        request.group_id, TxnOffsetCommit(request, context.version), partial(fail_txn_offset_commit, context, request)
    )


def _for_client(error: ErrorCode) -> ErrorCode:
    """A temporary error of the transaction coordinator makes the client retry at this one."""
    return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS if error in TRY_AGAIN else error


def _take_out_refused(context: RequestContext, request: TxnOffsetCommitRequest) -> list[TxnOffsetCommitResponseTopic]:
    """Leaves in the request only what exists and may be read; returns the responses for the rest."""
    image = context.broker.cluster.image
    refused = []
    known = []
    for topic in request.topics:
        if not context.may_topic(Operation.READ, topic.name):
            refused.append(_failed(topic, ErrorCode.TOPIC_AUTHORIZATION_FAILED))
            continue
        found = image.topic(topic.name)
        count = 0 if found is None else len(found.partitions)
        outside = [each for each in topic.partitions if not 0 <= each.partition_index < count]
        if outside:
            unknown = TxnOffsetCommitRequestTopic(name=topic.name, partitions=outside)
            refused.append(_failed(unknown, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION))
            topic.partitions = [each for each in topic.partitions if 0 <= each.partition_index < count]
        if topic.partitions:
            known.append(topic)
    request.topics = known
    return refused


def _complete(
    context: RequestContext, response: TxnOffsetCommitResponse, refused: list[TxnOffsetCommitResponseTopic]
) -> TxnOffsetCommitResponse:
    by_name = {topic.name: topic for topic in response.topics}
    for topic in refused:
        if topic.name in by_name:
            by_name[topic.name].partitions += topic.partitions
        else:
            response.topics.append(topic)
    if context.version < FIRST_LOADING_VERSION:
        for topic in response.topics:
            for partition in topic.partitions:
                if partition.error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
                    partition.error_code = ErrorCode.COORDINATOR_NOT_AVAILABLE
    return response


def _failed(topic: TxnOffsetCommitRequestTopic, error: ErrorCode) -> TxnOffsetCommitResponseTopic:
    return TxnOffsetCommitResponseTopic(
        name=topic.name,
        partitions=[
            TxnOffsetCommitResponsePartition(partition_index=each.partition_index, error_code=error)
            for each in topic.partitions
        ],
    )


def fail_txn_offset_commit(
    context: RequestContext, request: TxnOffsetCommitRequest, error: ErrorCode
) -> TxnOffsetCommitResponse:
    return TxnOffsetCommitResponse(topics=[_failed(topic, error) for topic in request.topics])


HANDLER = Handler(
    api_key=ApiKey.TXN_OFFSET_COMMIT,
    min_version=0,
    max_version=5,
    request=TxnOffsetCommitRequest,
    handle=handle_txn_offset_commit,
    fail=fail_txn_offset_commit,
    checks_access=True,
)
