"""A connection against a peer that the test plays byte by byte: order, sizes, nonsense, slow readers, TLS."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from certificates import Certificates, why_no_certificates
from channels import channel_pair

from barnabas.client.api_versions import BrokerVersions, ask_versions
from barnabas.client.connecting import Connector
from barnabas.client.connection import Connection, reason
from barnabas.client.errors import AuthenticationError, ClientTimeoutError, ConfigError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.options import AdminOptions
from barnabas.client.security import tls_context
from barnabas.protocol import ApiKey, decode_request_header, encode
from barnabas.protocol.messages.api_versions import ApiVersion, ApiVersionsResponse, FinalizedFeatureKey
from barnabas.transport.same_host import congestion_control

HEARTBEAT = int(ApiKey.HEARTBEAT)


class Peer:
    """The other end: reads frames, writes what the test says."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        self._loop = asyncio.get_running_loop()

    async def read(self, count: int) -> bytes:
        received = b""
        while len(received) < count:
            chunk = await self._loop.sock_recv(self.socket, count - len(received))
            assert chunk, "the client closed the connection"
            received += chunk
        return received

    async def request(self) -> tuple[int, bytes]:
        """(correlation id, body) of the next request."""
        (size,) = struct.unpack(">i", await self.read(4))
        frame = await self.read(size)
        header = decode_request_header(frame)
        return header.correlation_id, frame[header.body_position :]

    async def write(self, data: bytes) -> None:
        await self._loop.sock_sendall(self.socket, data)

    async def answer(self, correlation_id: int, body: bytes, *, flexible: bool = True) -> None:
        payload = struct.pack(">i", correlation_id) + (b"\0" if flexible else b"") + body
        await self.write(struct.pack(">i", len(payload)) + payload)

    async def is_closed(self) -> bool:
        try:
            return not await self._loop.sock_recv(self.socket, 1)
        except ConnectionResetError:
            return True


def play(scene: Callable[[Connection, Peer], Awaitable[None]], *, proven: bool = True, **options: int) -> None:
    async def main() -> None:
        ours, theirs = channel_pair()
        settings = {"request_timeout_ms": 30_000, "max_idle_ms": -1, **options}
        connection = Connection(ours, "peer:9092", client_id="test", **settings)
        if proven:
            connection.on_handshake_done(BrokerVersions("peer:9092", {0: (0, 0)}, {}))
        with theirs:
            await scene(connection, Peer(theirs))
            connection.close()

    asyncio.run(main(), debug=True)


async def why(connection: Connection) -> str:
    """Why a connection ends that is about to."""
    with pytest.raises(UnreachableError) as raised:
        await connection.request(HEARTBEAT, 4, b"")
    return raised.value.why


def test_responses_are_matched_in_order() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        first = connection.post(HEARTBEAT, 4, [b"one"])
        second = connection.post(HEARTBEAT, 3, [b"t", b"wo"])
        assert connection.in_flight_count == 2
        one, two = await peer.request(), await peer.request()
        assert (one[1], two[1]) == (b"one", b"two")
        await peer.answer(one[0], b"ONE")
        await peer.answer(two[0], b"TWO", flexible=False)
        assert (bytes(await first), bytes(await second)) == (b"ONE", b"TWO")
        assert connection.in_flight_count == 0

    play(scene)


@pytest.mark.parametrize("size", [0, 1, 8_187, 8_188, 8_189, 100_000, 3_000_000])
@pytest.mark.parametrize("slice_bytes", [3_000_100, 4_096])
def test_frames_of_every_size_and_what_comes_behind_them(size: int, slice_bytes: int) -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        responses = [connection.post(HEARTBEAT, 4, [b""]) for _ in range(3)]
        bodies = [bytes([number]) * size for number in range(3)]
        stream = b""
        for body in bodies:
            correlation_id, _ = await peer.request()
            stream += struct.pack(">ii", size + 5, correlation_id) + b"\0" + body

        async def write() -> None:
            for start in range(0, len(stream), slice_bytes):
                await peer.write(stream[start : start + slice_bytes])

        writing = asyncio.create_task(write())
        for answer, body in zip(responses, bodies, strict=True):
            assert bytes(await answer) == body
        await writing

    play(scene)


