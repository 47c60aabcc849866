"""The APIs that this broker only refuses: one row per API, with the code of a Kafka 4.1 that lacks the feature.

- ACLs: there is no authorizer to keep them. MirrorMaker 2 relies on SECURITY_DISABLED.
- Delegation tokens (KIP-48): only authenticated clients manage them, and on a PLAINTEXT listener nobody is.
- SASL: listeners are PLAINTEXT, where nobody authenticates.
- Raft voters (KIP-853): the controller is elected through the metadata store, and every broker may become it. Kafka
  responds the same with the feature kraft.version at 0.
- Share groups (KIP-932): as with the feature share.version at 0, its default.

An API moves to a file of its own, named like its message file, as soon as the broker does more than refuse it.
"""

from collections.abc import Callable
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.message_types import request_type, response_type
from barnabas.protocol.messages.create_acls import AclCreationResult, CreateAclsRequest, CreateAclsResponse
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.protocol.messages.delete_acls import DeleteAclsFilterResult, DeleteAclsRequest, DeleteAclsResponse
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
from barnabas.server.request import ANONYMOUS, RequestContext

Refuse = Callable[[RequestContext, Any, ErrorCode, str], Any]
"""(context, request, error, message) -> the response in which every part of the request failed"""

NO_AUTHORIZER = "No Authorizer is configured."
NO_AUTHENTICATION = "SaslAuthenticate request received on a listener without authentication"
NO_QUORUM = "The controller is elected through the metadata store: there is no quorum to "
NEVER = -1
FIRST_REQUESTER_VERSION = 3


def _refused(
    api_key: ApiKey,
    versions: tuple[int, int],
    error: ErrorCode,
    message: str | None = None,
    refuse: Refuse | None = None,
    **fields: Any,
) -> AnyHandler:
    """A row; without `refuse` the response has the error at its top, and these fields."""
    text = error.text if message is None else message
    respond = refuse or _error_at_top(response_type(api_key), fields)
    return Handler(
        api_key=api_key,
        min_version=versions[0],
        max_version=versions[1],
        request=request_type(api_key),
        handle=lambda context, request: respond(context, request, error, text),
        fail=lambda context, request, fault: respond(context, request, fault, fault.text),
    )


def _error_at_top(response: type[Any], fields: dict[str, Any]) -> Refuse:
    takes_message = "error_message" in response.__slots__ and "error_message" not in fields

    def refuse(context: RequestContext, request: Any, error: ErrorCode, message: str) -> Any:
        return response(error_code=error, **fields, **({"error_message": message} if takes_message else {}))

    return refuse


def _refuse_create_acls(
    context: RequestContext, request: CreateAclsRequest, error: ErrorCode, message: str
) -> CreateAclsResponse:
    results = [AclCreationResult(error_code=error, error_message=message) for _ in request.creations]
    return CreateAclsResponse(results=results)


def _refuse_delete_acls(
    context: RequestContext, request: DeleteAclsRequest, error: ErrorCode, message: str
) -> DeleteAclsResponse:
    results = [DeleteAclsFilterResult(error_code=error, error_message=message) for _ in request.filters]
    return DeleteAclsResponse(filter_results=results)


def _refuse_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest, error: ErrorCode, message: str
) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        error_code=error,
        principal_type=ANONYMOUS.type,
        principal_name=ANONYMOUS.name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if context.version >= FIRST_REQUESTER_VERSION:
        response.token_requester_principal_type = ANONYMOUS.type
        response.token_requester_principal_name = ANONYMOUS.name
    return response


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


DISABLED = ErrorCode.SECURITY_DISABLED
NOT_ALLOWED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED
UNSUPPORTED = ErrorCode.UNSUPPORTED_VERSION
HANDLERS: tuple[AnyHandler, ...] = (
    _refused(ApiKey.DESCRIBE_ACLS, (1, 3), DISABLED, "No Authorizer is configured on the broker"),
    _refused(ApiKey.CREATE_ACLS, (1, 3), DISABLED, NO_AUTHORIZER, _refuse_create_acls),
    _refused(ApiKey.DELETE_ACLS, (1, 3), DISABLED, NO_AUTHORIZER, _refuse_delete_acls),
    _refused(ApiKey.CREATE_DELEGATION_TOKEN, (1, 3), NOT_ALLOWED, refuse=_refuse_create_delegation_token),
    _refused(ApiKey.RENEW_DELEGATION_TOKEN, (1, 2), NOT_ALLOWED, expiry_timestamp_ms=NEVER),
    _refused(ApiKey.EXPIRE_DELEGATION_TOKEN, (1, 2), NOT_ALLOWED, expiry_timestamp_ms=NEVER),
    _refused(ApiKey.DESCRIBE_DELEGATION_TOKEN, (1, 3), NOT_ALLOWED),
    _refused(ApiKey.SASL_HANDSHAKE, (0, 1), ErrorCode.ILLEGAL_SASL_STATE),
    _refused(ApiKey.SASL_AUTHENTICATE, (0, 2), ErrorCode.ILLEGAL_SASL_STATE, NO_AUTHENTICATION),
    _refused(ApiKey.ADD_RAFT_VOTER, (0, 0), UNSUPPORTED, NO_QUORUM + "add a voter to."),
    _refused(ApiKey.REMOVE_RAFT_VOTER, (0, 0), UNSUPPORTED, NO_QUORUM + "remove a voter from."),
    _refused(ApiKey.SHARE_GROUP_HEARTBEAT, (1, 1), UNSUPPORTED, error_message=None),
    _refused(ApiKey.SHARE_GROUP_DESCRIBE, (1, 1), UNSUPPORTED, refuse=_refuse_share_group_describe),
    _refused(ApiKey.SHARE_FETCH, (1, 1), UNSUPPORTED, error_message=None),
    _refused(ApiKey.SHARE_ACKNOWLEDGE, (1, 1), UNSUPPORTED, error_message=None),
    _refused(ApiKey.DESCRIBE_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED, refuse=_refuse_describe_share_group_offsets),
    _refused(ApiKey.ALTER_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED),
    _refused(ApiKey.DELETE_SHARE_GROUP_OFFSETS, (0, 0), UNSUPPORTED),
)
