"""DeleteShareGroupOffsets (key 92), v0: a share group forgets its offsets of topics (KIP-932).

There are no share groups here: UNSUPPORTED_VERSION, as from Kafka 4.1 with the feature share.version at 0, its default.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.delete_share_group_offsets import (
    DeleteShareGroupOffsetsRequest,
    DeleteShareGroupOffsetsResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_delete_share_group_offsets(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest
) -> DeleteShareGroupOffsetsResponse:
    return fail_delete_share_group_offsets(context, request, ErrorCode.UNSUPPORTED_VERSION)


def fail_delete_share_group_offsets(
    context: RequestContext, request: DeleteShareGroupOffsetsRequest, error: ErrorCode
) -> DeleteShareGroupOffsetsResponse:
    return DeleteShareGroupOffsetsResponse(error_code=error, error_message=error.text)


HANDLER = Handler(
    api_key=ApiKey.DELETE_SHARE_GROUP_OFFSETS,
    min_version=0,
    max_version=0,
    request=DeleteShareGroupOffsetsRequest,
    handle=handle_delete_share_group_offsets,
    fail=fail_delete_share_group_offsets,
)