@pytest.mark.parametrize("slice_bytes", [1, 7, 64])
def test_small_frames_that_arrive_in_pieces_of_two_at_once(slice_bytes: int) -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        responses = [connection.post(HEARTBEAT, 4, [b""]) for _ in range(20)]
        stream = b""
        for number in range(20):
            correlation_id, _ = await peer.request()
            stream += struct.pack(">ii", number + 5, correlation_id) + b"\0" + bytes([number]) * number
        for start in range(0, len(stream), slice_bytes):
            await peer.write(stream[start : start + slice_bytes])
            await asyncio.sleep(0)
        assert [bytes(await answer) for answer in responses] == [bytes([number]) * number for number in range(20)]

    play(scene)


def test_each_large_response_has_a_buffer_of_its_own() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        responses = [connection.post(HEARTBEAT, 4, [b""]) for _ in range(2)]
        for fill in (b"a", b"b"):
            correlation_id, _ = await peer.request()
            await peer.answer(correlation_id, fill * 20_000)
        first, second = await responses[0], await responses[1]
        assert first.obj is not second.obj
        assert len(first.obj) == 20_005, "exactly as large as the frame"
        assert bytes(first) == b"a" * 20_000

    play(scene)


def test_a_large_request_to_a_slow_reader_goes_out_whole_and_in_order() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        parts = [b"h" * 10, memoryview(b"x" * 3_000_000), b"m" * 10, bytearray(b"y" * 2_000_000), b"t"]
        first = connection.post(HEARTBEAT, 4, parts)
        second = connection.post(HEARTBEAT, 4, [b"behind"])
        correlation_id, body = await peer.request()
        assert body == b"".join(parts)
        await peer.answer(correlation_id, b"1")
        correlation_id, body = await peer.request()
        assert body == b"behind"
        await peer.answer(correlation_id, b"2")
        assert (bytes(await first), bytes(await second)) == (b"1", b"2")

    play(scene)


def test_a_request_without_a_response() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        done = connection.post(HEARTBEAT, 4, [b"fire"], expect_response=False)
        assert done.done() and connection.in_flight_count == 0
        assert (await peer.request())[1] == b"fire"
        second = connection.post(HEARTBEAT, 4, [b"ask"])
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, b"!")
        assert bytes(await second) == b"!"

    play(scene)


def test_a_request_without_a_response_whose_bytes_nobody_takes() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        done = connection.post(HEARTBEAT, 4, [bytes(1 << 24)], timeout_ms=50, expect_response=False)
        with pytest.raises(UnreachableError, match="took no bytes within 50 ms"):
            await asyncio.wait_for(done, 10)
        assert connection.closed is not None

    play(scene)


def test_the_response_for_somebody_who_has_given_up_is_dropped() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        given_up = connection.post(HEARTBEAT, 4, [b"1"])
        given_up.cancel()
        waiting = connection.post(HEARTBEAT, 4, [b"2"])
        for body in (b"one", b"two"):
            await peer.answer((await peer.request())[0], body)
        assert bytes(await waiting) == b"two"

    play(scene)


def test_tagged_fields_in_the_header_of_a_response_are_skipped() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        waiting = connection.post(HEARTBEAT, 4, [b""])
        correlation_id, _ = await peer.request()
        payload = struct.pack(">i", correlation_id) + b"\x01\x05\x02ab" + b"body"
        await peer.write(struct.pack(">i", len(payload)) + payload)
        assert bytes(await waiting) == b"body"

    play(scene)


@pytest.mark.parametrize(
    ("sent", "words"),
    [
        (struct.pack(">iiB", 5, 99, 0), "it responded to request 99, expected was 1"),
        (struct.pack(">i", -1), "a frame of -1 bytes"),
        (struct.pack(">i", 3), "a frame of 3 bytes"),
        (struct.pack(">i", 1 << 30 | 1), "is it a Kafka broker"),
        (b"HTTP/1.1 400 Bad Request\r\n", "this is not the address of a Kafka broker"),
        (b"\x15\x03\x03\x00\x02\x02\x50", "set security_protocol to SSL"),
        (struct.pack(">ii", 4, 1), "cut short"),
    ],
)
def test_nonsense_ends_the_connection_and_says_what_it_was(sent: bytes, words: str) -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        waiting = connection.post(HEARTBEAT, 4, [b""])
        await peer.request()
        await peer.write(sent)
        with pytest.raises(UnreachableError, match=words):
            await waiting
        assert connection.closed is not None
        assert await peer.is_closed()
        assert words in await why(connection)

    play(scene, proven=words in ("it responded to request 99, expected was 1", "is it a Kafka broker", "cut short"))


