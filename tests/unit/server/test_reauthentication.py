"""Sessions that end (KIP-368): the lifetime that clients are told, logging in again, what an ended session may do."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sasl_peer import Peer

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.options.admin import AdminOptions
from barnabas.config.broker import no_effect
from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.sasl_gate import SessionGuard
from barnabas.testing import Broker

SESSION_MS = 3_600_000
USERS = {"alice": "secret-4411", "bob": "secret-4412"}
SETTINGS = {
    "connections.max.reauth.ms": SESSION_MS,
    "listener.name.sasl_plaintext.scram-sha-256.connections.max.reauth.ms": 0,
    "connection.failed.authentication.delay.ms": 10,
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS) as started:
        yield started


def with_guard(broker: Broker, peer: Peer, work: Callable[[SessionGuard], Any]) -> Any:
    """On the broker's loop, with what stands in front of that connection."""
    thread = broker._thread
    assert thread is not None

    def run() -> Any:
        (found,) = [each for each in thread.broker.connections if each.peer_port == peer.local_port]
        assert isinstance(found.handler, SessionGuard)
        return work(found.handler)

    return thread.call(run)


def end_session(guard: SessionGuard) -> None:
    guard._expires_at_ms = 0


def test_a_session_has_a_lifetime_and_is_renewed_on_the_same_connection(broker: Broker) -> None:
    with Peer(broker.bootstrap) as peer:
        assert peer.log_in("alice", USERS["alice"]).session_lifetime_ms == SESSION_MS
        assert peer.metadata()
        first = with_guard(broker, peer, lambda guard: guard._session)
        assert first.expires_at_ms is not None
        assert peer.log_in("alice", USERS["alice"]).session_lifetime_ms == SESSION_MS
        assert peer.metadata()
        assert with_guard(broker, peer, lambda guard: guard._session) is not first


def test_after_its_end_a_session_may_only_log_in_again(broker: Broker) -> None:
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        with_guard(broker, peer, end_session)
        assert peer.log_in("alice", USERS["alice"]).error_code == ErrorCode.NONE
        assert peer.metadata()
        with_guard(broker, peer, end_session)
        assert peer.metadata() == b""


def test_the_user_and_the_mechanism_cannot_change(broker: Broker) -> None:
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        refused = peer.log_in("bob", USERS["bob"])
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert refused.error_message == "Cannot change principals during re-authentication from User.alice: User.bob"
        assert peer.is_closed()
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        refused = peer.log_in("alice", USERS["alice"], "SCRAM-SHA-512")
        assert refused.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert "not supported for re-authentication" in (refused.error_message or "")
        assert peer.is_closed()


def test_a_wrong_password_ends_the_connection_then_too(broker: Broker) -> None:
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        assert peer.log_in("alice", "wrong").error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert peer.is_closed()


def test_other_requests_in_the_middle_close_the_connection(broker: Broker) -> None:
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        peer.send(ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        assert peer.metadata() == b""


def test_logging_in_again_all_the_time_is_refused(broker: Broker) -> None:
    """The third exchange would begin within a second of the second: it is a request like others, and refused."""
    with Peer(broker.bootstrap) as peer:
        peer.log_in("alice", USERS["alice"])
        peer.log_in("alice", USERS["alice"])
        # However slow this machine is: it began just now.
        with_guard(broker, peer, lambda guard: setattr(guard, "_begun_ms", guard._clock.monotonic_ms() + 3_600_000))
        asked = peer.send(ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism="PLAIN"), 1))
        assert decode(SaslHandshakeResponse, 1, asked)[0].error_code == ErrorCode.ILLEGAL_SASL_STATE


@pytest.mark.parametrize(("mechanism", "renews"), [("PLAIN", True), ("SCRAM-SHA-512", True), ("SCRAM-SHA-256", False)])
def test_our_clients_renew_their_session_in_time(broker: Broker, mechanism: str, renews: bool) -> None:
    async def use() -> None:
        options = broker.client_options("alice", mechanism=mechanism)
        cluster = ClusterClient(AdminOptions.of(broker.bootstrap, **options))
        try:
            node_id = await cluster.any_node()
            before = [connection for _, connection in cluster._connections.connected()]
            assert (before[0].reauthenticate_at is not None) == renews
            if renews:
                before[0].reauthenticate_at = 0.0
                assert (await cluster.send(node_id, ListGroupsRequest())).error_code == ErrorCode.NONE
                assert before[0].reauthenticate_at > asyncio.get_running_loop().time()
            assert [connection for _, connection in cluster._connections.connected()] == before
        finally:
            await cluster.close()

    asyncio.run(use())


def test_the_setting_has_an_effect_for_listeners_and_their_mechanisms() -> None:
    assert not no_effect({name: str(value) for name, value in SETTINGS.items()})
