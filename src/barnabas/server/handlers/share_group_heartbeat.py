"""ShareGroupHeartbeat (key 76), v1: membership of a share group (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.share_group_heartbeat import ShareGroupHeartbeatRequest, ShareGroupHeartbeatResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_share_group_heartbeat(
    context: RequestContext, request: ShareGroupHeartbeatRequest
) -> ShareGroupHeartbeatResponse:
    return fail_share_group_heartbeat(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_share_group_heartbeat(
    context: RequestContext, request: ShareGroupHeartbeatRequest, error: ErrorCode
) -> ShareGroupHeartbeatResponse:
    return ShareGroupHeartbeatResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.SHARE_GROUP_HEARTBEAT,
    min_version=1,
    max_version=1,
    request=ShareGroupHeartbeatRequest,
    handle=handle_share_group_heartbeat,
    fail=fail_share_group_heartbeat,
)
