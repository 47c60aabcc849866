"""ShareGroupDescribe (key 77), v1: state and members of share groups (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_share_group_describe(
    context: RequestContext, request: ShareGroupDescribeRequest
) -> ShareGroupDescribeResponse:
    return fail_share_group_describe(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_share_group_describe(
    context: RequestContext, request: ShareGroupDescribeRequest, error: ErrorCode
) -> ShareGroupDescribeResponse:
    return ShareGroupDescribeResponse(
        groups=[DescribedGroup(error_code=error, group_id=group_id) for group_id in request.group_ids]
    )


HANDLER = Handler(
    api_key=ApiKey.SHARE_GROUP_DESCRIBE,
    min_version=1,
    max_version=1,
    request=ShareGroupDescribeRequest,
    handle=handle_share_group_describe,
    fail=fail_share_group_describe,
)
