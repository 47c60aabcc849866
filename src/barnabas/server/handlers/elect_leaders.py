"""ElectLeaders (key 43), v0-v2: elects the preferred leader of partitions, or any replica that is there.

v0 knows the preferred leader only (KIP-183), v1 both (KIP-460). Without partitions it is for all of them, and those
that need no election are left out. `timeout_ms` has no effect: the controller's work takes milliseconds.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import ElectionType
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.elect_leaders import (
    ElectLeadersRequest,
    ElectLeadersResponse,
    PartitionResult,
    ReplicaElectionResult,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext
from barnabas.types import TopicPartition

FIRST_WHOLE_ERROR_VERSION = 1


def handle_elect_leaders(
    context: RequestContext, request: ElectLeadersRequest
) -> ElectLeadersResponse | Deferred[ElectLeadersResponse]:
    if not context.may(Operation.ALTER, CLUSTER):
        return fail_elect_leaders(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return context.run(_elect_leaders(context, request))


async def _elect_leaders(context: RequestContext, request: ElectLeadersRequest) -> ElectLeadersResponse:
    try:
        election = ElectionType(request.election_type)
    except ValueError:
        message = f"Unknown election type {request.election_type}"
        return _refuse(context, request, ErrorCode.INVALID_REQUEST, message)
    wanted: list[TopicPartition] | None = None
    if request.topic_partitions is not None:
        wanted = [TopicPartition(each.topic, index) for each in request.topic_partitions for index in each.partitions]
    try:
        results = await context.broker.controller.elect_leaders(election, wanted)
    except KafkaError as error:
        return fail_elect_leaders(context, request, error.code)
    topics: dict[str, list[PartitionResult]] = {}
    for result in results:
        row = PartitionResult(partition_id=result.partition, error_code=result.error, error_message=result.message)
        topics.setdefault(result.topic, []).append(row)
    return ElectLeadersResponse(
        replica_election_results=[
            ReplicaElectionResult(topic=topic, partition_result=rows) for topic, rows in topics.items()
        ]
    )


def fail_elect_leaders(context: RequestContext, request: ElectLeadersRequest, error: ErrorCode) -> ElectLeadersResponse:
    return _refuse(context, request, error, error.text)


def _refuse(
    context: RequestContext, request: ElectLeadersRequest, error: ErrorCode, message: str
) -> ElectLeadersResponse:
    response = ElectLeadersResponse()
    if context.version >= FIRST_WHOLE_ERROR_VERSION:
        response.error_code = error
    for topic in request.topic_partitions or []:
        rows = [
            PartitionResult(partition_id=index, error_code=error, error_message=message) for index in topic.partitions
        ]
        response.replica_election_results.append(ReplicaElectionResult(topic=topic.topic, partition_result=rows))
    return response


HANDLER = Handler(
    api_key=ApiKey.ELECT_LEADERS,
    min_version=0,
    max_version=2,
    request=ElectLeadersRequest,
    handle=handle_elect_leaders,
    fail=fail_elect_leaders,
    forwards=True,
    checks_access=True,
)
