"""AlterPartitionReassignments (key 45), v0-v1: moves partitions to other brokers, or cancels that (KIP-455).

Nothing is copied between brokers yet. An assignment that is already in force succeeds, as in Kafka; any other is
refused with the reason, after Kafka's own checks. There is never one to cancel: NO_REASSIGNMENT_IN_PROGRESS.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.topics import check_assignment
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartition,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name, partitions=[_result(context, topic.name, each) for each in topic.partitions]
            )
            for topic in request.topics
        ],
    )


def _result(context: RequestContext, topic: str, wanted: ReassignablePartition) -> ReassignablePartitionResponse:
    index = wanted.partition_index
    try:
        _check(context, topic, wanted)
    except KafkaError as error:
        return ReassignablePartitionResponse(partition_index=index, error_code=error.code, error_message=error.message)
    return ReassignablePartitionResponse(partition_index=index, error_code=ErrorCode.NONE, error_message=None)


def _check(context: RequestContext, topic: str, wanted: ReassignablePartition) -> None:
    """Raises unless nothing has to change."""
    cluster = context.broker.cluster
    found = cluster.image.topic(topic)
    if found is None:
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, f"Unable to find a topic named {topic}.")
    partition = found.partition(wanted.partition_index)
    if partition is None:
        message = f"Unable to find partition {topic}:{wanted.partition_index}."
        raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, message)
    if wanted.replicas is None:
        raise KafkaError(ErrorCode.NO_REASSIGNMENT_IN_PROGRESS)
    replicas = tuple(wanted.replicas)
    check_assignment(cluster.image, replicas, None)
    if replicas != partition.replicas:
        raise KafkaError(
            ErrorCode.INVALID_REPLICA_ASSIGNMENT,
            "Brokers of this version do not copy records to each other, so a partition stays where it is.",
        )


def fail_alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest, error: ErrorCode
) -> AlterPartitionReassignmentsResponse:
    return AlterPartitionReassignmentsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.ALTER_PARTITION_REASSIGNMENTS,
    min_version=0,
    max_version=1,
    request=AlterPartitionReassignmentsRequest,
    handle=handle_alter_partition_reassignments,
    fail=fail_alter_partition_reassignments,
    forwards=True,
)
