"""RenewDelegationToken (key 39), v1-v2: a later expiry for a token, for its owner and its renewers (KIP-48).

v2 flexible. No longer than `delegation.token.expiry.time.ms` from now, and never beyond the token's last time.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.delegation_tokens import RenewToken
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.renew_delegation_token import (
    RenewDelegationTokenRequest,
    RenewDelegationTokenResponse,
)
from barnabas.server.delegation_tokens import NEVER, check_connection
from barnabas.server.dispatch import Handler
from barnabas.server.request import RequestContext


def handle_renew_delegation_token(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | Deferred[RenewDelegationTokenResponse]:
    return refuse_renew_delegation_token(context, request) or context.run(_renew(context, request))


def refuse_renew_delegation_token(
    context: RequestContext, request: RenewDelegationTokenRequest
) -> RenewDelegationTokenResponse | None:
    """What the broker refuses that received the request, whoever is controller."""
    try:
        check_connection(context)
    except KafkaError as error:
        return fail_renew_delegation_token(context, request, error.code)
    return None


async def _renew(context: RequestContext, request: RenewDelegationTokenRequest) -> RenewDelegationTokenResponse:
    broker = context.broker
    period_ms = broker.config.delegation_token_expiry_time_ms
    if request.renew_period_ms > 0:
        period_ms = min(period_ms, request.renew_period_ms)
    try:
        token_id = broker.tokens.id_of(request.hmac)
        expires_at_ms = await broker.controller.change_token(RenewToken(token_id, str(context.principal), period_ms))
    except KafkaError as error:
        return fail_renew_delegation_token(context, request, error.code)
    return RenewDelegationTokenResponse(error_code=ErrorCode.NONE, expiry_timestamp_ms=expires_at_ms)


def fail_renew_delegation_token(
    context: RequestContext, request: RenewDelegationTokenRequest, error: ErrorCode
) -> RenewDelegationTokenResponse:
    return RenewDelegationTokenResponse(error_code=error, expiry_timestamp_ms=NEVER)


HANDLER = Handler(
    api_key=ApiKey.RENEW_DELEGATION_TOKEN,
    min_version=1,
    max_version=2,
    request=RenewDelegationTokenRequest,
    handle=handle_renew_delegation_token,
    fail=fail_renew_delegation_token,
    forwards=True,
    before_forwarding=refuse_renew_delegation_token,
    checks_access=True,
)
