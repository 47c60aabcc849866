"""Delegation tokens (KIP-48): what the cluster keeps of one, and the controller's commands about them.

A token's HMAC, which is its password, is never kept: it is made of the token's id and the secret key that all brokers
have (`server/delegation_tokens.py`). Principals are in text, `User:name`.
"""

from dataclasses import dataclass
from typing import NamedTuple


class DelegationToken(NamedTuple):
    token_id: str
    owner: str
    """Who is logged in with it."""
    requester: str
    """Who asked for it (KIP-373)."""
    renewers: tuple[str, ...]
    issued_at_ms: int
    expires_at_ms: int
    """Until somebody renews it."""
    max_at_ms: int
    """Nobody can renew it beyond."""

    def is_of(self, principal: str) -> bool:
        """Whether they may see it without any further right."""
        return principal in (self.owner, self.requester, *self.renewers)

    def may_be_changed_by(self, principal: str) -> bool:
        """Not by who asked for it for somebody else, as in Kafka."""
        return principal in (self.owner, *self.renewers)

    def has_expired(self, now_ms: int) -> bool:
        return self.expires_at_ms < now_ms or self.max_at_ms < now_ms


@dataclass(frozen=True, slots=True)
class CreateToken:
    """Reply: the token."""

    owner: str
    requester: str
    renewers: tuple[str, ...]
    max_lifetime_ms: int
    expiry_time_ms: int


@dataclass(frozen=True, slots=True)
class RenewToken:
    """Reply: when it expires now."""

    token_id: str
    principal: str
    period_ms: int


@dataclass(frozen=True, slots=True)
class ExpireToken:
    """A negative period ends it at once. Reply: when it expires now."""

    token_id: str
    principal: str
    period_ms: int


@dataclass(frozen=True, slots=True)
class RemoveExpiredTokens:
    """Reply: how many were removed."""
