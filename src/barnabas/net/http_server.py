"""A small HTTP server beside the broker's listeners, for monitoring: few connections, each bounded in bytes and time.

Its owner gives a function from request to response, which may come later. When all connections are in use, the one that
has waited longest without a request makes room; requests that are worked on are never cut off.
"""

import asyncio
import logging
import socket
from collections.abc import Callable
from functools import partial
from typing import Any

from barnabas.machines.timing_wheel import TimerHandle
from barnabas.net.deferred import Deferred
from barnabas.net.http_request import (
    HEAD_END,
    HEAD_MAX_BYTES,
    BadRequestError,
    HttpRequest,
    HttpResponse,
    parse_request,
    response_head,
    text_response,
)
from barnabas.net.listening import AcceptLoop
from barnabas.net.settings import Listener
from barnabas.net.timers import Timers
from barnabas.transport.channel import WOULD_BLOCK, Channel, Network, SocketOptions
from barnabas.transport.output import OutputQueue

logger = logging.getLogger(__name__)

MAX_CONNECTIONS = 64
REQUEST_TIMEOUT_MS = 10_000
"""For the whole head of a request, and as long an open connection may be idle while others want its place."""
IDLE_TIMEOUT_MS = 120_000
SEND_TIMEOUT_MS = 30_000
LINGER_MS = 1_000
"""After a refusal the rest of what the peer sends is read for so long: else it might never see the response."""
NEXT_PORTS = 32
Handle = Callable[[HttpRequest], HttpResponse | Deferred[HttpResponse]]


class HttpServer:
    def __init__(self, handle: Handle, network: Network, timers: Timers) -> None:
        self.handle = handle
        self._network = network
        self.timers = timers
        self.loop = asyncio.get_running_loop()
        self.scratch = memoryview(bytearray(HEAD_MAX_BYTES))
        self._accept_loops: list[AcceptLoop] = []
        self._connections: dict[HttpConnection, None] = {}

    @property
    def address(self) -> tuple[str, int] | None:
        return self._accept_loops[0].address if self._accept_loops else None

    @property
    def connection_count(self) -> int:
        return len(self._connections)

    async def start(self, host: str, port: int, *, or_next: bool) -> None:
        """Raises OSError if the port is taken, with `or_next` if the next ones are too."""
        for number in range(NEXT_PORTS if or_next and port else 1):
            try:
                channels = await self._network.listen(host, port + number, MAX_CONNECTIONS, SocketOptions())
                break
            except OSError:
                if number == (NEXT_PORTS if or_next and port else 1) - 1:
                    raise
        listener = Listener(name="metrics", host=host, port=port)
        for channel in channels:
            accept_loop = AcceptLoop(self.loop, listener, channel, SocketOptions, lambda: True, self._on_accepted)
            self._accept_loops.append(accept_loop)
            accept_loop.resume()

    def stop(self) -> None:
        for accept_loop in self._accept_loops:
            accept_loop.close()
        self._accept_loops.clear()
        for connection in list(self._connections):
            connection.close()

    def _on_accepted(self, channel: Channel, address: Any, listener: Listener) -> None:
        if len(self._connections) >= MAX_CONNECTIONS:
            waiting = next((each for each in self._connections if each.is_waiting), None)
            if waiting is None:
                channel.close()
                return
            waiting.close()
        self._connections[HttpConnection(self, channel)] = None

    def on_closed(self, connection: "HttpConnection") -> None:
        self._connections.pop(connection, None)

    def on_request_done(self, connection: "HttpConnection") -> None:
        """It is the one to wait for the shortest time now."""
        if connection in self._connections:
            del self._connections[connection]
            self._connections[connection] = None


