"""ListPartitionReassignments (key 46), v0: the partitions that are on their way to other brokers (KIP-455).

None ever is, because AlterPartitionReassignments refuses what would have to be copied: an empty list.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.list_partition_reassignments import (
    ListPartitionReassignmentsRequest,
    ListPartitionReassignmentsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_list_partition_reassignments(
    context: RequestContext, request: ListPartitionReassignmentsRequest
) -> ListPartitionReassignmentsResponse:
    return ListPartitionReassignmentsResponse(error_code=ErrorCode.NONE, error_message=None)


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
)
