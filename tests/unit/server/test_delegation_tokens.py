"""Logins with delegation tokens: who is logged in, for how long, and what no longer works once a token has ended."""

from __future__ import annotations

import asyncio
import base64
import threading
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from eventually import eventually
from sasl_peer import Peer

from barnabas import Admin
from barnabas.client.admin.types import DelegationToken
from barnabas.clock import ManualClock
from barnabas.config.broker import no_effect
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller import delegation_tokens as values
from barnabas.machines.sasl.scram import ScramClient
from barnabas.machines.sasl.scram_server import ScramServer
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.server import delegation_tokens
from barnabas.server.delegation_tokens import DelegationTokens
from barnabas.server.request import Principal
from barnabas.server.sasl_gate import SessionGuard
from barnabas.testing import Broker

HOUR = 3_600_000
USERS = {"alice": "secret-7001", "bob": "secret-7002"}
SETTINGS = {
    "delegation.token.secret.key": "key-7003",
    "delegation.token.expiry.time.ms": HOUR,
    "connection.failed.authentication.delay.ms": 10,
    "listener.name.sasl_plaintext.scram-sha-512.connections.max.reauth.ms": 60_000,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS) as started:
        yield started


@pytest.fixture
def alice(broker: Broker) -> Iterator[Admin]:
    with Admin(broker.bootstrap, **broker.client_options("alice")) as admin:  # type: ignore[arg-type]
        yield admin


def with_session(broker: Broker, peer: Peer, work: Callable[[Any], Any]) -> Any:
    """On the broker's loop, with that connection of its."""
    thread = broker._thread
    assert thread is not None

    def run() -> Any:
        (found,) = [each for each in thread.broker.connections if each.peer_port == peer.local_port]
        return work(found)

    return thread.call(run)


def log_in(peer: Peer, token: DelegationToken, **about: Any) -> Any:
    return peer.log_in_by_scram(token.token_id, token.password, is_token=True, **about)


def test_the_owner_is_logged_in_until_the_token_expires(broker: Broker, alice: Admin) -> None:
    token = alice.create_delegation_token()
    with Peer(broker.bootstrap) as peer:
        response = log_in(peer, token)
        assert response.error_code == ErrorCode.NONE
        left_ms = token.expiry_timestamp - int(time.time() * 1000)
        assert left_ms <= response.session_lifetime_ms <= HOUR
        session = with_session(broker, peer, lambda connection: connection.session)
        assert (session.principal, session.is_token) == (Principal("User", "alice"), True)
        with_session(broker, peer, lambda connection: setattr(connection.handler, "_expires_at_ms", 0))
        assert peer.metadata() == b""


def test_the_shorter_of_token_and_setting_bounds_the_session(broker: Broker, alice: Admin) -> None:
    long, short = alice.create_delegation_token(), alice.create_delegation_token(max_lifetime_ms=30_000)
    for token, bound in ((long, 60_000), (short, 30_000)):
        with Peer(broker.bootstrap) as peer:
            response = log_in(peer, token, mechanism="SCRAM-SHA-512")
            assert response.error_code == ErrorCode.NONE
            assert 0 < response.session_lifetime_ms <= bound


def test_a_session_outlives_its_token_but_is_not_renewed(broker: Broker, alice: Admin) -> None:
    token = alice.create_delegation_token()
    with Peer(broker.bootstrap) as peer:
        log_in(peer, token)
        alice.expire_delegation_token(token.hmac)
        assert peer.metadata()
        assert isinstance(with_session(broker, peer, lambda connection: connection.handler), SessionGuard)
        assert log_in(peer, token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert peer.is_closed()


def test_a_session_is_renewed_with_another_token_of_the_same_owner_only(broker: Broker, alice: Admin) -> None:
    first, second = alice.create_delegation_token(), alice.create_delegation_token()
    with Admin(broker.bootstrap, **broker.client_options("bob")) as admin:  # type: ignore[arg-type]
        of_bob = admin.create_delegation_token()
    with Peer(broker.bootstrap) as peer:
        log_in(peer, first)
        assert log_in(peer, second).error_code == ErrorCode.NONE
        with_session(broker, peer, lambda connection: setattr(connection.handler, "_begun_ms", None))
        refused = log_in(peer, of_bob)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "Cannot change principals" in refused.error_message


@pytest.mark.parametrize("kind", ["wrong", "unknown", "ended", "expired", "a user's name", "without tokenauth"])
def test_every_login_that_fails_looks_the_same(broker: Broker, alice: Admin, kind: str) -> None:
    token = alice.create_delegation_token()
    name, password, is_token = token.token_id, token.password, True
    if kind == "wrong":
        password = base64.b64encode(bytes(64)).decode()
    elif kind == "unknown":
        name = "A" * 22
    elif kind == "ended":
        alice.expire_delegation_token(token.hmac)
    elif kind == "expired":
        alice.expire_delegation_token(token.hmac, period_ms=0)
        eventually(lambda: _has_expired(alice, token))
    elif kind == "a user's name":
        name, password = "alice", USERS["alice"]
    else:
        is_token = False
    with Peer(broker.bootstrap) as peer:
        refused = peer.log_in_by_scram(name, password, is_token=is_token)
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert refused.error_message == (
            "Authentication failed during authentication due to invalid credentials with SASL mechanism SCRAM-SHA-256"
        )
        assert peer.is_closed()


def _has_expired(admin: Admin, token: DelegationToken) -> bool:
    try:
        admin.expire_delegation_token(token.hmac, period_ms=0)
    except KafkaError as error:
        return error.code is ErrorCode.DELEGATION_TOKEN_EXPIRED
    return False


def test_a_token_outlives_its_broker_but_not_another_key() -> None:
    broker = Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS)
    with broker, Admin(broker.bootstrap, **broker.client_options("alice")) as admin:  # type: ignore[arg-type]
        token = admin.create_delegation_token()
    with broker, Peer(broker.bootstrap) as peer:
        assert log_in(peer, token).error_code == ErrorCode.NONE
    broker._settings["delegation.token.secret.key"] = "another"
    with broker, Peer(broker.bootstrap) as peer:
        assert log_in(peer, token).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED


