"""TLS on a socket: a channel like any other, for clients and for servers.

Files cannot be handed to the kernel, so they are read in slices. OpenSSL reads ahead: what `pending` counts must be
read before waiting for the socket again. And a write that could not be finished must be repeated with the same bytes.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence
from typing import Any

from barnabas.transport.parts import Memory, PartFile

RECORD_BYTES = 16 * 1024
"""What TLS encrypts at once; smaller parts are joined."""
SLICE_BYTES = 256 * 1024


class TlsChannel(ssl.SSLSocket):
    more_flag = 0
    is_encrypted = True
    _refused: Memory | None = None
    """What OpenSSL has begun to send. It is at the front of the caller's queue until it has gone out."""

    def send(self, data: Any, flags: int = 0) -> int:
        """A slice at a time, all of it or nothing."""
        if self._refused is not None:
            data = self._refused
        elif len(data) > SLICE_BYTES:
            data = memoryview(data)[:SLICE_BYTES]
        try:
            sent = super().send(data, flags)
        except (ssl.SSLWantWriteError, ssl.SSLWantReadError):
            self._refused = data
            raise
        self._refused = None
        return sent

    def sendmsg(self, parts: Sequence[Memory], ancillary: object = (), flags: int = 0) -> int:  # type: ignore[override]
        """The first part, or as many as fill a record."""
        joined: list[Memory] = []
        size = 0
        for part in parts:
            joined.append(part if size == 0 else part[: RECORD_BYTES - size])
            size += len(joined[-1])
            if size >= RECORD_BYTES:
                break
        return self.send(joined[0] if len(joined) == 1 else b"".join(joined))

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        content = file.pread(min(count, SLICE_BYTES), position)
        return self.send(content) if content else 0

    def expect(self, missing_bytes: int) -> None:
        """A selector sees encrypted bytes, not those that are missing."""


def wrap_server(sock: socket.socket, context: ssl.SSLContext) -> TlsChannel:
    """The server's end of an accepted connection, before its handshake. The socket is used up."""
    context.sslsocket_class = TlsChannel
    wrapped = context.wrap_socket(sock, server_side=True, do_handshake_on_connect=False)
    assert isinstance(wrapped, TlsChannel)
    return wrapped


async def start_tls(sock: socket.socket, context: ssl.SSLContext, server_hostname: str | None) -> TlsChannel:
    """The socket is connected and non-blocking, and used up. Raises OSError (ssl.SSLError is one)."""
    context.sslsocket_class = TlsChannel
    wrapped = context.wrap_socket(
        sock, server_side=server_hostname is None, server_hostname=server_hostname, do_handshake_on_connect=False
    )
    assert isinstance(wrapped, TlsChannel)
    try:
        while True:
            try:
                wrapped.do_handshake()
                return wrapped
            except ssl.SSLWantReadError:
                await _ready(wrapped, reading=True)
            except ssl.SSLWantWriteError:
                await _ready(wrapped, reading=False)
    except BaseException:
        wrapped.close()
        raise


def _done(ready: "asyncio.Future[None]") -> None:
    if not ready.done():
        ready.set_result(None)


async def _ready(sock: socket.socket, *, reading: bool) -> None:
    loop = asyncio.get_running_loop()
    ready: asyncio.Future[None] = loop.create_future()
    watch, forget = (loop.add_reader, loop.remove_reader) if reading else (loop.add_writer, loop.remove_writer)
    descriptor = sock.fileno()
    watch(descriptor, _done, ready)
    try:
        await ready
    finally:
        forget(descriptor)
