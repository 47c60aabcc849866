"""AlterPartitionReassignments (key 45), v0-v1: moves partitions to other brokers, or cancels that (KIP-455).

v1 can refuse a change of the replication factor. Responds once the reassignment has begun; ListPartitionReassignments
shows how it goes on. `timeout_ms` has no effect: the controller's work takes milliseconds.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import Reassignment
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_partition_reassignments import (
    AlterPartitionReassignmentsRequest,
    AlterPartitionReassignmentsResponse,
    ReassignablePartitionResponse,
    ReassignableTopicResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.server.steps import MAX_CONTROLLER_ITEMS


def handle_alter_partition_reassignments(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse | Deferred[AlterPartitionReassignmentsResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_alter_partition_reassignments(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if sum(len(topic.partitions) for topic in request.topics) > MAX_CONTROLLER_ITEMS:
        return fail_alter_partition_reassignments(context, request, ErrorCode.POLICY_VIOLATION)
    return context.run(_alter(context, request))


async def _alter(
    context: RequestContext, request: AlterPartitionReassignmentsRequest
) -> AlterPartitionReassignmentsResponse:
    wanted = [
        Reassignment(topic.name, each.partition_index, None if each.replicas is None else tuple(each.replicas))
        for topic in request.topics
        for each in topic.partitions
    ]
    try:
        results = iter(
            await context.broker.controller.alter_reassignments(
                wanted, allow_replication_factor_change=request.allow_replication_factor_change
            )
        )
    except KafkaError as error:
        return fail_alter_partition_reassignments(context, request, error.code)
    return AlterPartitionReassignmentsResponse(
        allow_replication_factor_change=request.allow_replication_factor_change,
        error_code=ErrorCode.NONE,
        error_message=None,
        responses=[
            ReassignableTopicResponse(
                name=topic.name,
                partitions=[
                    ReassignablePartitionResponse(
                        partition_index=result.partition, error_code=result.error, error_message=result.message
                    )
                    for _, result in zip(topic.partitions, results)
                ],
            )
            for topic in request.topics
        ],
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
    checks_access=True,
)
