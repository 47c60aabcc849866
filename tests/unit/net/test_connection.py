"""Frames in, replies out, over real sockets."""

import asyncio
import logging
import socket
import struct

import pytest
from net_harness import Answer, Handler, framed, network, run

from barnabas.errors import ProtocolError
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.settings import Listener, NetworkSettings
from barnabas.transport.frames import FRAMES_PER_TURN


def test_echo_and_pipelining() -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            client = await net.connect()
            payloads = [b"%d" % number * (number % 7 + 1) for number in range(FRAMES_PER_TURN * 5 + 3)]
            await client.send(b"".join(map(framed, payloads)))
            assert [await client.read_frame() for _ in payloads] == payloads

    run(test)


def test_a_frame_cut_at_each_byte() -> None:
    async def test() -> None:
        async with network(handler := Handler()) as net:
            client = await net.connect()
            stream = framed(b"first") + framed(b"") + framed(b"third one")
            for cut in range(1, len(stream)):
                await client.send(stream[:cut])
                complete = sum(cut >= end for end in (9, 13, len(stream)))
                seen = len(handler.requests) + complete
                await handler.until(lambda seen=seen: len(handler.requests) == seen)
                await client.send(stream[cut:])
                assert [await client.read_frame() for _ in range(3)] == [b"first", b"", b"third one"]

    run(test)


def test_one_byte_at_a_time() -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            client = await net.connect()
            for byte in framed(b"slowly") + framed(b"but surely"):
                await client.send(bytes([byte]))
                await asyncio.sleep(0)
            assert await client.read_frame() == b"slowly"
            assert await client.read_frame() == b"but surely"

    run(test)


