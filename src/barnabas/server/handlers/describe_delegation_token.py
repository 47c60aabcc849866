"""DescribeDelegationToken (key 41), v1-v3: the delegation tokens of some owners (KIP-48).

Tokens can only be managed by clients that are authenticated, and on a PLAINTEXT listener nobody is:
DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, as on such a listener of Kafka.
"""

from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_describe_delegation_token(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse:
    return fail_describe_delegation_token(context, request, ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED)


def fail_describe_delegation_token(
    context: RequestContext, request: DescribeDelegationTokenRequest, error: ErrorCode
) -> DescribeDelegationTokenResponse:
    return DescribeDelegationTokenResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.DESCRIBE_DELEGATION_TOKEN,
    min_version=1,
    max_version=3,
    request=DescribeDelegationTokenRequest,
    handle=handle_describe_delegation_token,
    fail=fail_describe_delegation_token,
)