def test_before_it_has_shown_to_be_a_broker_little_is_believed() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        waiting = connection.post(HEARTBEAT, 4, [b""])
        await peer.write(struct.pack(">i", 2 << 20))
        with pytest.raises(UnreachableError, match="is it a Kafka broker"):
            await waiting

    play(scene, proven=False)


def test_a_response_that_nobody_asked_for() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        await peer.answer(1, b"")
        assert await peer.is_closed()
        assert "expected was none" in await why(connection)

    play(scene)


def test_the_end_of_the_connection_is_reported_to_all_who_wait() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        ended: list[Connection] = []
        connection.on_closed = ended.append
        waiting = [connection.post(HEARTBEAT, 4, [b""]) for _ in range(3)]
        peer.socket.close()
        for each in waiting:
            with pytest.raises(UnreachableError):
                await each
        assert ended == [connection]
        connection.close("again")
        assert ended == [connection]

    play(scene)


def test_no_response_in_time_ends_the_connection_for_all() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        late = connection.post(HEARTBEAT, 4, [b""], timeout_ms=20)
        behind = connection.post(HEARTBEAT, 4, [b""])
        with pytest.raises(ClientTimeoutError, match="peer:9092: no response to HEARTBEAT within 20 ms"):
            await late
        with pytest.raises(UnreachableError, match="closed after there was no response to HEARTBEAT"):
            await behind
        await peer.request()
        await peer.request()
        assert await peer.is_closed()

    play(scene)


def test_each_request_has_its_own_time() -> None:
    """Whatever those before and after it had."""

    async def scene(connection: Connection, peer: Peer) -> None:
        quick = connection.post(HEARTBEAT, 4, [b""], timeout_ms=30)
        await peer.answer((await peer.request())[0], b"")
        await quick
        patient = connection.post(HEARTBEAT, 4, [b""], timeout_ms=30_000)
        passed = asyncio.Event()
        asyncio.get_running_loop().call_later(0.06, passed.set)
        await passed.wait()
        assert connection.closed is None
        hasty = connection.post(HEARTBEAT, 4, [b""], timeout_ms=20)
        with pytest.raises(ClientTimeoutError, match="no response to HEARTBEAT within 20 ms"):
            await hasty
        with pytest.raises(UnreachableError, match="closed after"):
            await patient

    play(scene)


def test_an_idle_connection_closes_but_not_while_it_waits() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        waiting = connection.post(HEARTBEAT, 4, [b""])
        correlation_id, _ = await peer.request()
        await asyncio.sleep(0.1)
        assert connection.closed is None
        await peer.answer(correlation_id, b"")
        await waiting
        assert await peer.is_closed()
        assert "idle" in await why(connection)

    play(scene, max_idle_ms=30)


# --- versions ---


def versions_response(error_code: int = 0, newest: int = 4) -> ApiVersionsResponse:
    return ApiVersionsResponse(
        error_code=error_code,
        api_keys=[ApiVersion(api_key=18, min_version=0, max_version=newest), ApiVersion(api_key=12, max_version=4)],
        finalized_features=[FinalizedFeatureKey(name="f", max_version_level=2)],
        finalized_features_epoch=7,
    )


def test_versions_are_asked_for_in_the_newest_form() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        asking = asyncio.create_task(ask_versions(connection))
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, encode(versions_response(), 4), flexible=False)
        found = await asking
        assert (found.ranges[12], found.features, found.features_epoch) == ((0, 4), {"f": 2}, 7)
        assert found.pick(ApiKey.HEARTBEAT, max_version=3) == 3

    play(scene, proven=False)


