"""FindCoordinator (key 10), v0-v6: which broker coordinates a group or a transactional id.

This broker coordinates neither yet and says so with COORDINATOR_NOT_AVAILABLE, which clients retry.
v3 flexible; v4 several keys at once (KIP-699); v6 share groups (KIP-932: INVALID_REQUEST).
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.find_coordinator import Coordinator, FindCoordinatorRequest, FindCoordinatorResponse
from barnabas.server.dispatch import Handler, RequestContext

FIRST_BATCHED_VERSION = 4
GROUP, TRANSACTION = 0, 1


def handle_find_coordinator(context: RequestContext, request: FindCoordinatorRequest) -> FindCoordinatorResponse:
    known = request.key_type in (GROUP, TRANSACTION)
    error = ErrorCode.COORDINATOR_NOT_AVAILABLE if known else ErrorCode.INVALID_REQUEST
    return fail_find_coordinator(context, request, error)


def fail_find_coordinator(
    context: RequestContext, request: FindCoordinatorRequest, error: ErrorCode
) -> FindCoordinatorResponse:
    if context.version < FIRST_BATCHED_VERSION:
        return FindCoordinatorResponse(error_code=error, error_message=error.text, node_id=-1, host="", port=-1)
    return FindCoordinatorResponse(
        coordinators=[
            Coordinator(key=key, node_id=-1, host="", port=-1, error_code=error, error_message=error.text)
            for key in request.coordinator_keys
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.FIND_COORDINATOR,
    min_version=0,
    max_version=6,
    request=FindCoordinatorRequest,
    handle=handle_find_coordinator,
    fail=fail_find_coordinator,
)
