"""The four requests about delegation tokens: who may ask, which code each refusal has, in every version."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.machines.controller.acls import (
    Acl,
    AclEntry,
    Operation,
    PatternType,
    Permission,
    ResourcePattern,
    SecuredType,
)
from barnabas.protocol.messages.create_delegation_token import CreatableRenewers, CreateDelegationTokenRequest
from barnabas.protocol.messages.describe_delegation_token import (
    DescribeDelegationTokenOwner,
    DescribeDelegationTokenRequest,
)
from barnabas.protocol.messages.expire_delegation_token import ExpireDelegationTokenRequest
from barnabas.protocol.messages.renew_delegation_token import RenewDelegationTokenRequest
from barnabas.server.request import ANONYMOUS, Principal, RequestContext
from barnabas.server.sessions import ANONYMOUS_SESSION, Session

CREATE, DESCRIBE = CreateDelegationTokenRequest, DescribeDelegationTokenRequest
RENEW, EXPIRE = RenewDelegationTokenRequest, ExpireDelegationTokenRequest
KEY = {"delegation_token_secret_key": "a-key-4711"}
EXPIRY_MS, LONGEST_MS = 1_000_000, 5_000_000
LIMITS = {
    "delegation_token_expiry_time_ms": str(EXPIRY_MS),
    "delegation_token_max_lifetime_ms": str(LONGEST_MS),
}
AUTHORIZER = {
    "authorizer_class_name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super_users": "User:root;User:ANONYMOUS",
}
NOT_ALLOWED, DISABLED = ErrorCode.DELEGATION_TOKEN_REQUEST_NOT_ALLOWED, ErrorCode.DELEGATION_TOKEN_AUTH_DISABLED


def logged_in(name: str, **about: Any) -> Session:
    return Session(principal=Principal("User", name), mechanism="SCRAM-SHA-256", **about)


class TokenCalls(HandlerCalls):
    """Requests of somebody who has logged in."""

    session: Session | None = logged_in("alice")

    def context(self, *arguments: Any) -> RequestContext:
        context = super().context(*arguments)
        context.connection.session = self.session
        return context

    async def of(self, name: str, request: Any, version: int | None = None) -> Any:
        self.session = logged_in(name)
        return await self.call(request, version)

    async def allow(self, name: str, operation: Operation, kind: SecuredType, resource: str) -> None:
        entry = AclEntry(f"User:{name}", "*", operation, Permission.ALLOW)
        pattern = ResourcePattern(kind, resource, PatternType.LITERAL)
        (result,) = await self.broker.controller.create_acls([Acl(pattern, entry)])
        assert not result.error


def run(directory: Path, work: Callable[[TokenCalls], Awaitable[None]], **settings: str) -> None:
    async def main() -> None:
        async with TokenCalls(directory, **settings) as calls:
            await work(calls)

    asyncio.run(main())


def renewers(*names: str, kind: str = "User") -> list[CreatableRenewers]:
    return [CreatableRenewers(principal_type=kind, principal_name=name) for name in names]


def owned_by(name: str, kind: str = "User") -> CreateDelegationTokenRequest:
    return CREATE(owner_principal_type=kind, owner_principal_name=name, max_lifetime_ms=-1)


@pytest.mark.parametrize(
    ("session", "error"),
    [
        (None, NOT_ALLOWED),
        (ANONYMOUS_SESSION, NOT_ALLOWED),
        (logged_in("alice", is_token=True), NOT_ALLOWED),
        (Session(principal=Principal("User", "CN=a")), ErrorCode.NONE),  # by a certificate
        (Session(principal=ANONYMOUS, mechanism="PLAIN"), ErrorCode.NONE),
        (logged_in("alice"), ErrorCode.NONE),
    ],
)
def test_only_who_has_logged_in_may_ask_and_not_with_a_token(
    tmp_path: Path, session: Session | None, error: ErrorCode
) -> None:
    async def work(calls: TokenCalls) -> None:
        calls.session = session
        for request in (CREATE(max_lifetime_ms=-1), DESCRIBE(owners=None)):
            for version in calls.versions(type(request)):
                assert (await calls.call(request, version)).error_code == error
        for request in (RENEW(hmac=b"x"), EXPIRE(hmac=b"x")):
            for version in calls.versions(type(request)):
                response = await calls.call(request, version)
                assert response.error_code == (error or ErrorCode.DELEGATION_TOKEN_NOT_FOUND)
                assert response.expiry_timestamp_ms == -1

    run(tmp_path, work, **KEY)


def test_without_a_secret_key_there_are_none(tmp_path: Path) -> None:
    async def work(calls: TokenCalls) -> None:
        for request in (CREATE(max_lifetime_ms=-1), DESCRIBE(owners=None), RENEW(hmac=b"x"), EXPIRE(hmac=b"x")):
            for version in calls.versions(type(request)):
                assert (await calls.call(request, version)).error_code == DISABLED
        created = await calls.call(CREATE(max_lifetime_ms=-1))
        assert (created.token_id, created.hmac, created.max_timestamp_ms) == ("", b"", -1)

    run(tmp_path, work)


def test_the_life_of_a_token(tmp_path: Path) -> None:
    async def work(calls: TokenCalls) -> None:
        created = await calls.call(CREATE(renewers=renewers("bob", "bob"), max_lifetime_ms=-1))
        start = created.issue_timestamp_ms
        assert (created.error_code, created.expiry_timestamp_ms, created.max_timestamp_ms) == (
            ErrorCode.NONE,
            start + EXPIRY_MS,
            start + LONGEST_MS,
        )
        assert (created.principal_name, created.token_requester_principal_name) == ("alice", "alice")
        for version in calls.versions(DESCRIBE):
            (token,) = (await calls.of("alice", DESCRIBE(owners=None), version)).tokens
            assert (token.token_id, token.hmac) == (created.token_id, created.hmac)
            assert [each.principal_name for each in token.renewers] == ["bob"]
        renewed = await calls.of("bob", RENEW(hmac=created.hmac, renew_period_ms=10**15))
        assert start + EXPIRY_MS <= renewed.expiry_timestamp_ms <= time.time() * 1000 + EXPIRY_MS
        assert (await calls.of("alice", RENEW(hmac=created.hmac, renew_period_ms=-1))).error_code == ErrorCode.NONE
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert (await calls.of("carol", RENEW(hmac=created.hmac, renew_period_ms=1))).error_code == mismatch
        assert (await calls.of("carol", EXPIRE(hmac=created.hmac, expiry_time_period_ms=-1))).error_code == mismatch
        wrong = bytes(64)
        missing = ErrorCode.DELEGATION_TOKEN_NOT_FOUND
        assert (await calls.of("alice", EXPIRE(hmac=wrong, expiry_time_period_ms=-1))).error_code == missing
        ended = await calls.of("bob", EXPIRE(hmac=created.hmac, expiry_time_period_ms=-1))
        assert ended.error_code == ErrorCode.NONE and ended.expiry_timestamp_ms >= start
        assert (await calls.of("bob", RENEW(hmac=created.hmac, renew_period_ms=1))).error_code == missing
        assert (await calls.of("alice", DESCRIBE(owners=None))).tokens == []

    run(tmp_path, work, **KEY, **LIMITS)


def test_a_shorter_life_may_be_asked_for(tmp_path: Path) -> None:
    async def work(calls: TokenCalls) -> None:
        for wanted, given in ((300, 300), (2 * LONGEST_MS, LONGEST_MS), (0, LONGEST_MS)):
            created = await calls.call(CREATE(max_lifetime_ms=wanted))
            assert created.max_timestamp_ms - created.issue_timestamp_ms == given
            assert created.expiry_timestamp_ms - created.issue_timestamp_ms == min(given, EXPIRY_MS)

    run(tmp_path, work, **KEY, **LIMITS)


@pytest.mark.parametrize(
    "request_",
    [CREATE(renewers=renewers("admins", kind="Group"), max_lifetime_ms=-1), owned_by("admins", kind="Group")],
    ids=["renewer", "owner"],
)
def test_principals_are_users(tmp_path: Path, request_: Any) -> None:
    async def work(calls: TokenCalls) -> None:
        assert (await calls.call(request_)).error_code == ErrorCode.INVALID_PRINCIPAL_TYPE

    run(tmp_path, work, **KEY)


def test_a_token_for_somebody_else_needs_a_right(tmp_path: Path) -> None:
    async def work(calls: TokenCalls) -> None:
        refused = await calls.of("alice", owned_by("bob"))
        assert refused.error_code == ErrorCode.DELEGATION_TOKEN_AUTHORIZATION_FAILED
        assert (await calls.of("alice", owned_by("alice"))).error_code == ErrorCode.NONE
        await calls.allow("alice", Operation.CREATE_TOKENS, SecuredType.USER, "User:bob")
        created = await calls.of("alice", owned_by("bob"))
        assert (created.error_code, created.principal_name, created.token_requester_principal_name) == (
            ErrorCode.NONE,
            "bob",
            "alice",
        )
        # Who has asked for it may see it, but only its owner may change it.
        (seen,) = [
            each for each in (await calls.of("alice", DESCRIBE(owners=None))).tokens if each.hmac == created.hmac
        ]
        assert (seen.principal_name, seen.token_requester_principal_name) == ("bob", "alice")
        mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
        assert (await calls.of("alice", EXPIRE(hmac=created.hmac, expiry_time_period_ms=-1))).error_code == mismatch

    run(tmp_path, work, **KEY, **AUTHORIZER)


def test_who_sees_which_tokens(tmp_path: Path) -> None:
    async def work(calls: TokenCalls) -> None:
        ids = {name: (await calls.of(name, CREATE(max_lifetime_ms=-1))).token_id for name in ("alice", "bob")}

        async def seen(name: str, *owners: str) -> set[str]:
            wanted = [DescribeDelegationTokenOwner(principal_type="User", principal_name=each) for each in owners]
            response = await calls.of(name, DESCRIBE(owners=wanted or None))
            assert response.error_code == ErrorCode.NONE
            return {each.token_id for each in response.tokens}

        assert await seen("alice") == {ids["alice"]}
        assert await seen("alice", "bob") == await seen("carol") == set()
        assert await seen("root") == await seen("root", "bob", "alice") == set(ids.values())
        assert await seen("root", "bob") == {ids["bob"]}
        assert (await calls.of("alice", DESCRIBE(owners=[]))).tokens == []
        await calls.allow("carol", Operation.DESCRIBE, SecuredType.DELEGATION_TOKEN, ids["alice"])
        assert await seen("carol") == {ids["alice"]}
        await calls.allow("carol", Operation.DESCRIBE_TOKENS, SecuredType.USER, "User:bob")
        assert await seen("carol") == set(ids.values())

    run(tmp_path, work, **KEY, **AUTHORIZER)
