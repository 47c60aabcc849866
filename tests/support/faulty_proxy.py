"""A proxy between a client and a broker (ours or any other) that loses, delays and cuts what it is told to.

    with FaultyProxy(broker.bootstrap) as proxy:
        client = Producer(proxy.bootstrap)
        proxy.drop_answer("Produce")                    # carried out, the connection is cut instead of the answer
        proxy.swallow_answers("Produce")                # carried out, the client waits for an answer that never comes
        proxy.drop_request("Produce")                   # not carried out, the connection is cut
        proxy.delay_answer("Fetch", seconds=0.2, count=None)
        proxy.cut_answer("Metadata", after_bytes=10)    # the answer breaks off
        proxy.on_answer("Heartbeat", lambda response: ...)   # change the decoded answer in place
        proxy.refuse(); proxy.accept()                  # nothing listens / listens again, on the same port
        proxy.black_hole(); proxy.heal()                # connections are taken, and nothing ever comes
        proxy.slice_answers(1)                          # one byte at a time
        proxy.cut_connections()
        proxy.requests                                  # ["ApiVersions", "Metadata", ...] in order of arrival

The broker's address in Metadata, FindCoordinator and DescribeCluster is replaced by the proxy's, so clients stay
with it. It runs on a loop of its own in a thread; faults may be set from any thread, and count=None lasts until
`heal()`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from barnabas.protocol import ApiKey, decode, decode_request_header, decode_response_header, encode_response
from barnabas.protocol.message_types import response_type

SIZE = struct.Struct(">i")
CORRELATION_ID = struct.Struct(">i")
NAMES_ADDRESSES = (ApiKey.METADATA, ApiKey.FIND_COORDINATOR, ApiKey.DESCRIBE_CLUSTER)


class Cut(Exception):
    """This connection ends here."""


@dataclass(slots=True)
class Fault:
    kind: str
    api: str | None
    """None is every API."""
    left: int | None
    seconds: float = 0.0
    after_bytes: int = 0
    change: Callable[[Any], None] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    name: str
    api_key: int
    version: int


class FaultyProxy:
    def __init__(self, target: str) -> None:
        self._target = target
        self.requests: list[str] = []
        """Names of the APIs that were asked for, as they arrived."""
        self.connection_count = 0
        """Connections that were taken so far."""
        self._faults: list[Fault] = []
        self._lock = threading.Lock()
        self._slice_bytes = 0
        self._black_hole = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="faulty-proxy", daemon=True)
        self._listening: socket.socket | None = None
        self._connections: set[asyncio.Task[None]] = set()
        self._port = 0
        self.changed = threading.Condition()
        """Notified at each request and answer; see `wait_for`."""

    # --- faults ---

    def drop_request(self, api: str | None = None, count: int | None = 1) -> None:
        self._add(Fault("drop_request", api, count))

    def drop_answer(self, api: str | None = None, count: int | None = 1) -> None:
        self._add(Fault("drop_answer", api, count))

    def swallow_answers(self, api: str | None = None, count: int | None = 1) -> None:
        """From this answer on nothing more arrives on that connection."""
        self._add(Fault("swallow", api, count))

    def delay_answer(self, api: str | None = None, *, seconds: float, count: int | None = 1) -> None:
        self._add(Fault("delay", api, count, seconds=seconds))

    def cut_answer(self, api: str | None = None, *, after_bytes: int, count: int | None = 1) -> None:
        self._add(Fault("cut", api, count, after_bytes=after_bytes))

    def on_answer(self, api: str, change: Callable[[Any], None], count: int | None = 1) -> None:
        self._add(Fault("change", api, count, change=change))

    def slice_answers(self, size: int) -> None:
        """Answers arrive in pieces of that many bytes; 0 is whole again."""
        self._slice_bytes = size

    def black_hole(self) -> None:
        """Connections stay and new ones are taken, but nothing passes in either direction."""
        self._black_hole = True

    def refuse(self) -> None:
        """Close the port and everything that came through it."""
        self._call(self._stop_listening())
        self.cut_connections()

    def accept(self) -> None:
        self._call(self._listen())

    def cut_connections(self) -> None:
        self._call(self._cut_all())

    def heal(self) -> None:
        """No more faults; connections that are in a black hole are cut."""
        with self._lock:
            self._faults.clear()
        self._slice_bytes = 0
        if self._black_hole:
            self._black_hole = False
            self.cut_connections()

    def wait_for(self, condition: Callable[[], bool], timeout: float = 20.0) -> None:
        """Until it holds; looked at after every request and answer."""
        with self.changed:
            assert self.changed.wait_for(condition, timeout), f"never came true; requests: {self.requests[-20:]}"

    # --- life ---

    @property
    def bootstrap(self) -> str:
        return f"127.0.0.1:{self._port}"

    def __enter__(self) -> Self:
        self._thread.start()
        self._call(self._listen())
        return self

    def __exit__(self, *_: object) -> None:
        self._call(self._stop_listening())
        self._call(self._cut_all())
        self._call(asyncio.sleep(0.01))  # and those that were cut as far as being closed
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()

    def _call(self, work: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(work, self._loop).result()

    async def _listen(self) -> None:
        while self._listening is None:
            try:
                self._listening = socket.create_server(("127.0.0.1", self._port))
            except OSError:
                # Somebody's outgoing connection got this very port meanwhile: it will not keep it for long.
                if not self._port:
                    raise
                await asyncio.sleep(0.05)
            else:
                self._port = self._listening.getsockname()[1]
                self._listening.setblocking(False)
                # Not asyncio's server: that loses a connection which comes while it is being closed.
                self._loop.add_reader(self._listening, self._on_acceptable, self._listening)

    async def _stop_listening(self) -> None:
        if self._listening is not None:
            self._loop.remove_reader(self._listening)
            self._listening.close()
            self._listening = None

    async def _cut_all(self) -> None:
        tasks = list(self._connections)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    # --- connections ---

    def _on_acceptable(self, listening: socket.socket) -> None:
        try:
            sock, _ = listening.accept()
        except OSError:
            return  # gone again
        sock.setblocking(False)
        self.connection_count += 1
        task = self._loop.create_task(self._serve(sock))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)
        task.add_done_callback(lambda _: sock.close())  # it may be cut before it has begun

    async def _serve(self, sock: socket.socket) -> None:
        host, _, port = self._target.rpartition(":")
        writers: list[asyncio.StreamWriter] = []
        try:
            reader, writer = await asyncio.open_connection(sock=sock)
            writers.append(writer)
            broker_reader, broker_writer = await asyncio.open_connection(host.strip("[]"), int(port))
            writers.append(broker_writer)
            asked: deque[Asked] = deque()
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pass_requests(reader, broker_writer, asked))
                group.create_task(self._pass_answers(broker_reader, writer, asked))
        except* (Cut, OSError, asyncio.IncompleteReadError):
            pass
        finally:
            for each in writers:
                _reset(each)

    async def _pass_requests(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Asked]
    ) -> None:
        while True:
            frame = await _read_frame(reader)
            header = decode_request_header(frame)
            name = _title(header.api_key)
            self._note(name)
            if self._black_hole:
                await asyncio.Event().wait()
            if self._take("drop_request", name):
                raise Cut
            if not (header.api_key == ApiKey.PRODUCE and _acks(frame, header.body_position, header.api_version) == 0):
                asked.append(Asked(name, header.api_key, header.api_version))
            writer.write(SIZE.pack(len(frame)) + frame)
            await writer.drain()

    async def _pass_answers(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: deque[Asked]
    ) -> None:
        while True:
            frame = await _read_frame(reader)
            request = asked.popleft()
            if self._black_hole or self._take("swallow", request.name):
                self._note()
                await asyncio.Event().wait()
            if self._take("drop_answer", request.name):
                self._note()
                raise Cut
            delay = self._take("delay", request.name)
            if delay is not None:
                await asyncio.sleep(delay.seconds)
            whole = self._rewritten(request, frame)
            cut = self._take("cut", request.name)
            await self._write(writer, whole if cut is None else whole[: cut.after_bytes])
            self._note()
            if cut is not None:
                await asyncio.sleep(0.01)  # what was written gets through before the reset
                raise Cut

    async def _write(self, writer: asyncio.StreamWriter, data: bytes) -> None:
        size = self._slice_bytes or len(data)
        for start in range(0, len(data), size or 1):
            writer.write(data[start : start + size])
            await writer.drain()
            if self._slice_bytes:
                await asyncio.sleep(0)

    # --- what goes through ---

    def _rewritten(self, request: Asked, frame: bytes) -> bytes:
        """The whole frame, with the proxy's address in place of the broker's and the changes that are asked for."""
        change = self._take("change", request.name)
        if change is None and request.api_key not in NAMES_ADDRESSES:
            return SIZE.pack(len(frame)) + frame
        response = response_type(ApiKey(request.api_key))  # type: ignore[call-arg]
        correlation_id, position = decode_response_header(response, request.version, frame)
        message, _ = decode(response, request.version, frame, position)
        for named in (message, *getattr(message, "brokers", ()), *getattr(message, "coordinators", ())):
            if getattr(named, "host", ""):
                named.host, named.port = "127.0.0.1", self._port
        if change is not None and change.change is not None:
            change.change(message)
        return encode_response(message, request.version, correlation_id)

    def _add(self, fault: Fault) -> None:
        with self._lock:
            self._faults.append(fault)

    def _take(self, kind: str, api: str) -> Fault | None:
        with self._lock:
            for fault in self._faults:
                if fault.kind == kind and fault.api in (None, api) and fault.left != 0:
                    if fault.left is not None:
                        fault.left -= 1
                    return fault
        return None

    def _note(self, request: str | None = None) -> None:
        with self.changed:
            if request is not None:
                self.requests.append(request)
            self.changed.notify_all()


def _reset(writer: asyncio.StreamWriter) -> None:
    """As when a process dies, and no waiting for what nobody reads."""
    sock: socket.socket = writer.get_extra_info("socket")
    with contextlib.suppress(OSError):  # closed already
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    writer.transport.abort()


async def _read_frame(reader: asyncio.StreamReader) -> bytes:
    (size,) = SIZE.unpack(await reader.readexactly(4))
    return await reader.readexactly(size)


def _title(api_key: int) -> str:
    return "".join(word.capitalize() for word in ApiKey(api_key).name.split("_"))  # type: ignore[call-arg]


def _acks(frame: bytes, position: int, version: int) -> int:
    """acks of a Produce request, which has no answer if they are 0; before them stands the transactional id."""
    if version >= 9:
        length = frame[position]
        assert length < 128, "a transactional id longer than tests use"
        position += max(1, length)
    elif version >= 3:
        (length,) = struct.unpack_from(">h", frame, position)
        position += 2 + max(0, length)
    acks: int = struct.unpack_from(">h", frame, position)[0]
    return acks
