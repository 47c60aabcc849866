"""CreateDelegationToken (key 38), v1-v3: a token by which its holder is known as the owner (KIP-48).

Tokens can only be managed by clients that are authenticated, and on a PLAINTEXT listener nobody is:
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext

NEVER = -1
FIRST_REQUESTER_VERSION = 3


def handle_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse:
    return fail_create_delegation_token(context, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def fail_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest, error: ErrorCode
) -> CreateDelegationTokenResponse:
    response = CreateDelegationTokenResponse(
        error_code=error,
        principal_type="User",
        principal_name="ANONYMOUS",
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if context.version >= FIRST_REQUESTER_VERSION:
        response.token_requester_principal_type = "User"
        response.token_requester_principal_name = "ANONYMOUS"
    return response


HANDLER = Handler(
    api_key=ApiKey.CREATE_DELEGATION_TOKEN,
    min_version=1,
    max_version=3,
    request=CreateDelegationTokenRequest,
    handle=handle_create_delegation_token,
    fail=fail_create_delegation_token,
)
