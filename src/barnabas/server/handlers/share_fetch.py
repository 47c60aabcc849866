"""ShareFetch (key 78), v1: records for a member of a share group (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.share_fetch import ShareFetchRequest, ShareFetchResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_share_fetch(context: RequestContext, request: ShareFetchRequest) -> ShareFetchResponse:
    return fail_share_fetch(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_share_fetch(context: RequestContext, request: ShareFetchRequest, error: ErrorCode) -> ShareFetchResponse:
    return ShareFetchResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.SHARE_FETCH,
    min_version=1,
    max_version=1,
    request=ShareFetchRequest,
    handle=handle_share_fetch,
    fail=fail_share_fetch,
)
