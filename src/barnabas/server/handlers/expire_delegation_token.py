"""ExpireDelegationToken (key 40), v1-v2: a token ends, now (a negative period) or at another time (KIP-48).

v2 flexible. For its owner and its renewers. Connections that have logged in with it keep their session, as in Kafka.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.delegation_tokens import ExpireToken
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.expire_delegation_token import (
    ExpireDelegationTokenRequest,
    ExpireDelegationTokenResponse,
)
from barnabas.server.delegation_tokens import NEVER, check_connection
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_expire_delegation_token(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | Deferred[ExpireDelegationTokenResponse]:
    return refuse_expire_delegation_token(context, request) or context.run(_expire(context, request))


def refuse_expire_delegation_token(
    context: RequestContext, request: ExpireDelegationTokenRequest
) -> ExpireDelegationTokenResponse | None:
    """What the broker refuses that received the request, whoever is controller."""
    try:
        check_connection(context)
    except KafkaError as error:
        return fail_expire_delegation_token(context, request, error.code)
    return None


async def _expire(context: RequestContext, request: ExpireDelegationTokenRequest) -> ExpireDelegationTokenResponse:
    broker = context.broker
    try:
        token_id = broker.tokens.id_of(request.hmac)
        expires_at_ms = await broker.controller.change_token(
            ExpireToken(token_id, str(context.principal), request.expiry_time_period_ms)
        )
    except KafkaError as error:
        return fail_expire_delegation_token(context, request, error.code)
    return ExpireDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_at_ms)


def fail_expire_delegation_token(
    context: RequestContext, request: ExpireDelegationTokenRequest, error: ErrorCode
) -> ExpireDelegationTokenResponse:
    return ExpireDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NEVER)


HANDLER = Handler(
    api_key=ApiKey.EXPIRE_DELEGATION_TOKEN,
    min_version=1,
    max_version=2,
    request=ExpireDelegationTokenRequest,
    handle=handle_expire_delegation_token,
    fail=fail_expire_delegation_token,
    forwards=True,
    before_forwarding=refuse_expire_delegation_token,
    checks_access=True,
)
