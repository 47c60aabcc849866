"""TLS on a socket: a channel like any other, for clients and for servers.

Files cannot be handed to the kernel, so they are read in slices. OpenSSL wants a write that could not be finished to be
repeated with the same bytes, or with more of them: so what is sent first must depend on nothing but the front of the
queue. It also reads ahead: what `pending` counts must be read before waiting for the socket again.
"""

import asyncio
import socket
import ssl
from collections.abc import Sequence

from barnabas.transport.parts import Memory, PartFile

RECORD_BYTES = 16 * 1024
"""What TLS encrypts at once. OpenSSL takes one record per call."""


class TlsChannel(ssl.SSLSocket):
    more_flag = 0
    is_encrypted = True

    def sendmsg(self, parts: Sequence[Memory], ancillary: object = (), flags: int = 0) -> int:  # type: ignore[override]
        """One record: of the first part, or of several that are smaller than one."""
        size = len(parts[0])
        if size >= RECORD_BYTES:
            return self.send(parts[0])
        joined = [parts[0]]
        for part in parts[1:]:
            if size >= RECORD_BYTES:
                break
            joined.append(part[: RECORD_BYTES - size])
            size += len(joined[-1])
        return self.send(b"".join(joined))

    def send_file(self, file: PartFile, position: int, count: int) -> int:
        content = file.pread(min(count, RECORD_BYTES), position)
        return self.send(content) if content else 0

    def expect(self, missing_bytes: int) -> None:
        """A selector sees encrypted bytes, not those that are missing."""


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
