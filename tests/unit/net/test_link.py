"""A link to another broker: over memory, over sockets, and in virtual time."""

import asyncio
import random
from collections.abc import Awaitable, Callable
from itertools import pairwise

import pytest
from memory_network import HOST, MemoryLoop, MemoryNetwork, run_in_memory
from net_harness import Answer, Handler, framed
from net_harness import run as run_on_sockets
from simulation.world import World

from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.link import FIRST_BACKOFF_MS, MAX_BACKOFF_MS, Link, LinkError
from barnabas.net.reply import Parts
from barnabas.net.server import Server
from barnabas.net.settings import Listener
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.headers import decode_request_header, encode_response
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.transport.channel import Network
from barnabas.transport.system import SystemNetwork

Scenario = Callable[[Network], Awaitable[None]]


def on_memory(scenario: Scenario) -> None:
    run_in_memory(scenario)


def on_sockets(scenario: Scenario) -> None:
    run_on_sockets(lambda: scenario(SystemNetwork()))


both_networks = pytest.mark.parametrize("run", [on_memory, on_sockets])


class Peer:
    """A broker that responds heartbeats with the generation id of the request as the throttle time."""

    def __init__(self, max_version: int = 4) -> None:
        self.versions: list[int] = []
        self.client_ids: list[str | None] = []
        self.connections: list[Connection] = []
        self.held: list[tuple[int, HeartbeatRequest, Deferred[Parts]]] = []
        self.holds = False
        self.silent = False
        self.answers: Callable[[Connection, int], Answer] | None = None
        self.handler = Handler(self._respond)
        self._max_version = max_version

    def _respond(self, connection: Connection, payload: bytes) -> Answer:
        header = decode_request_header(payload)
        if connection not in self.connections:
            self.connections.append(connection)
        if header.api_key == ApiKey.API_VERSIONS:
            if self.silent:
                return Deferred()
            listed = [ApiVersion(api_key=ApiKey.HEARTBEAT, min_version=0, max_version=self._max_version)]
            return encode_response(ApiVersionsResponse(api_keys=listed), 0, header.correlation_id)
        self.versions.append(header.api_version)
        self.client_ids.append(header.client_id)
        if self.answers is not None:
            return self.answers(connection, header.correlation_id)
        request = decode(HeartbeatRequest, header.api_version, payload, header.body_position)[0]
        if self.holds:
            waiting: Deferred[Parts] = Deferred()
            self.held.append((header.correlation_id, request, waiting))
            return waiting
        return self.answer(header.correlation_id, request)

    def answer(self, correlation_id: int, request: HeartbeatRequest) -> bytes:
        return encode_response(HeartbeatResponse(throttle_time_ms=request.generation_id), 4, correlation_id)

    async def start(self, network: Network, port: int = 0) -> Server:
        host = HOST if isinstance(network, MemoryNetwork) else "127.0.0.1"
        server = Server(self.handler, [Listener(host=host, port=port)], network=network)
        await server.start()
        return server


def link_to(network: Network, server: Server | int, **options: int) -> Link:
    host = HOST if isinstance(network, MemoryNetwork) else "127.0.0.1"
    port = server if isinstance(server, int) else server.port
    return Link(network, random.Random(1), host, port, client_id="broker-7", **options)


def beat(number: int) -> HeartbeatRequest:
    return HeartbeatRequest(group_id="g", generation_id=number, member_id="m")


