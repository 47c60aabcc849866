"""ExpireDelegationToken (key 40), v1-v2: a delegation token ends (KIP-48).

Tokens can only be managed by clients that are authenticated, and on a PLAINTEXT listener nobody is:
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_expire_delegation_token(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse:
    return fail_expire_delegation_token(context, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def fail_expire_delegation_token(
    context: RequestContext, request: ExpireDelegationTokenRequest, error: ErrorCode
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)


HANDLER = Handler(
    api_key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    min_version=1,
    max_version=2,
    request=ExpireDelegationTokenRequest,
    handle=handle_expire_delegation_token,
    fail=fail_expire_delegation_token,
)
