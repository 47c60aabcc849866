"""AddPartitionsToTxn (key 24), v0-v5: partitions that a transaction is about to write to.

Up to v3 from a client, one transaction; v4 and v5 between brokers, many transactions, also to verify only (KIP-890). If
one partition does not exist or may not be written, none is added: the others get OPERATION_NOT_ATTEMPTED.
v2 PRODUCER_FENCED.
"""

from collections.abc import Callable, Generator, Iterable
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.controller.topic_name import INTERNAL_TOPICS
from barnabas.machines.txn.commands import AddPartitionsToTxn
from barnabas.metadata.image import ClusterImage
from barnabas.net.deferred import Deferred, then, when_all
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.add_partitions_to_txn import (
    AddPartitionsToTxnPartitionResult,
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnResult,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTopicResult,
    AddPartitionsToTxnTransaction,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.server.steps import PARTITIONS_PER_STEP
from barnabas.types import TopicPartition

FIRST_BROKER_VERSION = 4


def handle_add_partitions_to_txn(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> AddPartitionsToTxnResponse | Deferred[AddPartitionsToTxnResponse]:
    if context.version >= FIRST_BROKER_VERSION and not context.may_act_as_broker():
        return AddPartitionsToTxnResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return then(
        context.in_slices(_add_each(context, request)),
        lambda parts: when_all(parts, partial(_response, context.version)),
    )


def _add_each(
    context: RequestContext, request: AddPartitionsToTxnRequest
) -> Generator[None, None, list[AddPartitionsToTxnResult | Deferred[AddPartitionsToTxnResult]]]:
    results = []
    for transaction in _transactions(context.version, request):
        results.append((yield from _add(context, transaction)))
        yield
    return results


def _transactions(version: int, request: AddPartitionsToTxnRequest) -> list[AddPartitionsToTxnTransaction]:
    if version >= FIRST_BROKER_VERSION:
        return request.transactions
    return [
        AddPartitionsToTxnTransaction(
            transactional_id=request.v3_and_below_transactional_id,
            producer_id=request.v3_and_below_producer_id,
            producer_epoch=request.v3_and_below_producer_epoch,
            verify_only=False,
            topics=request.v3_and_below_topics,
        )
    ]


def _add(
    context: RequestContext, transaction: AddPartitionsToTxnTransaction
) -> Generator[None, None, AddPartitionsToTxnResult | Deferred[AddPartitionsToTxnResult]]:
    transactional_id = Resource.transactional_id(transaction.transactional_id)
    is_clients = context.version < FIRST_BROKER_VERSION
    if is_clients and not context.may(Operation.WRITE, transactional_id):
        return _result(transaction, lambda _: ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED)
    denied = _denied(context, transaction) if is_clients else set()
    missing = yield from _missing(context.broker.cluster.image, transaction)
    if denied or missing:
        return (yield from _result_in_steps(transaction, denied, missing))
    command = AddPartitionsToTxn(
        transaction.transactional_id,
        transaction.producer_id,
        transaction.producer_epoch,
        tuple(_partitions(transaction.topics)),
        context.version,
        transaction.verify_only,
    )
    return context.broker.transactions.submit(
        transaction.transactional_id, command, lambda error: _result(transaction, lambda _: error)
    )


def _denied(context: RequestContext, transaction: AddPartitionsToTxnTransaction) -> set[str]:
    """Topics that the client may not write to; as in Kafka nobody may write to internal ones in a transaction."""
    return {
        topic.name
        for topic in transaction.topics
        if topic.name in INTERNAL_TOPICS or not context.may_topic(Operation.WRITE, topic.name)
    }


def _missing(
    image: ClusterImage, transaction: AddPartitionsToTxnTransaction
) -> Generator[None, None, set[TopicPartition]]:
    missing = set()
    for index, each in enumerate(_partitions(transaction.topics)):
        if image.partition(*each) is None:
            missing.add(each)
        if index % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    return missing


def _result_in_steps(
    transaction: AddPartitionsToTxnTransaction, denied: set[str], missing: set[TopicPartition]
) -> Generator[None, None, AddPartitionsToTxnResult]:
    results: dict[str, AddPartitionsToTxnTopicResult] = {}
    for index, each in enumerate(_partitions(transaction.topics)):
        topic = results.setdefault(each.topic, AddPartitionsToTxnTopicResult(name=each.topic))
        topic.results_by_partition.append(
            AddPartitionsToTxnPartitionResult(
                partition_index=each.partition, partition_error_code=_error_of(each, denied, missing)
            )
        )
        if index % PARTITIONS_PER_STEP == PARTITIONS_PER_STEP - 1:
            yield
    return AddPartitionsToTxnResult(transactional_id=transaction.transactional_id, topic_results=list(results.values()))


def _partitions(topics: Iterable[AddPartitionsToTxnTopic]) -> Iterable[TopicPartition]:
    for topic in topics:
        for partition in topic.partitions:
            yield TopicPartition(topic.name, partition)


def _error_of(partition: TopicPartition, denied: set[str], missing: set[TopicPartition]) -> ErrorCode:
    if partition.topic in denied:
        return ErrorCode.TOPIC_AUTHORIZATION_FAILED
    return ErrorCode.UNKNOWN_TOPIC_OR_PARTITION if partition in missing else ErrorCode.OPERATION_NOT_ATTEMPTED


def _result(
    transaction: AddPartitionsToTxnTransaction, error_of: Callable[[TopicPartition], ErrorCode]
) -> AddPartitionsToTxnResult:
    return AddPartitionsToTxnResult(
        transactional_id=transaction.transactional_id,
        topic_results=[
            AddPartitionsToTxnTopicResult(
                name=topic.name,
                results_by_partition=[
                    AddPartitionsToTxnPartitionResult(
                        partition_index=partition,
                        partition_error_code=error_of(TopicPartition(topic.name, partition)),
                    )
                    for partition in topic.partitions
                ],
            )
            for topic in transaction.topics
        ],
    )


def _response(version: int, results: list[AddPartitionsToTxnResult]) -> AddPartitionsToTxnResponse:
    if version >= FIRST_BROKER_VERSION:
        return AddPartitionsToTxnResponse(results_by_transaction=results)
    return AddPartitionsToTxnResponse(results_by_topic_v3_and_below=results[0].topic_results)


def fail_add_partitions_to_txn(
    context: RequestContext, request: AddPartitionsToTxnRequest, error: ErrorCode
) -> AddPartitionsToTxnResponse:
    transactions = _transactions(context.version, request)
    return _response(context.version, [_result(each, lambda _: error) for each in transactions])


HANDLER = Handler(
    api_key=ApiKey.ADD_PARTITIONS_TO_TXN,
    min_version=0,
    max_version=5,
    request=AddPartitionsToTxnRequest,
    handle=handle_add_partitions_to_txn,
    fail=fail_add_partitions_to_txn,
    checks_access=True,
)
