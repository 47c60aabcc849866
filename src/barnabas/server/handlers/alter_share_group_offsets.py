"""AlterShareGroupOffsets (key 91), v0: sets a share group to other offsets (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.alter_share_group_offsets import (
    AlterShareGroupOffsetsRequest,
    AlterShareGroupOffsetsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_alter_share_group_offsets(
    context: RequestContext, request: AlterShareGroupOffsetsRequest
) -> AlterShareGroupOffsetsResponse:
    return fail_alter_share_group_offsets(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_alter_share_group_offsets(
    context: RequestContext, request: AlterShareGroupOffsetsRequest, error: ErrorCode
) -> AlterShareGroupOffsetsResponse:
    return AlterShareGroupOffsetsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.ALTER_SHARE_GROUP_OFFSETS,
    min_version=0,
    max_version=0,
    request=AlterShareGroupOffsetsRequest,
    handle=handle_alter_share_group_offsets,
    fail=fail_alter_share_group_offsets,
)
