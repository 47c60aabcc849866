"""DescribeProducers (key 61), v0: the producers a partition knows, at any of its replicas (KIP-664)."""

from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.topic_name import fault_of_topic_name
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    PartitionResponse,
    ProducerState,
    TopicResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext


def handle_describe_producers(
    context: RequestContext, request: DescribeProducersRequest
) -> DescribeProducersResponse | Deferred[DescribeProducersResponse]:
    return context.in_slices(_describe_each(context, request))


def _describe_each(
    context: RequestContext, request: DescribeProducersRequest
) -> Generator[None, None, DescribeProducersResponse]:
    response = DescribeProducersResponse(topics=[])
    for topic in request.topics:
        topic_response = TopicResponse(name=topic.name, partitions=[])
        response.topics.append(topic_response)
        fault = _fault_of(context, topic.name)
        for index in topic.partition_indexes:
            yield
            try:
                if fault is not None:
                    raise fault
                topic_response.partitions.append(_describe(context, topic.name, index))
            except KafkaError as error:
                topic_response.partitions.append(
                    PartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
                )
    return response


def _fault_of(context: RequestContext, topic: str) -> KafkaError | None:
    fault = fault_of_topic_name(topic)
    if fault is not None:
        return KafkaError(ErrorCode.INVALID_TOPIC_EXCEPTION, fault)
    allowed = context.may_topic(Operation.READ, topic)
    return None if allowed else KafkaError(ErrorCode.TOPIC_AUTHORIZATION_FAILED)


def _describe(context: RequestContext, topic: str, index: int) -> PartitionResponse:
    hosted = context.broker.replicas.find(topic, index)
    producers = [
        ProducerState(
            producer_id=entry.producer_id,
            producer_epoch=entry.epoch,
            last_sequence=entry.last_sequence,
            last_timestamp=entry.last_timestamp,
            coordinator_epoch=entry.coordinator_epoch,
            current_txn_start_offset=entry.current_txn_first_offset,
        )
        for entry in hosted.log.active_producers
    ]
    return PartitionResponse(partition_index=index, error_code=ErrorCode.NONE, active_producers=producers)


def fail_describe_producers(
    context: RequestContext, request: DescribeProducersRequest, error: ErrorCode
) -> DescribeProducersResponse:
    return DescribeProducersResponse(
        topics=[
            TopicResponse(
                name=topic.name,
                partitions=[
                    PartitionResponse(partition_index=index, error_code=error, error_message=error.text)
                    for index in topic.partition_indexes
                ],
            )
            for topic in request.topics
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_PRODUCERS,
    min_version=0,
    max_version=0,
    request=DescribeProducersRequest,
    handle=handle_describe_producers,
    fail=fail_describe_producers,
    checks_access=True,
)
