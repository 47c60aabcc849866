"""RenewDelegationToken (key 39), v1-v2: a delegation token lives longer (KIP-48).

Tokens can only be managed by clients that are authenticated, and on a PLAINTEXT listener nobody is:
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest, RenewDelegationTokenResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_renew_delegation_token(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse:
    return fail_renew_delegation_token(context, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def fail_renew_delegation_token(
    context: RequestContext, request: RenewDelegationTokenRequest, error: ErrorCode
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=-1)


HANDLER = Handler(
    api_key=ApiKey.RENEW_DELEGATION_TOKEN,
    min_version=1,
    max_version=2,
    request=RenewDelegationTokenRequest,
    handle=handle_renew_delegation_token,
    fail=fail_renew_delegation_token,
)
