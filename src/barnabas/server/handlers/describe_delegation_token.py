"""DescribeDelegationToken (key 41), v1-v3: the tokens that somebody may see, with their HMACs (KIP-48).

v2 flexible; v3 who requested a token (KIP-373). Everybody sees the tokens that they own, asked for or may renew; others
with Describe on the token or DescribeTokens on its owner. Without owners (null) all of those; an empty list finds none.
Responded to from this broker's image.
"""

from collections.abc import Generator

from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import DelegationToken
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.describe_delegation_token import (
    DescribedDelegationToken,
    DescribedDelegationTokenRenewer,
    DescribeDelegationTokenRequest,
    DescribeDelegationTokenResponse,
)
from barnabas.server.delegation_tokens import check_connection, split_principal
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, Principal, RequestContext, Resource, SecuredType

FIRST_REQUESTER_VERSION = 3
BYTES_PER_TOKEN = 200


def handle_describe_delegation_token(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> DescribeDelegationTokenResponse | Deferred[DescribeDelegationTokenResponse]:
    try:
        check_connection(context)
        context.broker.tokens.check_enabled()
    except KafkaError as error:
        return fail_describe_delegation_token(context, request, error.code)
    return context.in_slices(_describe(context, request))


def _describe(
    context: RequestContext, request: DescribeDelegationTokenRequest
) -> Generator[None, None, DescribeDelegationTokenResponse]:
    owners = None
    if request.owners is not None:
        owners = {str(Principal(each.principal_type, each.principal_name)) for each in request.owners}
    found: list[DescribedDelegationToken] = []
    tokens = context.broker.cluster.image.tokens if owners is None or owners else {}
    for token in tokens.values():
        if (owners is None or any(token.is_of(each) for each in owners)) and _may_see(context, token):
            context.count_response(BYTES_PER_TOKEN + sum(map(len, token.renewers)))
            found.append(_described(context, token))
        yield
    return DescribeDelegationTokenResponse(error_code=ErrorCode.NONE, tokens=found)


def _may_see(context: RequestContext, token: DelegationToken) -> bool:
    return (
        token.is_of(str(context.principal))
        or context.may(Operation.DESCRIBE, Resource(SecuredType.DELEGATION_TOKEN, token.token_id), log_denied=False)
        or context.may(Operation.DESCRIBE_TOKENS, Resource(SecuredType.USER, token.owner), log_denied=False)
    )


def _described(context: RequestContext, token: DelegationToken) -> DescribedDelegationToken:
    owner = split_principal(token.owner)
    described = DescribedDelegationToken(
        principal_type=owner.type,
        principal_name=owner.name,
        issue_timestamp=token.issued_at_ms,
        expiry_timestamp=token.expires_at_ms,
        max_timestamp=token.max_at_ms,
        token_id=token.token_id,
        hmac=context.broker.tokens.hmac_of(token.token_id),
        renewers=[
            DescribedDelegationTokenRenewer(principal_type=each.type, principal_name=each.name)
            for each in map(split_principal, token.renewers)
        ],
    )
    if context.version >= FIRST_REQUESTER_VERSION:
        requester = split_principal(token.requester)
        described.token_requester_principal_type = requester.type
        described.token_requester_principal_name = requester.name
    return described


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
    checks_access=True,
)
