"""DescribeShareGroupOffsets (key 90), v0: where share groups stand (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_describe_share_group_offsets(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest
) -> DescribeShareGroupOffsetsResponse:
    return fail_describe_share_group_offsets(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_describe_share_group_offsets(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest, error: ErrorCode
) -> DescribeShareGroupOffsetsResponse:
    return DescribeShareGroupOffsetsResponse(
        groups=[
            DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=error)
            for group in request.groups
        ]
    )


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS,
    min_version=0,
    max_version=0,
    request=DescribeShareGroupOffsetsRequest,
    handle=handle_describe_share_group_offsets,
    fail=fail_describe_share_group_offsets,
)