@pytest.mark.parametrize("size", [30_000, 131_068, 131_069, 262_140, 262_144, 262_150, 3_000_000])
def test_large_frames_between_small_ones(size: int) -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            client = await net.connect()
            large = (b"0123456789abcdef" * (size // 16 + 1))[:size]
            payloads = [b"before", large, b"between", large[::-1], b"after"]
            sending = asyncio.ensure_future(client.send(b"".join(map(framed, payloads))))
            assert [await client.read_frame() for _ in payloads] == payloads
            await sending

    run(test)


@pytest.mark.parametrize("size", [-1, -(2**31), 1001, 2**31 - 1])
def test_a_size_out_of_bounds_closes_the_connection_only(size: int) -> None:
    async def test() -> None:
        async with network(Handler(), NetworkSettings(socket_request_max_bytes=1000)) as net:
            bad, good = await net.connect(), await net.connect()
            await bad.send(framed(b"x" * 1000) + struct.pack(">i", size))
            assert await bad.read_to_end() in (b"", framed(b"x" * 1000))
            assert await good.ask(b"still here") == b"still here"
            assert net.server.budget.used_bytes == 0

    run(test)


def test_the_limit_for_first_frames_holds_until_the_handler_raises_it() -> None:
    def respond(connection: Connection, payload: bytes) -> Answer:
        connection.max_frame_bytes = 1000
        return [framed(payload)]

    async def test() -> None:
        listener = Listener(host="127.0.0.1", port=0, first_frame_max_bytes=10)
        async with network(Handler(respond), listener=listener) as net:
            client = await net.connect()
            assert await client.ask(b"hello") == b"hello"
            assert await client.ask(b"x" * 1000) == b"x" * 1000
            stranger = await net.connect()
            await stranger.send(framed(b"x" * 11))
            assert await stranger.read_to_end() == b""

    run(test)


def test_memory_grows_with_the_bytes_that_came_not_with_those_promised() -> None:
    async def test() -> None:
        handler = Handler()
        async with network(handler) as net:
            client = await net.connect()
            await client.send(struct.pack(">i", 100_000_000) + b"x" * 200_000)
            other = await net.connect()
            while net.server.budget.used_bytes == 0:
                await other.ask(b"turn")
            (connection,) = [c for c in net.server.connections if c._stream.frames._assembly is not None]
            assembly = connection._stream.frames._assembly
            assert assembly is not None
            assert len(assembly._buffer) <= 1 << 19
            await client.close()
            await handler.until(lambda: len(handler.closed) == 1)
            assert net.server.budget.used_bytes == 0

    run(test)


def test_an_idle_connection_holds_no_buffer() -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            client = await net.connect()
            for payload in (b"small", b"x" * 500_000):
                assert await client.ask(payload) == payload
            (connection,) = net.server.connections
            assert connection._stream.frames._leftover is None
            assert connection._stream.frames._assembly is None

    run(test)


def test_the_start_of_a_small_frame_is_kept_in_little_memory() -> None:
    async def test() -> None:
        async with network(handler := Handler()) as net:
            client = await net.connect()
            await client.send(framed(b"whole") * 100 + framed(b"cut")[:6])
            await handler.until(lambda: len(handler.requests) == 100)
            for _ in range(100):
                await client.read_frame()
            (connection,) = net.server.connections
            leftover = connection._stream.frames._leftover
            assert leftover is not None
            assert len(leftover.obj) == 6  # type: ignore[arg-type]
            await client.send(framed(b"cut")[6:])
            assert await client.read_frame() == b"cut"

    run(test)


def test_a_view_that_a_handler_keeps_does_not_change() -> None:
    """It must not keep one, but a traceback in a log may: the buffer is then left to it."""
    kept: list[memoryview] = []

    class Keeper(Handler):
        def on_request(self, connection: Connection, frame: memoryview) -> Answer:
            kept.append(frame)
            return [framed(b"ok")]

    async def test() -> None:
        async with network(Keeper()) as net:
            client = await net.connect()
            payloads = [bytes([number]) * size for number, size in enumerate((10, 10, 300_000, 300_000, 10))]
            for payload in payloads:
                assert await client.ask(payload) == b"ok"
            assert [bytes(view) for view in kept] == payloads

    run(test)


def test_replies_keep_the_order_of_requests() -> None:
    pending: dict[bytes, Deferred[Parts]] = {}

    def respond(_: Connection, payload: bytes) -> Answer:
        if payload.startswith(b"later"):
            pending[payload] = Deferred()
            return pending[payload]
        return None if payload == b"no answer" else [framed(payload)]

    async def test() -> None:
        async with network(handler := Handler(respond)) as net:
            client = await net.connect()
            requests = [b"now 1", b"later 1", b"now 2", b"no answer", b"later 2", b"now 3", b"later 3"]
            await client.send(b"".join(map(framed, requests)))
            await handler.until(lambda: len(handler.requests) == len(requests))
            pending[b"later 3"].complete([framed(b"later 3")])
            pending[b"later 2"].complete([framed(b"later 2")[:5], framed(b"later 2")[5:]])
            assert await client.read_frame() == b"now 1"
            (connection,) = net.server.connections
            assert connection.pending_count == 5
            pending[b"later 1"].complete([framed(b"later 1")])
            rest = [await client.read_frame() for _ in range(5)]
            assert rest == [b"later 1", b"now 2", b"later 2", b"now 3", b"later 3"]
            assert connection.pending_count == 0

    run(test)


def test_a_reply_completed_before_it_is_returned_and_one_without_parts() -> None:
    def respond(_: Connection, payload: bytes) -> Answer:
        reply: Deferred[Parts] = Deferred(memory_bytes=10)
        reply.complete([] if payload == b"nothing" else [framed(payload)])
        return reply

    async def test() -> None:
        async with network(Handler(respond)) as net:
            client = await net.connect()
            await client.send(framed(b"nothing"))
            assert await client.ask(b"something") == b"something"
            assert net.server.budget.used_bytes == 0

    run(test)


def test_completing_twice_is_a_bug_of_the_handler() -> None:
    reply: Deferred[Parts] = Deferred()
    reply.complete([b"x"])
    with pytest.raises(RuntimeError):
        reply.complete([b"x"])


def test_a_failed_reply_closes_the_connection_after_the_replies_before_it() -> None:
    pending: list[Deferred[Parts]] = []

    def respond(_: Connection, payload: bytes) -> Answer:
        pending.append(Deferred(memory_bytes=5))
        return pending[-1]

    async def test() -> None:
        async with network(handler := Handler(respond)) as net:
            client = await net.connect()
            await client.send(framed(b"a") + framed(b"b") + framed(b"c"))
            await handler.until(lambda: len(pending) == 3)
            pending[1].fail()
            pending[0].complete([framed(b"a")])
            assert await client.read_to_end() == framed(b"a")
            assert pending[2].abandoned
            assert net.server.budget.used_bytes == 0
            pending[2].complete([framed(b"too late")])

    run(test)


def test_abandoned_replies_are_told_when_the_connection_goes() -> None:
    abandoned: list[bytes] = []

    def respond(connection: Connection, payload: bytes) -> Answer:
        if payload == b"close":
            raise ProtocolError("enough")
        return Deferred(memory_bytes=7, on_abandoned=lambda: abandoned.append(payload))

    async def test() -> None:
        async with network(handler := Handler(respond)) as net:
            client = await net.connect()
            await client.send(framed(b"a") + framed(b"b") + framed(b"close"))
            assert await client.read_to_end() == b""
            assert abandoned == [b"a", b"b"]
            assert len(handler.closed) == 1
            assert net.server.budget.used_bytes == 0

    run(test)


@pytest.mark.parametrize(
    ("fault", "level", "has_traceback"),
    [(ProtocolError("no such API"), logging.INFO, False), (ZeroDivisionError(), logging.ERROR, True)],
)
def test_a_handler_that_raises_closes_its_connection_only(
    fault: Exception, level: int, has_traceback: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def respond(_: Connection, payload: bytes) -> Answer:
        if payload == b"bad":
            raise fault
        return [framed(payload)]

    async def test() -> None:
        async with network(Handler(respond)) as net:
            bad, good = await net.connect(), await net.connect()
            port = bad.writer.get_extra_info("sockname")[1]
            await bad.send(framed(b"fine") + framed(b"bad") + framed(b"never seen"))
            await bad.read_to_end()
            assert await good.ask(b"hello") == b"hello"
            (record,) = [record for record in caplog.records if str(port) in record.getMessage()]
            assert record.levelno == level
            assert bool(record.exc_info) == has_traceback

    with caplog.at_level(logging.INFO, logger="barnabas.net"):
        run(test)


def test_half_close_sends_pending_replies_then_closes() -> None:
    pending: list[Deferred[Parts]] = []

    def respond(_: Connection, payload: bytes) -> Answer:
        if payload == b"turn":
            return [framed(payload)]
        pending.append(Deferred())
        return pending[-1]

    async def test() -> None:
        async with network(handler := Handler(respond)) as net:
            client, other = await net.connect(), await net.connect()
            await client.send(framed(b"a") + framed(b"b") + b"\0\0")
            client.writer.write_eof()
            await handler.until(lambda: len(pending) == 2)
            connection = next(c for c in net.server.connections if c.pending_count)
            while not connection._end_of_input:
                await other.ask(b"turn")
            pending[0].complete([framed(b"a")])
            assert await client.read_frame() == b"a"
            assert not connection.closed
            pending[1].complete([framed(b"b")])
            assert await client.read_to_end() == framed(b"b")
            assert connection.closed

    run(test)


def test_half_close_with_nothing_pending_closes() -> None:
    async def test() -> None:
        async with network(Handler()) as net:
            client = await net.connect()
            await client.send(framed(b"last words"))
            client.writer.write_eof()
            assert await client.read_to_end() == framed(b"last words")

    run(test)


def test_too_many_pending_replies_stop_reading_until_half_get_responses() -> None:
    pending: list[Deferred[Parts]] = []

    def respond(_: Connection, payload: bytes) -> Answer:
        pending.append(Deferred())
        return pending[-1]

    async def test() -> None:
        settings = NetworkSettings(pending_replies_per_connection=8)
        async with network(handler := Handler(respond), settings) as net:
            client = await net.connect()
            await client.send(framed(b"x") * 20)
            await handler.until(lambda: len(pending) == 8)
            for count in range(3):
                pending[count].complete([framed(b"r")])
                await client.read_frame()
            assert len(pending) == 8
            pending[3].complete([framed(b"r")])
            await handler.until(lambda: len(pending) == 12)
            for count in range(4, 20):
                await handler.until(lambda count=count: len(pending) > count)
                pending[count].complete([framed(b"r")])
                await client.read_frame()

    run(test)


def test_a_client_that_never_reads_is_not_read_from_and_others_are_served() -> None:
    reply = framed(b"y" * 100_000)

    async def test() -> None:
        settings = NetworkSettings(queued_reply_bytes_per_connection=300_000)
        handler = Handler(lambda connection, payload: [reply])
        async with network(handler, settings) as net:
            greedy = socket.create_connection(("127.0.0.1", net.server.port))
            greedy.sendall(framed(b"x") * 1000)
            other = await net.connect()
            for _ in range(50):
                await other.ask(b"x")
            served_to_greedy = len(handler.requests) - 50
            assert served_to_greedy < 100
            (connection,) = [c for c in net.server.connections if c._output]
            assert connection._output.queued_bytes < 300_000 + 2 * len(reply)
            greedy.setblocking(False)
            received = 0
            while received < 1000 * len(reply):
                received += len(await asyncio.get_running_loop().sock_recv(greedy, 1 << 20))
            assert len(handler.requests) == 1050
            greedy.close()

    run(test)


def test_responses_held_back_by_a_pending_one_are_bounded_too() -> None:
    pending: list[Deferred[Parts]] = []

    def respond(_: Connection, payload: bytes) -> Answer:
        if payload == b"later":
            pending.append(Deferred())
            return pending[-1]
        return [framed(b"y" * 10_000)]

    async def test() -> None:
        settings = NetworkSettings(queued_reply_bytes_per_connection=100_000)
        async with network(handler := Handler(respond), settings) as net:
            client, other = await net.connect(), await net.connect()
            await client.send(framed(b"later") + framed(b"now") * 50)
            await handler.until(lambda: len(handler.requests) == 11)
            await other.ask(b"turn")
            assert len(handler.requests) == 12
            pending[0].complete([framed(b"at last")])
            assert await client.read_frame() == b"at last"
            assert [len(await client.read_frame()) for _ in range(50)] == [10_000] * 50

    run(test)


def test_a_pipelining_client_gives_way_after_its_share() -> None:
    seen_by_turn: list[int] = []

    async def test() -> None:
        async with network(handler := Handler(lambda connection, payload: None)) as net:
            client = await net.connect()
            await client.send(framed(b"x") * (FRAMES_PER_TURN * 4))
            before = 0
            while len(handler.requests) < FRAMES_PER_TURN * 4:
                await asyncio.sleep(0)
                seen_by_turn.append(len(handler.requests) - before)
                before = len(handler.requests)
        assert max(seen_by_turn) <= FRAMES_PER_TURN

    run(test)


def test_a_handler_can_stop_and_resume_reading() -> None:
    def respond(connection: Connection, payload: bytes) -> Answer:
        connection.pause_reading()
        return [framed(payload)]

    async def test() -> None:
        async with network(handler := Handler(respond)) as net:
            client = await net.connect()
            await client.send(framed(b"1") + framed(b"2") + framed(b"3"))
            for number in (1, 2, 3):
                assert await client.read_frame() == b"%d" % number
                assert len(handler.requests) == number
                net.server.connections[0].resume_reading()

    run(test)
