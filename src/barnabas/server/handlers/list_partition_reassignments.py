"""ListPartitionReassignments (key 46), v0: the partitions that are on their way to other brokers (KIP-455).

Without topics all of them. A topic or partition that does not exist, or is where it should be, is left out.
"""

from collections.abc import Generator, Iterator

from barnabas.errors import ErrorCode
from barnabas.metadata.image import ClusterImage, PartitionImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
    OngoingPartitionReassignment,
    OngoingTopicReassignment,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext


def handle_list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse | Deferred[ListPartitionReassignmentsResponse]:
    if not context.may(Operation.DESCRIBE, CLUSTER):
        return fail_list_partition_reassignments(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    return context.in_slices(_list(context.broker.cluster.image, request))


def _list(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> Generator[None, None, ListPartitionReassignmentsResponse]:
    topics: dict[str, OngoingTopicReassignment] = {}
    for partition, name in _wanted(image, request):
        if partition is not None and partition.is_reassigning:
            topic = topics.setdefault(name, OngoingTopicReassignment(name=name, partitions=[]))
            topic.partitions.append(_ongoing(partition))
        yield
    return ListPartitionReassignmentsResponse(
        error_code=ErrorCode.NONE, error_message=None, topics=list(topics.values())
    )


def _wanted(
    image: ClusterImage, request: ListPartitionReassignmentsRequest
) -> Iterator[tuple[PartitionImage | None, str]]:
    if request.topics is None:
        for topic, partition in image.all_partitions():
            yield partition, topic.name
        return
    for wanted in request.topics:
        for index in wanted.partition_indexes:
            yield image.partition(wanted.name, index), wanted.name


def _ongoing(partition: PartitionImage) -> OngoingPartitionReassignment:
    return OngoingPartitionReassignment(
        partition_index=partition.partition,
        replicas=list(partition.replicas),
        adding_replicas=list(partition.adding_replicas),
        removing_replicas=list(partition.removing_replicas),
    )


def fail_list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest, error: ErrorCode
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.LIST_PARTITION_REASSIGNMENTS,
    min_version=0,
    max_version=0,
    request=ListPartitionReassignmentsRequest,
    handle=handle_list_partition_reassignments,
    fail=fail_list_partition_reassignments,
    forwards=True,
    checks_access=True,
)
