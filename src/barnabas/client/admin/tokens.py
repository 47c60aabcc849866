"""Delegation tokens: create, renew, expire, describe (KIP-48). Any broker serves them, to clients that have logged in
with something else than a token.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

from barnabas.client.admin.errors import check
from barnabas.client.admin.requests import AdminRequests, several
from barnabas.client.admin.types import DelegationToken
from barnabas.protocol.messages import create_delegation_token as create
from barnabas.protocol.messages import describe_delegation_token as describe
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest

BROKER_DEFAULT = -1
AT_ONCE = -1
FOR_ANOTHER_OWNER = 3
"""The first version that can name one (KIP-373)."""


class _Principal(NamedTuple):
    type: str
    name: str

    @classmethod
    def of(cls, text: str) -> "_Principal":
        """`alice` is `User:alice`."""
        kind, colon, name = text.partition(":")
        return cls(kind, name) if colon else cls("User", text)

    def __str__(self) -> str:
        return f"{self.type}:{self.name}"


@dataclass(frozen=True, slots=True)
class TokenAdmin:
    """Delegation tokens of the cluster."""

    requests: AdminRequests

    async def create_delegation_token(
        self,
        *,
        owner: str | None = None,
        renewers: Iterable[str] = (),
        max_lifetime_ms: int | None = None,
        timeout: float | None = None,
    ) -> DelegationToken:
        """A token for this client's user, or for another owner.

        It lives for `max_lifetime_ms` at most, but no longer than the brokers' `delegation.token.max.lifetime.ms`.
        """
        deadline = self.requests.deadline(timeout)
        of = None if owner is None else _Principal.of(owner)
        others = [_Principal.of(each) for each in several(renewers)]
        request = create.CreateDelegationTokenRequest(
            owner_principal_type=None if of is None else of.type,
            owner_principal_name=None if of is None else of.name,
            renewers=[create.CreatableRenewers(principal_type=each.type, principal_name=each.name) for each in others],
            max_lifetime_ms=BROKER_DEFAULT if max_lifetime_ms is None else max_lifetime_ms,
        )

        async def send_to(node_id: int) -> DelegationToken:
            oldest = 0 if of is None else FOR_ANOTHER_OWNER
            response = await self.requests.send(node_id, request, deadline, min_version=oldest)
            check(response.error_code)
            owner = _Principal(response.principal_type, response.principal_name)
            return DelegationToken(
                token_id=response.token_id,
                owner=str(owner),
                requester=_requester(response, owner),
                renewers=tuple(map(str, others)),
                issue_timestamp=response.issue_timestamp_ms,
                expiry_timestamp=response.expiry_timestamp_ms,
                max_timestamp=response.max_timestamp_ms,
                hmac=response.hmac,
            )

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def renew_delegation_token(
        self, hmac: bytes, *, period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """Let it live for so long from now, at most for `delegation.token.expiry.time.ms`. Returns its new expiry."""
        period_ms = BROKER_DEFAULT if period_ms is None else period_ms
        return await self._change(RenewDelegationTokenRequest(hmac=hmac, renew_period_ms=period_ms), timeout)

    async def expire_delegation_token(
        self, hmac: bytes, *, period_ms: int | None = None, timeout: float | None = None
    ) -> int:
        """End it at once, or so long from now. Returns its new expiry."""
        period_ms = AT_ONCE if period_ms is None else period_ms
        return await self._change(ExpireDelegationTokenRequest(hmac=hmac, expiry_time_period_ms=period_ms), timeout)

    async def describe_delegation_tokens(
        self, owners: Iterable[str] | None = None, *, timeout: float | None = None
    ) -> list[DelegationToken]:
        """The tokens that this client may see: all, or those that these own, requested or may renew."""
        deadline = self.requests.deadline(timeout)
        wanted = None if owners is None else [_Principal.of(each) for each in several(owners)]
        request = describe.DescribeDelegationTokenRequest(
            owners=None
            if wanted is None
            else [
                describe.DescribeDelegationTokenOwner(principal_type=each.type, principal_name=each.name)
                for each in wanted
            ]
        )

        async def send_to(node_id: int) -> list[DelegationToken]:
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code)
            return [_token(each) for each in response.tokens]

        return await self.requests.call(self.requests.any_node, send_to, deadline)

    async def _change(self, request: Any, timeout: float | None) -> int:
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int) -> int:
            response = await self.requests.send(node_id, request, deadline)
            check(response.error_code)
            return int(response.expiry_timestamp_ms)

        return await self.requests.call(self.requests.any_node, send_to, deadline)


def _token(described: describe.DescribedDelegationToken) -> DelegationToken:
    owner = _Principal(described.principal_type, described.principal_name)
    return DelegationToken(
        token_id=described.token_id,
        owner=str(owner),
        requester=_requester(described, owner),
        renewers=tuple(str(_Principal(each.principal_type, each.principal_name)) for each in described.renewers),
        issue_timestamp=described.issue_timestamp,
        expiry_timestamp=described.expiry_timestamp,
        max_timestamp=described.max_timestamp,
        hmac=described.hmac,
    )


def _requester(response: Any, owner: _Principal) -> str:
    """Before version 3 nobody could ask for somebody else."""
    name = response.token_requester_principal_name
    return str(_Principal(response.token_requester_principal_type, name) if name else owner)