@pytest.mark.parametrize(("newest", "asked_again"), [(2, 2), (0, 0)])
def test_an_older_broker_is_asked_again(newest: int, asked_again: int) -> None:
    """KIP-511: the refusal is always in version 0."""

    async def scene(connection: Connection, peer: Peer) -> None:
        asking = asyncio.create_task(ask_versions(connection))
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, encode(versions_response(35, newest), 0), flexible=False)
        (size,) = struct.unpack(">i", await peer.read(4))
        header = decode_request_header(await peer.read(size))
        assert header.api_version == asked_again
        await peer.answer(header.correlation_id, encode(versions_response(), asked_again), flexible=False)
        assert (await asking).ranges[12] == (0, 4)

    play(scene, proven=False)


def test_a_very_old_broker_names_no_range() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        asking = asyncio.create_task(ask_versions(connection))
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, encode(ApiVersionsResponse(error_code=35), 0), flexible=False)
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, encode(versions_response(), 0), flexible=False)
        assert (await asking).features == {}

    play(scene, proven=False)


def test_versions_that_cannot_be_read() -> None:
    async def scene(connection: Connection, peer: Peer) -> None:
        asking = asyncio.create_task(ask_versions(connection))
        correlation_id, _ = await peer.request()
        await peer.answer(correlation_id, b"\0\0\xff", flexible=False)
        with pytest.raises(UnreachableError, match="not that of a Kafka broker"):
            await asking

    play(scene, proven=False)


@contextlib.asynccontextmanager
async def echo_broker(host: str = "127.0.0.1", context: ssl.SSLContext | None = None) -> AsyncIterator[Node]:
    """A peer that tells its versions, and then sends every request's body back. Ends when its clients have."""
    serving: set[asyncio.Task[None]] = set()

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                (size,) = struct.unpack(">i", await reader.readexactly(4))
                frame = await reader.readexactly(size)
                header = decode_request_header(frame)
                body = b"\0" + frame[header.body_position :]
                if header.api_key == ApiKey.API_VERSIONS:
                    body = encode(versions_response(), header.api_version)
                writer.write(struct.pack(">ii", len(body) + 4, header.correlation_id) + body)
                await writer.drain()
        except (asyncio.IncompleteReadError, ConnectionError):
            writer.transport.abort()

    def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        serving.add(asyncio.create_task(serve(reader, writer)))

    server = await asyncio.start_server(on_connection, host, 0, ssl=context)
    async with server:
        yield Node(1, host, server.sockets[0].getsockname()[1])
        if serving:
            await asyncio.wait(serving)
    await asyncio.sleep(0)  # transports close their sockets in the next turn


def test_a_broker_at_an_address_of_the_next_version() -> None:
    """IPv6, in brackets where people read it."""

    async def main() -> None:
        async with echo_broker("::1") as node:
            connection = await Connector(AdminOptions.of("h:1")).connect(node)
            assert connection.address == f"[::1]:{node.port}"
            assert bytes(await connection.request(HEARTBEAT, 4, b"body")) == b"body"
            connection.close()

    try:
        asyncio.run(main())
    except OSError:
        pytest.skip("there is no IPv6 on this machine")


def test_socket_buffers_as_asked_for() -> None:
    async def main() -> None:
        async with echo_broker() as node:
            options = AdminOptions.of("h:1", send_buffer_bytes=40_000, receive_buffer_bytes=50_000)
            connection = await Connector(options).connect(node)
            sock = connection._stream.channel
            # Linux doubles what is asked for.
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF) in (40_000, 80_000)
            assert sock.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) in (50_000, 100_000)
            assert sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
            connection.close()

    asyncio.run(main())


@pytest.mark.skipif(not hasattr(socket, "TCP_CONGESTION"), reason="this system has no choice of congestion controls")
@pytest.mark.parametrize("elsewhere", [False, True])
def test_nothing_is_paced_within_one_machine(monkeypatch: pytest.MonkeyPatch, elsewhere: bool) -> None:
    """Decided before it connects: what it begins with, it cannot get rid of."""
    seen: list[bytes] = []

    async def main() -> None:
        loop = asyncio.get_running_loop()
        connect = loop.sock_connect

        async def looked_at(sock: socket.socket, address: Any) -> None:
            seen.append(congestion_control(sock))
            await connect(sock, address)

        monkeypatch.setattr(loop, "sock_connect", looked_at)
        async with echo_broker() as node:
            (await Connector(AdminOptions.of("h:1")).connect(node)).close()

    if elsewhere:
        monkeypatch.setattr("barnabas.transport.system.is_own_address", lambda family, address: False)
    asyncio.run(main())
    with socket.socket() as other:
        assert seen == [congestion_control(other) if elsewhere else b"reno"]


