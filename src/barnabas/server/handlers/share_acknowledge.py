"""ShareAcknowledge (key 79), v1: acknowledgements by a member of a share group (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.share_acknowledge import ShareAcknowledgeRequest, ShareAcknowledgeResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_share_acknowledge(context: RequestContext, request: ShareAcknowledgeRequest) -> ShareAcknowledgeResponse:
    return fail_share_acknowledge(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_share_acknowledge(
    context: RequestContext, request: ShareAcknowledgeRequest, error: ErrorCode
) -> ShareAcknowledgeResponse:
    return ShareAcknowledgeResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.SHARE_ACKNOWLEDGE,
    min_version=1,
    max_version=1,
    request=ShareAcknowledgeRequest,
    handle=handle_share_acknowledge,
    fail=fail_share_acknowledge,
)
