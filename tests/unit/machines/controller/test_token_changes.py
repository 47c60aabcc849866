"""Delegation tokens: times and codes as Kafka's controller has them."""

from random import Random
from typing import Any

import pytest

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.delegation_tokens import CreateToken, DelegationToken, ExpireToken, RenewToken
from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.controller.records import TokenRemoved, TokenSet
from barnabas.machines.controller.token_changes import (
    LATEST_MS,
    MAX_PRINCIPALS_BYTES,
    MAX_REMOVED,
    decide_create_token,
    decide_expire_token,
    decide_remove_expired,
    decide_renew_token,
)

NOW = 1_000_000
ALICE, BOB, CAROL, DAVE = (f"User:{name}" for name in ("alice", "bob", "carol", "dave"))
TOKEN = DelegationToken("id", ALICE, DAVE, (BOB,), issued_at_ms=NOW, expires_at_ms=NOW + 1000, max_at_ms=NOW + 5000)
IMAGE = ClusterImage(tokens={"id": TOKEN})


def create(**changes: Any) -> DelegationToken:
    given = {
        "owner": ALICE,
        "requester": DAVE,
        "renewers": (BOB,),
        "max_lifetime_ms": 5000,
        "expiry_time_ms": 1000,
        **changes,
    }
    (record,), token = decide_create_token(IMAGE, CreateToken(**given), Random(1), NOW)
    assert record == TokenSet(token)
    return token


def code_of(decide: Any, *arguments: Any) -> ErrorCode:
    with pytest.raises(KafkaError) as refused:
        decide(*arguments)
    return refused.value.code


def test_a_new_token() -> None:
    token = create()
    assert token._replace(token_id="id") == TOKEN
    assert len(token.token_id) == 22 and not token.token_id.startswith("-")
    assert create(expiry_time_ms=9000).expires_at_ms == NOW + 5000
    longest = create(max_lifetime_ms=LATEST_MS, expiry_time_ms=LATEST_MS)
    assert (longest.expires_at_ms, longest.max_at_ms) == (LATEST_MS, LATEST_MS)


def test_an_id_is_never_used_twice() -> None:
    first = create()
    image = ClusterImage(tokens={first.token_id: first})
    _, second = decide_create_token(image, CreateToken(ALICE, ALICE, (), 1, 1), Random(1), NOW)
    assert second.token_id != first.token_id


def test_principals_have_a_limit() -> None:
    renewers = tuple(f"User:{number:0100}" for number in range(MAX_PRINCIPALS_BYTES // 100))
    command = CreateToken(ALICE, ALICE, renewers, 1, 1)
    assert code_of(decide_create_token, IMAGE, command, Random(1), NOW) is ErrorCode.POLICY_VIOLATION


@pytest.mark.parametrize("principal", [ALICE, BOB])
def test_owner_and_renewers_change_a_token(principal: str) -> None:
    (record,), expires = decide_renew_token(IMAGE, RenewToken("id", principal, 2000), NOW + 500)
    assert (record, expires) == (TokenSet(TOKEN._replace(expires_at_ms=NOW + 2500)), NOW + 2500)
    assert decide_renew_token(IMAGE, RenewToken("id", principal, 9000), NOW)[1] == TOKEN.max_at_ms
    assert decide_expire_token(IMAGE, ExpireToken("id", principal, 0), NOW)[1] == NOW
    assert decide_expire_token(IMAGE, ExpireToken("id", principal, 9000), NOW)[1] == TOKEN.max_at_ms
    assert decide_expire_token(IMAGE, ExpireToken("id", principal, -1), NOW) == ((TokenRemoved("id"),), NOW)


@pytest.mark.parametrize("principal", [CAROL, DAVE])
def test_others_do_not_not_even_who_asked_for_it(principal: str) -> None:
    mismatch = ErrorCode.DELEGATION_TOKEN_OWNER_MISMATCH
    assert code_of(decide_renew_token, IMAGE, RenewToken("id", principal, 1), NOW) is mismatch
    for period_ms in (-1, 1):
        assert code_of(decide_expire_token, IMAGE, ExpireToken("id", principal, period_ms), NOW) is mismatch
    # Kafka looks at the time first where a token is renewed, and at the principal first where it is expired.
    late = TOKEN.expires_at_ms + 1
    assert (
        code_of(decide_renew_token, IMAGE, RenewToken("id", principal, 1), late) is ErrorCode.DELEGATION_TOKEN_EXPIRED
    )
    assert code_of(decide_expire_token, IMAGE, ExpireToken("id", principal, 1), late) is mismatch


def test_a_token_that_is_not_there() -> None:
    assert (
        code_of(decide_renew_token, IMAGE, RenewToken("other", ALICE, 1), NOW) is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    )
    assert (
        code_of(decide_expire_token, IMAGE, ExpireToken("other", ALICE, -1), NOW)
        is ErrorCode.DELEGATION_TOKEN_NOT_FOUND
    )


def test_an_expired_token_can_only_be_removed() -> None:
    expired = ErrorCode.DELEGATION_TOKEN_EXPIRED
    last = TOKEN.expires_at_ms
    assert decide_renew_token(IMAGE, RenewToken("id", ALICE, 1), last)[1] == last + 1
    assert code_of(decide_renew_token, IMAGE, RenewToken("id", ALICE, 1), last + 1) is expired
    assert code_of(decide_expire_token, IMAGE, ExpireToken("id", ALICE, 1), last + 1) is expired
    assert decide_expire_token(IMAGE, ExpireToken("id", ALICE, -1), last + 1)[0] == (TokenRemoved("id"),)


def test_expired_tokens_are_removed_some_at_a_time() -> None:
    assert decide_remove_expired(IMAGE, TOKEN.expires_at_ms) == ((), 0)
    assert decide_remove_expired(IMAGE, TOKEN.expires_at_ms + 1) == ((TokenRemoved("id"),), 1)
    many = ClusterImage(tokens={str(each): TOKEN._replace(token_id=str(each)) for each in range(MAX_REMOVED + 1)})
    records, count = decide_remove_expired(many, TOKEN.max_at_ms + 1)
    assert (len(records), count) == (MAX_REMOVED, MAX_REMOVED)
