"""The APIs that this broker only refuses: one row per API, with the code of a Kafka 4.1 that lacks the feature.

- SASL, on listeners without it: nobody logs in there.
- Raft voters (KIP-853): the controller is elected through the metadata store, and every broker may become it. Kafka
  responds the same with the feature kraft.version at 0.
- Share groups (KIP-932): as with the feature share.version at 0, its default.

An API moves to a file of its own, named like its message file, as soon as the broker does more than refuse it.
"""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.message_types import request_type, response_type
from barnabas.protocol.messages.describe_share_group_offsets import (
    DescribeShareGroupOffsetsRequest,
    DescribeShareGroupOffsetsResponse,
    DescribeShareGroupOffsetsResponseGroup,
)
from barnabas.protocol.messages.share_group_describe import (
    DescribedGroup,
    ShareGroupDescribeRequest,
    ShareGroupDescribeResponse,
)
from barnabas.server.dispatch import AnyHandler, Handler
from barnabas.server.request import CLUSTER, Operation, RequestContext

Request = TypeVar("Request")
Response = TypeVar("Response")
Refuse = Callable[[RequestContext, Request, ErrorCode, str], Response]
"""(context, request, error, message) -> the response in which every part of the request failed"""

NO_AUTHENTICATION = "SaslAuthenticate request received on a listener without authentication"
NO_QUORUM = "The controller is elected through the metadata store: there is no quorum to "


def _refused(
    api_key: ApiKey,
    versions: tuple[int, int],
    error: ErrorCode,
    refuse: Refuse[Request, Response],
    message: str | None = None,
) -> Handler[Request, Response]:
    text = error.text if message is None else message
    return Handler(
        api_key=api_key,
        min_version=versions[0],
        max_version=versions[1],
        request=request_type(api_key),
        handle=lambda context, request: refuse(context, request, error, text),
        fail=lambda context, request, fault: refuse(context, request, fault, fault.text),
        checks_access=True,  # nobody gets anything
    )


def _error_at_top(
    api_key: ApiKey, versions: tuple[int, int], error: ErrorCode, message: str | None = None, **fields: int | None
) -> AnyHandler:
    """A row whose response has the error at its top, and these fields."""
    response = response_type(api_key)
    takes_message = "error_message" in response.__slots__ and "error_message" not in fields
    return _refused(api_key, versions, error, _responding_with(response, fields, takes_message), message)


def _for_administrators(row: AnyHandler) -> AnyHandler:
    """Others are denied before they learn why it would not work."""

    def handle(context: RequestContext, request: Any) -> Any:
        if not context.may(Operation.ALTER, CLUSTER):
            return row.fail(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return row.handle(context, request)

    return replace(row, handle=handle)


def _responding_with(
    response: Callable[..., Response], fields: dict[str, int | None], takes_message: bool
) -> Refuse[Request, Response]:
    def refuse(context: RequestContext, request: Request, error: ErrorCode, message: str) -> Response:
        return response(error_code=error, **fields, **({"error_message": message} if takes_message else {}))

    return refuse


def _refuse_share_group_describe(
    context: RequestContext, request: ShareGroupDescribeRequest, error: ErrorCode, message: str
) -> ShareGroupDescribeResponse:
    groups = [DescribedGroup(error_code=error, group_id=group_id) for group_id in request.group_ids]
    return ShareGroupDescribeResponse(groups=groups)


def _refuse_describe_share_group_offsets(
    context: RequestContext, request: DescribeShareGroupOffsetsRequest, error: ErrorCode, message: str
) -> DescribeShareGroupOffsetsResponse:
    groups = [
        DescribeShareGroupOffsetsResponseGroup(group_id=group.group_id, error_code=error) for group in request.groups
    ]
    return DescribeShareGroupOffsetsResponse(groups=groups)


UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
HANDLERS: tuple[AnyHandler, ...] = (
    _error_at_top(ApiKey.SASL_HANDSHAKE, (0, 1), ErrorCode.ILLEGAL_SASL_STATE),
    _error_at_top(ApiKey.SASL_AUTHENTICATE, (0, 2), ErrorCode.ILLEGAL_SASL_STATE, NO_AUTHENTICATION),
    _for_administrators(_error_at_top(ApiKey.ADD_RAFT_VOTER, (0, 0), UNSUPPORTED, NO_QUORUM + "add a voter to.")),
    _for_administrators(
        _error_at_top(ApiKey.REMOVE_RAFT_VOTER, (0, 0), UNSUPPORTED, NO_QUORUM + "remove a voter from.")
    ),
    _error_at_top(ApiKey.SHARE_GROUP_HEARTBEAT, (1, 1), UNSUPPORTED, error_message=None),
    _refused(ApiKey.SHARE_GROUP_DESCRIBE, (1, 1), UNSUPPORTED, _refuse_share_group_describe),
    _error_at_top(ApiKey.SHARE_FETCH, (1, 1), UNSUPPORTED, error_message=None),
    _error_at_top(ApiKey.SHARE_ACKNOWLEDGE, (1, 1), UNSUPPORTED, error_message=None),
    _refused(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED, _refuse_describe_share_group_offsets),
    _error_at_top(ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED),
    _error_at_top(ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED),
)