class HttpConnection:
    __slots__ = (
        "_channel",
        "_closed",
        "_input",
        "_keep_alive",
        "_lingers",
        "_output",
        "_reading",
        "_server",
        "_timer",
        "_writing",
        "is_waiting",
    )

    def __init__(self, server: HttpServer, channel: Channel) -> None:
        self._server = server
        self._channel = channel
        self._output = OutputQueue(channel)
        self._input = bytearray()
        self._keep_alive = True
        self._closed = self._lingers = self._reading = self._writing = False
        self.is_waiting = True
        """For a request, or the rest of one."""
        self._timer: TimerHandle[Callable[[], None]] = server.timers.call_after(REQUEST_TIMEOUT_MS, self.close)
        self._watch_readable(True)

    def close(self) -> None:
        if self._closed:
            return
        self._closed = True
        self._server.timers.cancel(self._timer)
        self._watch_readable(False)
        self._watch_writable(False)
        self._output.clear()
        self._channel.close()
        self._server.on_closed(self)

    def _restart_timer(self, delay_ms: int) -> None:
        self._server.timers.cancel(self._timer)
        self._timer = self._server.timers.call_after(delay_ms, self.close)

    def _watch_readable(self, wanted: bool) -> None:
        if wanted != self._reading:
            self._reading = wanted
            loop, fd = self._server.loop, self._channel.fileno()
            loop.add_reader(fd, self._on_readable) if wanted else loop.remove_reader(fd)

    def _watch_writable(self, wanted: bool) -> None:
        if wanted != self._writing:
            self._writing = wanted
            loop, fd = self._server.loop, self._channel.fileno()
            loop.add_writer(fd, self._write) if wanted else loop.remove_writer(fd)

    def _on_readable(self) -> None:
        try:
            received = self._channel.recv_into(self._server.scratch)
        except WOULD_BLOCK:
            return
        except OSError:
            self.close()
            return
        if not received:
            self.close()
        elif not self._lingers:
            if not self._input:
                self._restart_timer(REQUEST_TIMEOUT_MS)
            self._input += self._server.scratch[:received]
            self._take_request()

    def _take_request(self) -> None:
        end = self._input.find(HEAD_END)
        if end < 0 and len(self._input) <= HEAD_MAX_BYTES:
            return
        self.is_waiting = False
        self._watch_readable(False)
        try:
            if end < 0 or end > HEAD_MAX_BYTES:
                raise BadRequestError(431, f"a request may have {HEAD_MAX_BYTES} bytes")
            request = parse_request(bytes(self._input[:end]))
        except BadRequestError as error:
            self._keep_alive = False
            self._lingers = True
            self._respond(text_response(error.status, f"{error}\n"))
            return
        del self._input[: end + len(HEAD_END)]
        self._keep_alive = request.keep_alive
        try:
            response = self._server.handle(request)
        except Exception:
            logger.exception("%s could not be served", request.path)
            response = text_response(500, "the request failed\n")
        if isinstance(response, Deferred):
            response.when_done(partial(self._on_response, request.wants_body))
        else:
            self._respond(response, request.wants_body)

    def _on_response(self, with_body: bool, response: Deferred[HttpResponse]) -> None:
        if self._closed:
            return
        if response.completed:
            self._respond(response.value, with_body)
        else:
            logger.error("a request to the metrics listener failed", exc_info=response.error)
            self._respond(text_response(500, "the request failed\n"), with_body)

    def _respond(self, response: HttpResponse, with_body: bool = True) -> None:
        self._restart_timer(SEND_TIMEOUT_MS)
        self._output.add([response_head(response, keep_alive=self._keep_alive)])
        if with_body:
            self._output.add(response.parts)
        self._write()

    def _write(self) -> None:
        before = self._output.sent_bytes
        try:
            finished = self._output.write()
        except OSError:
            self.close()
            return
        if not finished:
            if self._output.sent_bytes != before:
                self._restart_timer(SEND_TIMEOUT_MS)
            self._watch_writable(True)
            return
        self._watch_writable(False)
        if self._lingers:
            self._linger()
        elif not self._keep_alive:
            self.close()
        else:
            self.is_waiting = True
            self._server.on_request_done(self)
            self._restart_timer(IDLE_TIMEOUT_MS)
            self._watch_readable(True)
            if self._input:
                # On a later turn: a peer that pipelines without end must not keep the loop.
                self._server.loop.call_soon(self._take_pipelined)

    def _take_pipelined(self) -> None:
        if not self._closed and self.is_waiting:
            self._take_request()

    def _linger(self) -> None:
        self._restart_timer(LINGER_MS)
        self.is_waiting = True  # for nothing: it may make room
        try:
            self._channel.shutdown(socket.SHUT_WR)
        except OSError:
            self.close()
            return
        self._watch_readable(True)
