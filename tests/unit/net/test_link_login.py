"""A link that logs in: before its first request, and again before its session ends, in virtual time."""

import asyncio
import random
import ssl
from collections.abc import Awaitable, Callable

import pytest
from net_harness import Answer, Handler
from simulation.world import World

from barnabas.errors import ErrorCode
from barnabas.machines.sasl.login import RENEWED_SHARE
from barnabas.machines.sasl.mechanism import ClientMechanism
from barnabas.machines.sasl.plain import PlainClient, read_plain
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.link import SECURE_TIMEOUT_MS, Link, LinkError
from barnabas.net.reply import Parts
from barnabas.net.server import Server
from barnabas.net.settings import Listener
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersionsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeResponse

LIFETIME_MS = 10_000
SECRET = "s3cret"


class Security:
    """What the broker gives its links."""

    def __init__(self, password: str = SECRET) -> None:
        self.password = password
        self.connected = 0
        self.denied: list[str] = []

    def tls_context(self) -> ssl.SSLContext | None:
        return None

    async def mechanism(self) -> ClientMechanism | None:
        return PlainClient("broker", self.password)

    def on_connected(self, address: str) -> None:
        self.connected += 1

    def on_denied(self, address: str, why: str) -> None:
        self.denied.append(why)


class Peer:
    """A broker that notes the order of requests; `held` makes heartbeats wait."""

    def __init__(self) -> None:
        self.seen: list[str] = []
        self.connections: set[Connection] = set()
        self.holds = False
        self.silent_at_login = False
        self.held: list[tuple[int, Deferred[Parts]]] = []
        self.handler = Handler(self._respond)

    def _respond(self, connection: Connection, payload: bytes) -> Answer:
        header = decode_request_header(payload)
        self.connections.add(connection)
        key, correlation_id = ApiKey(header.api_key), header.correlation_id  # type: ignore[call-arg]
        if key is not ApiKey.API_VERSIONS:
            self.seen.append(key.name)
        if key is ApiKey.API_VERSIONS:
            return encode_response(ApiVersionsResponse(), 0, correlation_id)
        if key is ApiKey.SASL_HANDSHAKE:
            return encode_response(SaslHandshakeResponse(mechanisms=["PLAIN"]), 1, correlation_id)
        if key is ApiKey.SASL_AUTHENTICATE:
            if self.silent_at_login:
                return Deferred()
            message = decode(SaslAuthenticateRequest, header.api_version, payload, header.body_position)[0].auth_bytes
            is_right = read_plain(bytes(message))[2] == SECRET
            response = SaslAuthenticateResponse(
                error_code=ErrorCode.NONE if is_right else ErrorCode.SASL_AUTHENTICATION_FAILED,
                error_message=None if is_right else "Invalid username or password",
                session_lifetime_ms=LIFETIME_MS,
            )
            return encode_response(response, header.api_version, correlation_id)
        if self.holds:
            waiting: Deferred[Parts] = Deferred()
            self.held.append((correlation_id, waiting))
            return waiting
        return encode_response(HeartbeatResponse(), 4, correlation_id)

    def release(self) -> None:
        held, self.held = self.held, []
        for correlation_id, waiting in held:
            waiting.complete([encode_response(HeartbeatResponse(), 4, correlation_id)])


def beat() -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=1, member_id="m")


def run(scenario: Callable[[World, Peer, Link, Security], Awaitable[None]], password: str = SECRET) -> None:
    with World(1) as world:

        async def main() -> None:
            peer, security = Peer(), Security(password)
            server = Server(
                peer.handler, [Listener(host="broker-1", port=9)], network=world.network.of(world.node("broker-1"))
            )
            await server.start()
            network = world.network.of(world.node("broker-7"))
            link = Link(network, random.Random(1), "broker-1", 9, client_id="b", security=security)
            await scenario(world, peer, link, security)
            link.close()
            await server.stop(0)

        world.run(main())


LOGIN = ["SASL_HANDSHAKE", "SASL_AUTHENTICATE"]


def test_the_session_is_renewed_on_the_same_connection_before_it_ends() -> None:
    async def scenario(world: World, peer: Peer, link: Link, security: Security) -> None:
        await link.request(beat())
        assert peer.seen == [*LOGIN, "HEARTBEAT"] and security.connected == 1
        begin = world.loop.time()
        peer.seen.clear()
        while LOGIN[1] not in peer.seen:
            assert world.loop.time() - begin < LIFETIME_MS / 1000
            await link.request(beat())
            await asyncio.sleep(0.1)
        low, high = RENEWED_SHARE
        assert low <= (world.loop.time() - begin) * 1000 / LIFETIME_MS <= high + 0.05
        for _ in range(3 * LIFETIME_MS // 100):
            await link.request(beat())
            await asyncio.sleep(0.1)
        assert peer.seen.count(LOGIN[1]) >= 3 and len(peer.connections) == 1 and not security.denied

    run(scenario)


def test_requests_wait_while_the_session_is_renewed() -> None:
    async def scenario(world: World, peer: Peer, link: Link, security: Security) -> None:
        await link.request(beat())
        peer.holds = True  # as a fetch waits at its leader: the login has its turn behind it
        waiting = link.request(beat())
        await asyncio.sleep(RENEWED_SHARE[1] * LIFETIME_MS / 1000)
        peer.seen.clear()
        others = [link.request(beat()) for _ in range(3)]
        await asyncio.sleep(0.1)
        assert not peer.seen or peer.seen == LOGIN[:1]  # nothing but a login may follow
        peer.holds = False
        peer.release()
        await waiting
        for each in others:
            await each
        assert peer.seen[-4:] == [LOGIN[1], *["HEARTBEAT"] * 3] and len(peer.connections) == 1

    run(scenario)


def test_a_wrong_password_fails_whoever_waits_in_words_without_it() -> None:
    async def scenario(world: World, peer: Peer, link: Link, security: Security) -> None:
        begin = world.loop.time()
        for _ in range(5):
            with pytest.raises(LinkError, match="refused the login by PLAIN: Invalid username") as caught:
                await link.request(beat())
            assert caught.value.denied and not caught.value.refused and "wrong-pass" not in str(caught.value)
        assert world.loop.time() - begin > 0.5  # with pauses that grow
        assert len(security.denied) == 5 and not security.connected and "HEARTBEAT" not in peer.seen
        security.password = SECRET
        await link.request(beat())
        assert security.connected == 1

    run(scenario, "wrong-pass")


def test_a_renewal_that_is_refused_ends_the_connection_and_is_tried_again() -> None:
    async def scenario(world: World, peer: Peer, link: Link, security: Security) -> None:
        await link.request(beat())
        security.password = "wrong-pass"
        await asyncio.sleep(RENEWED_SHARE[1] * LIFETIME_MS / 1000)
        assert security.denied and not link.is_connected
        security.password = SECRET
        await link.request(beat())
        assert len(peer.connections) == 2

    run(scenario)


def test_a_peer_that_is_silent_at_the_login() -> None:
    async def scenario(world: World, peer: Peer, link: Link, security: Security) -> None:
        peer.silent_at_login = True
        with pytest.raises(LinkError, match=f"no connection within {SECURE_TIMEOUT_MS} ms") as caught:
            await link.request(beat())
        assert not caught.value.denied

    run(scenario)
