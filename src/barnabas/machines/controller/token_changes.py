"""Changes of delegation tokens: functions over an image and the time. Codes and their order are Kafka's.

What the settings allow at most is in the command, worked out by the handler.
"""

from typing import Final

from barnabas.clock import Random
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.delegation_tokens import CreateToken, DelegationToken, ExpireToken, RenewToken
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.controller.records import TokenRemoved, TokenSet
from barnabas.machines.controller.topics import new_uuid
from barnabas.types import topic_id_text

LATEST_MS: Final = 2**63 - 1
MAX_PRINCIPALS_BYTES: Final = 64 * 1024
"""What owner, requester and renewers of a token may take in the store."""
MAX_REMOVED: Final = 1000
"""At once, as in Kafka; the rest is removed the next time."""


def decide_create_token(
    image: ClusterImage, command: CreateToken, random: Random, now_ms: int
) -> tuple[tuple[TokenSet, ...], DelegationToken]:
    principals = (command.owner, command.requester, *command.renewers)
    if sum(len(each.encode()) for each in principals) > MAX_PRINCIPALS_BYTES:
        raise KafkaError(
            ErrorCode.POLICY_VIOLATION, f"The principals of a token may take at most {MAX_PRINCIPALS_BYTES} bytes."
        )
    max_at_ms = _after(now_ms, command.max_lifetime_ms)
    token = DelegationToken(
        token_id=_new_id(image, random),
        owner=command.owner,
        requester=command.requester,
        renewers=command.renewers,
        issued_at_ms=now_ms,
        expires_at_ms=min(max_at_ms, _after(now_ms, command.expiry_time_ms)),
        max_at_ms=max_at_ms,
    )
    return (TokenSet(token),), token


def decide_renew_token(image: ClusterImage, command: RenewToken, now_ms: int) -> tuple[tuple[TokenSet, ...], int]:
    token = _find(image, command.token_id)
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    _check_access(token, command.principal)
    return _expiring(token, now_ms, command.period_ms)


def decide_expire_token(
    image: ClusterImage, command: ExpireToken, now_ms: int
) -> tuple[tuple[TokenSet | TokenRemoved, ...], int]:
    token = _find(image, command.token_id)
    _check_access(token, command.principal)
    if command.period_ms < 0:
        return (TokenRemoved(token.token_id),), now_ms
    if token.has_expired(now_ms):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_EXPIRED)
    return _expiring(token, now_ms, command.period_ms)


def decide_remove_expired(image: ClusterImage, now_ms: int) -> tuple[tuple[TokenRemoved, ...], int]:
    expired = [each.token_id for each in image.tokens.values() if each.has_expired(now_ms)][:MAX_REMOVED]
    return tuple(map(TokenRemoved, expired)), len(expired)


def _new_id(image: ClusterImage, random: Random) -> str:
    while (token_id := topic_id_text(new_uuid(random))) in image.tokens:
        pass
    return token_id


def _find(image: ClusterImage, token_id: str) -> DelegationToken:
    token = image.tokens.get(token_id)
    if token is None:
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
    return token


def _check_access(token: DelegationToken, principal: str) -> None:
    if not token.may_be_changed_by(principal):
        raise KafkaError(ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH)


def _expiring(token: DelegationToken, now_ms: int, period_ms: int) -> tuple[tuple[TokenSet, ...], int]:
    expires_at_ms = min(token.max_at_ms, _after(now_ms, period_ms))
    return (TokenSet(token._replace(expires_at_ms=expires_at_ms)),), expires_at_ms


def _after(now_ms: int, period_ms: int) -> int:
    return min(now_ms + period_ms, LATEST_MS)