# --- TLS, against Python's own server side ---

needs_openssl = pytest.mark.skipif(why_no_certificates() is not None, reason=str(why_no_certificates()))


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def over_tls(store: Path, scene: Callable[[Node], Awaitable[None]]) -> None:
    async def main() -> None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(store)
        async with echo_broker(context=context) as node:
            await scene(node)

    asyncio.run(main())


@needs_openssl
def test_large_frames_both_ways_over_tls(certificates: Certificates) -> None:
    async def scene(node: Node) -> None:
        options = AdminOptions.of("h:1", security_protocol="SSL", ssl_truststore_location=str(certificates.authority))
        connection = await Connector(options).connect(node)
        bodies = [bytes([number]) * size for number, size in enumerate((0, 10, 16_384, 100_000, 2_000_000, 5))]
        responses = [connection.post(HEARTBEAT, 4, [body[:7], body[7:]]) for body in bodies]
        for answer, body in zip(responses, bodies, strict=True):
            assert bytes(await answer) == body
        connection.close()

    over_tls(certificates.server_store, scene)


@needs_openssl
def test_certificates_that_are_not_accepted(certificates: Certificates) -> None:
    async def scene(node: Node) -> None:
        for options in (
            {"ssl_truststore_location": str(certificates.other_authority)},
            {"ssl_truststore_location": str(certificates.authority)},
        ):
            connector = Connector(AdminOptions.of("h:1", security_protocol="SSL", **options))
            with pytest.raises(AuthenticationError, match="its certificate is not accepted") as raised:
                await connector.connect(node)
            assert not raised.value.retriable

    over_tls(certificates.misnamed_server_store, scene)


@needs_openssl
def test_stores_that_cannot_be_used(certificates: Certificates, tmp_path: Path) -> None:
    empty = tmp_path / "empty.pem"
    empty.write_text("nothing")

    def faults(**options: object) -> tuple[str, ...]:
        with pytest.raises(ConfigError) as raised:
            tls_context(AdminOptions.of("h:1", security_protocol="SSL", **options))
        return raised.value.faults

    assert "No such file" in faults(ssl_truststore_location=str(tmp_path / "missing.pem"))[0]
    assert "no certificate in PEM form" in faults(ssl_truststore_location=str(empty))[0]
    assert "no certificate in PEM form" in faults(ssl_truststore_certificates="nothing")[0]
    assert (
        "ssl_key_password is wrong"
        in faults(ssl_keystore_location=str(certificates.encrypted_client_store), ssl_key_password="wrong")[0]
    )
    assert len(faults(ssl_keystore_location=str(empty), ssl_truststore_location=str(empty))) == 2
    assert "none of these" in faults(ssl_cipher_suites="NO-SUCH-CIPHER")[0]
    assert "ssl_protocol" in faults(ssl_protocol="TLSv1.2", ssl_enabled_protocols="TLSv1.3")[0]


def test_a_connection_to_oneself_is_none() -> None:
    """With nobody at a port of the range for outgoing connections, TCP may join a socket with itself."""

    async def main() -> None:
        loop: Any = asyncio.get_running_loop()
        connect = loop.sock_connect

        async def from_the_same_port(sock: socket.socket, address: tuple[str, int]) -> None:
            sock.bind(address)
            await connect(sock, address)

        loop.sock_connect = from_the_same_port
        with socket.create_server(("127.0.0.1", 0)) as free:
            port = free.getsockname()[1]
        with pytest.raises(UnreachableError, match="nothing listens there"):
            await Connector(AdminOptions.of("h:1")).connect(Node(0, "127.0.0.1", port))

    asyncio.run(main())


def test_why_connecting_failed_is_said_in_words() -> None:
    """asyncio puts the address where the system's words were."""
    assert reason(OSError(errno.ENETUNREACH, "Connect call failed ('10.0.0.1', 1)")) == os.strerror(errno.ENETUNREACH)