def test_the_settings_have_an_effect() -> None:
    names = ("secret.key", "expiry.time.ms", "max.lifetime.ms", "expiry.check.interval.ms")
    assert not no_effect({f"delegation.token.{name}": "1" for name in names})


TOKEN = values.DelegationToken("id", "User:alice", "User:alice", (), 0, 10**15, 10**15)


class Known:
    """The tokens of a broker without the broker: what is in the image is put there by the test."""

    def __init__(self, clock: ManualClock) -> None:
        self.image = ClusterImage()
        self.tokens = DelegationTokens("key", lambda: self.image, clock)

    def put(self, *tokens: values.DelegationToken) -> None:
        image = ClusterImage(tokens={each.token_id: each for each in tokens})
        delta = Delta.between(self.image, image)
        self.image = image
        self.tokens.on_delta(delta)

    def client(self) -> ScramClient:
        password = base64.b64encode(self.tokens.hmac_of("id")).decode()
        return ScramClient("SCRAM-SHA-256", "id", password, "nonce", is_token=True)

    def may_log_in(self) -> bool:
        client = self.client()
        server = ScramServer(
            "SCRAM-SHA-256",
            lambda _: None,
            lambda token_id: self.tokens.login("SCRAM-SHA-256", token_id),
            "more",
            b"fake",
        )
        proof = client.respond(server.respond(client.begin()))
        try:
            server.respond(proof or b"")
        except Exception:
            return False
        return server.is_done


def test_a_credential_is_computed_once_in_a_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    computed: list[threading.Thread] = []
    original = delegation_tokens.salted_password

    def counting(*arguments: Any) -> bytes:
        computed.append(threading.current_thread())
        return original(*arguments)

    monkeypatch.setattr(delegation_tokens, "salted_password", counting)

    async def main() -> None:
        clock = ManualClock()
        known = Known(clock)
        message = known.client().begin()
        assert known.tokens.prepare_login("SCRAM-SHA-256", message) is None  # there is no such token
        known.put(TOKEN)
        waits = [known.tokens.prepare_login("SCRAM-SHA-256", message) for _ in range(3)]
        for wait in waits:
            assert wait is not None
            await wait
        assert len(computed) == 1 and computed[0] is not threading.main_thread()
        assert known.tokens.prepare_login("SCRAM-SHA-256", message) is None and known.may_log_in()
        known.put(TOKEN._replace(expires_at_ms=clock.now_ms() + 5))  # renewed: the same credential
        assert known.may_log_in()
        clock.advance(6)
        assert not known.may_log_in()
        assert known.tokens.prepare_login("SCRAM-SHA-256", message) is None
        # While one is computed, the token goes: nothing is remembered of it.
        known.put(TOKEN._replace(token_id="other"))
        client = ScramClient("SCRAM-SHA-512", "other", "", "nonce", is_token=True)
        wait = known.tokens.prepare_login("SCRAM-SHA-512", client.begin())
        known.put()
        assert wait is not None
        await wait
        assert not known.tokens._credentials and not known.tokens._ids and not known.tokens._computing

    asyncio.run(main())


def test_nothing_secret_is_shown() -> None:
    known = Known(ManualClock())
    known.put(TOKEN)
    assert "key" not in repr(known.tokens)
    token = DelegationToken(
        token_id="id",
        owner="User:a",
        requester="User:a",
        renewers=(),
        issue_timestamp=0,
        expiry_timestamp=0,
        max_timestamp=0,
        hmac=b"hunter2",
    )
    assert "hunter2" not in repr(token) and token.password not in repr(token)
