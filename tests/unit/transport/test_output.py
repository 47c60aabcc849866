"""Sending: gathered parts, files, partial writes and files that are shorter than promised."""

import asyncio
import itertools
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest
from channels import channel_pair
from hypothesis import given, settings
from hypothesis import strategies as st
from net_harness import Answer, Handler, framed, network, run

from barnabas.net.connection import Connection
from barnabas.storage.file_slice import FileSlice
from barnabas.storage.files import Files, OpenFile
from barnabas.transport import output
from barnabas.transport.output import GATHER_PARTS, SMALL_FILE_BYTES, OutputQueue, TruncatedFileError
from barnabas.transport.system import SocketChannel

DATA = os.urandom(1 << 16) * 64


@pytest.fixture(scope="module")
def data_file(tmp_path_factory: pytest.TempPathFactory) -> OpenFile:
    path = tmp_path_factory.mktemp("output") / "data"
    path.write_bytes(DATA)
    return Files().open(str(path))


def drain(queue: OutputQueue, receiver: socket.socket, before_write: Callable[[], None] = lambda: None) -> bytes:
    """Let the peer read all that is sent, and write on as long as there is something left."""
    received = bytearray()
    receiver.setblocking(False)
    while True:
        before_write()
        finished = queue.write()
        try:
            while chunk := receiver.recv(1 << 20):
                received += chunk
        except BlockingIOError:
            pass
        if finished:
            assert not queue
            return bytes(received)


part_sizes = st.one_of(st.integers(0, 40), st.integers(10_000, 40_000), st.integers(200_000, 700_000))


@settings(max_examples=60, deadline=None)
@given(parts=st.lists(st.tuples(st.booleans(), part_sizes), max_size=12), buffer_bytes=st.sampled_from([4096, 200_000]))
def test_whatever_the_parts_the_bytes_come_out_in_order(
    data_file: OpenFile, parts: list[tuple[bool, int]], buffer_bytes: int
) -> None:
    sender, receiver = channel_pair()
    with sender, receiver:
        sender.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, buffer_bytes)
        queue = OutputQueue(sender)
        expected = b""
        for number, (is_file, size) in enumerate(parts):
            start = number * 1000
            queue.add([FileSlice(data_file, start, size) if is_file else memoryview(DATA)[start : start + size]])
            expected += DATA[start : start + size]
        assert queue.queued_bytes == sum(size for is_file, size in parts if not is_file)
        assert drain(queue, receiver) == expected
        assert queue.queued_bytes == 0
        assert queue.sent_bytes == len(expected)


def test_many_small_parts_take_few_calls() -> None:
    class Counting(SocketChannel):
        calls = 0

        def send(self, *arguments: object) -> int:
            type(self).calls += 1
            return super().send(*arguments)  # type: ignore[arg-type]

    left, receiver = socket.socketpair()
    with Counting(left.family, left.detach()) as sender, receiver:
        queue = OutputQueue(sender)
        for _ in range(GATHER_PARTS):
            queue.add([b"part"])
        assert drain(queue, receiver) == b"part" * GATHER_PARTS
        assert Counting.calls == 1


def test_a_turn_that_is_over_and_a_socket_that_is_full(data_file: OpenFile, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(output, "TURN_BYTES", 20_000)
    sender, receiver = channel_pair()
    with sender, receiver:
        queue = OutputQueue(sender)
        queue.add([FileSlice(data_file, 0, 2_000_000)])
        assert not queue.write() and queue.gave_way
        while queue.gave_way:
            assert not queue.write()
        assert 20_000 < queue.sent_bytes < 2_000_000
        assert drain(queue, receiver) == DATA[:2_000_000]
        assert not queue.gave_way


def test_a_response_of_several_turns_does_not_wait_for_the_selector(
    data_file: OpenFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And others have their turns in between."""
    monkeypatch.setattr(output, "TURN_BYTES", 20_000)
    length = 100_000
    waits: list[int] = []
    turn = 0
    turns_of_writes: list[int] = []
    write = OutputQueue.write

    def noted_write(queue: OutputQueue) -> bool:
        turns_of_writes.append(turn)
        return write(queue)

    def respond(_: Connection, payload: bytes) -> Answer:
        return [length.to_bytes(4, "big"), FileSlice(data_file, 0, length)]

    async def test() -> None:
        async with network(Handler(respond)) as net:
            client = await net.connect()
            loop = asyncio.get_running_loop()
            monkeypatch.setattr(loop, "add_writer", lambda fd, *_: waits.append(fd))
            monkeypatch.setattr(OutputQueue, "write", noted_write)

            def begin_turn() -> None:
                nonlocal turn
                turn += 1
                loop.call_soon(begin_turn)

            begin_turn()
            await client.send(framed(b"x"))
            assert await client.read_frame() == DATA[:length]

    run(test)
    assert not waits
    assert len(turns_of_writes) == len(set(turns_of_writes)) >= length // 20_000


@pytest.mark.parametrize("length", [100, SMALL_FILE_BYTES, 1 << 20])
def test_a_file_shorter_than_promised_is_an_error(tmp_path: Path, length: int) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 50)
    sender, receiver = channel_pair()
    file = Files().open(str(path))
    with sender, receiver:
        queue = OutputQueue(sender)
        queue.add([b"header", FileSlice(file, 0, length)])
        with pytest.raises(TruncatedFileError):
            drain(queue, receiver)


def test_file_parts_between_headers_over_a_connection(data_file: OpenFile) -> None:
    lengths = [0, 1, SMALL_FILE_BYTES - 1, SMALL_FILE_BYTES, 300_000, 3_000_000]

    def respond(_: Connection, payload: bytes) -> Answer:
        first, second = (lengths[int(index)] for index in payload.split())
        size = (first + second + 3).to_bytes(4, "big")
        return [size, b"a", FileSlice(data_file, 5, first), b"b", FileSlice(data_file, 9, second), b"c"]

    async def test() -> None:
        async with network(Handler(respond)) as net:
            client = await net.connect()
            pairs = list(itertools.product(range(len(lengths)), repeat=2))
            sending = asyncio.ensure_future(client.send(b"".join(framed(b"%d %d" % pair) for pair in pairs)))
            for first, second in pairs:
                expected = b"a" + DATA[5 : 5 + lengths[first]] + b"b" + DATA[9 : 9 + lengths[second]] + b"c"
                assert await client.read_frame() == expected
            await sending

    run(test)


def test_a_truncated_file_closes_its_connection_only(tmp_path: Path) -> None:
    path = tmp_path / "short"
    path.write_bytes(b"x" * 50_000)

    async def test() -> None:
        part = FileSlice(Files().open(str(path)), 0, 100_000)
        responses = {b"bad": [b"\0\1\x86\xa0", part], b"good": [framed(b"good")]}
        async with network(Handler(lambda connection, payload: list(responses[payload]))) as net:
            bad, good = await net.connect(), await net.connect()
            await bad.send(framed(b"bad"))
            assert len(await bad.read_to_end()) <= 50_004
            assert await good.ask(b"good") == b"good"

    run(test)
