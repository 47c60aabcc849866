"""TLS between two streams: frames of any size both ways, files as a server sends them, and what OpenSSL holds back."""

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from certificates import Certificates, why_no_certificates
from channels import End

from barnabas.storage.file_slice import FileSlice
from barnabas.storage.files import Files
from barnabas.transport.channel import SocketOptions
from barnabas.transport.system import SystemNetwork
from barnabas.transport.tls import SLICE_BYTES

pytestmark = pytest.mark.skipif(why_no_certificates() is not None, reason=str(why_no_certificates()))
SIZES = [0, 10, 16_384, 40_000, 100_000, 2_000_000, 5]
MUTED = 4


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return Certificates(tmp_path_factory.mktemp("certificates"))


def framed(content: bytes) -> bytes:
    return struct.pack(">i", len(content)) + content


@asynccontextmanager
async def tls_ends(certificates: Certificates) -> AsyncIterator[tuple[End, End]]:
    """(client, server), connected, through the network that brokers and clients use."""
    network = SystemNetwork()
    server_context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server_context.load_cert_chain(certificates.server_store)
    client_context = ssl.create_default_context(cafile=str(certificates.authority))
    options = SocketOptions(send_buffer_bytes=50_000, same_host_send_buffer_bytes=50_000, receive_buffer_bytes=50_000)
    (listening,) = await network.listen("127.0.0.1", 0, 5, options)
    (address,) = await network.look_up("127.0.0.1", listening.getsockname()[1])
    near = await network.connect(address, options)
    loop = asyncio.get_running_loop()
    readable = loop.create_future()
    loop.add_reader(listening.fileno(), readable.set_result, None)
    await readable
    loop.remove_reader(listening.fileno())
    far, _ = listening.accept_channel(options)
    listening.close()
    client, server = await asyncio.gather(
        network.start_tls(near, client_context, "127.0.0.1"), network.start_tls(far, server_context)
    )
    ends = End(client, greedy=True), End(server, greedy=False)
    try:
        yield ends
    finally:
        for end in ends:
            end.stream.close()


def play(certificates: Certificates, scene: Callable[[End, End], Awaitable[None]]) -> None:
    async def main() -> None:
        async with tls_ends(certificates) as (client, server):
            await scene(client, server)

    asyncio.run(main())


def test_frames_of_every_size_both_ways_at_once(certificates: Certificates) -> None:
    async def scene(client: End, server: End) -> None:
        contents = [bytes([number]) * size for number, size in enumerate(SIZES)]
        for content in contents:
            for end in (client, server):
                end.stream.output.add([framed(content)[:7], framed(content)[7:]])
                end.stream.write()
        for end in (client, server):
            await end.until(lambda end=end: len(end.frames) == len(contents))
            assert end.frames == contents

    play(certificates, scene)


@pytest.mark.parametrize("first_size", [2_000, 20_000, 25_000, 31_000])
def test_more_is_queued_while_openssl_waits_to_repeat_a_write(certificates: Certificates, first_size: int) -> None:
    """It takes a repeated write only with the same bytes, or more of them."""

    async def scene(client: End, server: End) -> None:
        output = server.stream.output
        for number in range(5):
            client.stream.pause(MUTED)
            client.frames.clear()
            contents: list[bytes] = []
            while not server.stream.writing:
                contents.append(bytes([number]) * (first_size + 1_000 * number))
                frame = framed(contents[-1])
                output.add(frame[start : start + 500] for start in range(0, len(frame), 500))
                server.stream.write()
            contents += [bytes([index]) * (index * 37 % 9_000) for index in range(200)]
            output.add(map(framed, contents[-200:]))
            client.stream.resume(MUTED)
            await client.until(lambda contents=contents: len(client.frames) == len(contents))
            assert client.frames == contents

    play(certificates, scene)


@pytest.mark.parametrize("length", [0, 100, 16_384, 16_385, 100_000, 3_000_000])
def test_ranges_of_files(certificates: Certificates, tmp_path: Path, length: int) -> None:
    data = bytes(range(251)) * 12_000
    path = tmp_path / "data"
    path.write_bytes(data)

    async def scene(client: End, server: End) -> None:
        part = FileSlice(Files().open(str(path)), 5, length)
        for _ in range(2):
            server.stream.output.add([struct.pack(">i", length + 2), b"a", part, b"b"])
        server.stream.write()
        await client.until(lambda: len(client.frames) == 2)
        assert client.frames == [b"a" + data[5 : 5 + length] + b"b"] * 2

    play(certificates, scene)


def test_a_pause_in_the_middle_of_what_openssl_has_read(certificates: Certificates) -> None:
    """No selector knows of bytes that are decrypted already: reading goes on without one."""

    async def scene(client: End, server: End) -> None:
        def pause(frame: bytes) -> None:
            server.stream.pause(MUTED)
            asyncio.get_running_loop().call_soon(server.stream.resume, MUTED)

        server.on_frame_seen = pause
        # A large frame is received up to its end: the record that it ends in has the next ones too.
        contents = [bytes([number]) * size for number, size in enumerate([SLICE_BYTES + 9_000, 10, 20])]
        client.stream.output.add(map(framed, contents))
        client.stream.write()
        await server.until(lambda: len(server.frames) == len(contents))
        assert server.frames == contents

    play(certificates, scene)


@pytest.mark.parametrize("ends", ["client", "server"])
def test_the_end_of_one_is_seen_by_the_other(certificates: Certificates, ends: str) -> None:
    async def scene(client: End, server: End) -> None:
        closes, sees = (client, server) if ends == "client" else (server, client)
        closes.stream.output.add([framed(b"last words")])
        closes.stream.write()
        closes.stream.channel.shutdown(socket.SHUT_WR)
        await sees.until(lambda: sees.ended is not None)
        assert (sees.frames, sees.ended) == ([b"last words"], "end of input")

    play(certificates, scene)
