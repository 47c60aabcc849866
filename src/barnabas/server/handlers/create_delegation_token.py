"""CreateDelegationToken (key 38), v1-v3: a token that logs in as its owner, written by the controller (KIP-48).

v2 flexible; v3 a token for another owner, with the right CreateTokens on that user (KIP-373). Differs from Kafka 4.1:
an owner that is no User is refused like such a renewer, since a login with a token is always that of a User.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.delegation_tokens import CreateToken, DelegationToken
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.create_delegation_token import (
    CreateDelegationTokenRequest,
    CreateDelegationTokenResponse,
)
from barnabas.server.delegation_tokens import NEVER, USER, check_connection
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, Principal, RequestContext, Resource, SecuredType

FIRST_REQUESTER_VERSION = 3


def handle_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | Deferred[CreateDelegationTokenResponse]:
    return refuse_create_delegation_token(context, request) or context.run(_create(context, request))


def refuse_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest
) -> CreateDelegationTokenResponse | None:
    """What the broker refuses that received the request, whoever is controller."""
    owner = _owner(context, request)
    try:
        check_connection(context)
        if owner != context.principal and not context.may(
            Operation.CREATE_TOKENS, Resource(SecuredType.USER, str(owner))
        ):
            raise KafkaError(ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED)
        if owner.type != USER or any(each.principal_type != USER for each in request.renewers):
            raise KafkaError(ErrorCode.INVALID_PRINCIPAL_TYPE)
    except KafkaError as error:
        return fail_create_delegation_token(context, request, error.code)
    return None


async def _create(context: RequestContext, request: CreateDelegationTokenRequest) -> CreateDelegationTokenResponse:
    broker = context.broker
    max_lifetime_ms = broker.config.delegation_token_max_lifetime_ms
    if request.max_lifetime_ms > 0:
        max_lifetime_ms = min(max_lifetime_ms, request.max_lifetime_ms)
    try:
        broker.tokens.check_enabled()
        token = await broker.controller.create_token(
            CreateToken(
                owner=str(_owner(context, request)),
                requester=str(context.principal),
                renewers=tuple(
                    dict.fromkeys(str(Principal(each.principal_type, each.principal_name)) for each in request.renewers)
                ),
                max_lifetime_ms=max_lifetime_ms,
                expiry_time_ms=broker.config.delegation_token_expiry_time_ms,
            )
        )
    except KafkaError as error:
        return fail_create_delegation_token(context, request, error.code)
    return _created(context, request, token)


def _created(
    context: RequestContext, request: CreateDelegationTokenRequest, token: DelegationToken
) -> CreateDelegationTokenResponse:
    response = fail_create_delegation_token(context, request, ErrorCode.NONE)
    response.issue_timestamp_ms = token.issued_at_ms
    response.expiry_timestamp_ms = token.expires_at_ms
    response.max_timestamp_ms = token.max_at_ms
    response.token_id = token.token_id
    response.hmac = context.broker.tokens.hmac_of(token.token_id)
    return response


def _owner(context: RequestContext, request: CreateDelegationTokenRequest) -> Principal:
    if not request.owner_principal_name:
        return context.principal
    return Principal(request.owner_principal_type or "", request.owner_principal_name)


def fail_create_delegation_token(
    context: RequestContext, request: CreateDelegationTokenRequest, error: ErrorCode
) -> CreateDelegationTokenResponse:
    owner = _owner(context, request)
    response = CreateDelegationTokenResponse(
        error_code=error,
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp_ms=NEVER,
        expiry_timestamp_ms=NEVER,
        max_timestamp_ms=NEVER,
    )
    if context.version >= FIRST_REQUESTER_VERSION:
        response.token_requester_principal_type = context.principal.type
        response.token_requester_principal_name = context.principal.name
    return response


HANDLER = Handler(
    api_key=ApiKey.CREATE_DELEGATION_TOKEN,
    min_version=1,
    max_version=3,
    request=CreateDelegationTokenRequest,
    handle=handle_create_delegation_token,
    fail=fail_create_delegation_token,
    forwards=True,
    before_forwarding=refuse_create_delegation_token,
    checks_access=True,
)
