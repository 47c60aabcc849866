"""Delegation tokens as admin clients see them (KIP-48)."""

import base64
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class DelegationToken:
    """A token that logs in as its owner. Principals are in text, times in milliseconds since 1970."""

    token_id: str
    """The user name of a login with it."""
    owner: str
    requester: str
    renewers: tuple[str, ...]
    issue_timestamp: int
    expiry_timestamp: int
    max_timestamp: int
    hmac: bytes = field(repr=False)
    """Keep it as secret as a password."""

    @property
    def password(self) -> str:
        """The password of a login with it."""
        return base64.b64encode(self.hmac).decode()