@both_networks
def test_requests_are_pipelined_and_responded_to_in_order(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        link = link_to(network, server)
        peer.holds = True
        responses = [link.request(beat(number)) for number in range(50)]
        assert not link.is_connected and link.in_flight_count == 50
        await peer.handler.until(lambda: len(peer.held) == 50)  # none waits for the one before it
        for correlation_id, request, waiting in reversed(peer.held):
            waiting.complete([peer.answer(correlation_id, request)])
        assert [(await response).throttle_time_ms for response in responses] == list(range(50))
        assert peer.client_ids[0] == "broker-7" and len(peer.connections) == 1
        assert link.is_connected and link.in_flight_count == 0
        link.close()
        await server.stop()

    run(scenario)


@both_networks
def test_bytes_in_and_bytes_out(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        large = bytes(range(256)) * 12_000
        server = await peer.start(network)
        peer.answers = lambda _, correlation_id: framed(correlation_id.to_bytes(4, "big") + b"\0" + large)
        link = link_to(network, server)
        first, second = (link.post(ApiKey.HEARTBEAT, 4, b"some", b"thing") for _ in range(2))
        assert bytes(await first) == large and bytes(await second) == large
        assert peer.handler.requests[-1].endswith(b"something")
        link.close()
        await server.stop(0)

    run(scenario)


def test_the_newest_version_that_both_know() -> None:
    async def scenario(network: Network) -> None:
        for known, used in ((4, 4), (2, 2)):
            peer = Peer(max_version=known)
            server = await peer.start(network)
            peer.answers = lambda _, correlation_id, used=used: encode_response(
                HeartbeatResponse(error_code=7), used, correlation_id
            )
            link = link_to(network, server)
            assert (await link.request(beat(1))).error_code == 7
            assert peer.versions == [used]
            assert (await link.request(beat(1), 1)).error_code == 7 if used == 2 else True
            link.close()
            await server.stop()

    on_memory(scenario)


@both_networks
def test_refused(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        port = server.port
        await server.stop()
        link = link_to(network, port)
        told: list[LinkError] = []
        link.on_lost = told.append
        responses = [link.request(beat(1)), link.post(ApiKey.HEARTBEAT, 4, b"")]
        for response in responses:
            with pytest.raises(LinkError, match="nothing listens") as caught:
                await response
            assert caught.value.refused and not caught.value.maybe_sent
        assert len(told) == 1
        server = await peer.start(network, port)  # it is back: the next request finds it, after the pause
        assert (await link.request(beat(3))).throttle_time_ms == 3
        link.close()
        await server.stop()

    run(scenario)


@both_networks
def test_closed_in_the_middle_of_a_response(run: Callable[[Scenario], None]) -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)

        def cut(connection: Connection, correlation_id: int) -> Answer:
            asyncio.get_running_loop().call_soon(lambda: asyncio.get_running_loop().call_soon(connection.close))
            return (100).to_bytes(4, "big") + correlation_id.to_bytes(4, "big") + b"half"

        peer.answers = cut
        link = link_to(network, server)
        first, second = link.request(beat(1)), link.request(beat(2))
        for response in (first, second):
            with pytest.raises(LinkError) as caught:
                await response
            assert caught.value.maybe_sent and not caught.value.refused
        peer.answers = None
        assert (await link.request(beat(3))).throttle_time_ms == 3
        assert len(peer.connections) == 2
        link.close()
        await server.stop(0)

    run(scenario)


def test_a_response_out_of_turn_ends_the_connection() -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        peer.answers = lambda _, correlation_id: framed((correlation_id + 1).to_bytes(4, "big") + b"\0")
        link = link_to(network, server)
        with pytest.raises(LinkError, match="not the next one"):
            await link.request(beat(1))
        link.close()
        await server.stop(0)

    on_memory(scenario)


def test_a_response_that_cannot_be_decoded() -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        peer.answers = lambda _, correlation_id: framed(correlation_id.to_bytes(4, "big") + b"\0" + b"x")
        link = link_to(network, server)
        with pytest.raises(LinkError, match="cut short"):
            await link.request(beat(1))
        peer.answers = None
        assert (await link.request(beat(4))).throttle_time_ms == 4  # others are not hurt
        link.close()
        await server.stop(0)

    on_memory(scenario)


def test_a_fault_of_one_who_waits_hurts_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        link = link_to(network, server)

        def fail(_response: Deferred[memoryview]) -> None:
            raise RuntimeError("a mistake")

        link.post(ApiKey.HEARTBEAT, 4, encode(beat(1), 4)).when_done(fail)
        assert (await link.request(beat(2))).throttle_time_ms == 2
        link.close()
        await server.stop()

    on_memory(scenario)
    assert "a mistake" in caplog.text


def test_after_close_everything_fails() -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        peer.holds = True
        link = link_to(network, server)
        told: list[LinkError] = []
        link.on_lost = told.append
        sent = link.request(beat(1))
        await peer.handler.until(lambda: len(peer.held) == 1)
        link.close("broker 7 left")
        with pytest.raises(LinkError, match="broker 7 left") as caught:
            await sent
        assert caught.value.maybe_sent
        with pytest.raises(LinkError, match="broker 7 left"):
            await link.request(beat(2))
        never_connected = link_to(network, server)
        queued = never_connected.request(beat(3))
        never_connected.close()
        with pytest.raises(LinkError):
            await queued
        await asyncio.sleep(0)
        assert not told  # whoever closes it knows
        await server.stop(0)

    on_memory(scenario)


# --- virtual time ---


def in_virtual_time(scenario: Callable[[World], Awaitable[None]]) -> None:
    with World(1) as world:

        async def main() -> None:
            await scenario(world)

        world.run(main())


def test_time_out_while_the_peer_is_silent() -> None:
    async def scenario(world: World) -> None:
        network, loop = world.network.of(world.node("broker-7")), world.loop
        peer = Peer()
        peer.holds = True
        server = Server(
            peer.handler, [Listener(host="broker-1", port=9)], network=world.network.of(world.node("broker-1"))
        )
        await server.start()
        link = Link(network, random.Random(1), "broker-1", 9, client_id="b", request_timeout_ms=3_000)
        begin = loop.time()
        patient, hasty = link.request(beat(1)), link.request(beat(2), timeout_ms=700)
        with pytest.raises(LinkError, match="no response to HEARTBEAT within 700 ms") as caught:
            await hasty
        assert caught.value.maybe_sent
        assert loop.time() - begin == pytest.approx(0.7, abs=0.01)
        with pytest.raises(LinkError):  # nothing comes behind a response that does not come
            await patient
        peer.silent = True
        begin = loop.time()
        with pytest.raises(LinkError, match="within 700 ms") as caught:
            await link.request(beat(3), timeout_ms=700)
        assert not caught.value.maybe_sent  # it never got beyond the first question
        assert loop.time() - begin == pytest.approx(0.7, abs=0.01)
        link.close()
        await server.stop(0)

    in_virtual_time(scenario)


def test_pauses_between_attempts_grow_and_end_when_the_peer_is_back() -> None:
    async def scenario(world: World) -> None:
        network, loop = world.network.of(world.node("broker-7")), world.loop
        world.node("broker-1")
        link = Link(network, random.Random(1), "broker-1", 9, client_id="b")
        failed_at: list[float] = []
        for _ in range(9):
            with pytest.raises(LinkError) as caught:
                await link.request(beat(1))
            assert caught.value.refused
            failed_at.append(loop.time())
        pauses = [(after - before) * 1000 for before, after in pairwise(failed_at)]
        expected = [min(FIRST_BACKOFF_MS << number, MAX_BACKOFF_MS) for number in range(8)]
        assert all(
            0.8 * wanted <= pause <= 1.2 * wanted + 20 for pause, wanted in zip(pauses, expected, strict=True)
        ), pauses
        peer = Peer()
        server = Server(
            peer.handler, [Listener(host="broker-1", port=9)], network=world.network.of(world.node("broker-1"))
        )
        await server.start()
        begin = loop.time()
        waiting = link.request(beat(5))
        link.retry_now()
        assert (await waiting).throttle_time_ms == 5
        assert loop.time() - begin < 0.1
        link.close()
        await server.stop()

    in_virtual_time(scenario)


def test_ping() -> None:
    async def scenario(network: Network) -> None:
        peer = Peer()
        server = await peer.start(network)
        link = link_to(network, server)
        await link.ping()
        assert link.is_connected and isinstance(asyncio.get_running_loop(), MemoryLoop)
        link.close()
        await server.stop()

    on_memory(scenario)
