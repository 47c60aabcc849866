"""TLS handshakes of a server: non-blocking, with a time limit, and a few milliseconds of work per turn of the loop.

Owned by `Server`. A handshake costs more than many requests, so those that are ready wait in a queue: thousands of
peers that connect at once must not hold up the connections that are served. OpenSSL bounds what a peer may send.
"""

import asyncio
import logging
import ssl
import time
from collections import deque
from collections.abc import Callable
from typing import Any

from barnabas.net.settings import Listener
from barnabas.net.timers import Timers
from barnabas.transport.tls import TlsChannel

logger = logging.getLogger(__name__)

TURN_SECONDS = 0.002
NOT_TLS = ("WRONG_VERSION_NUMBER", "HTTP_REQUEST", "HTTPS_PROXY_REQUEST", "UNKNOWN_PROTOCOL", "RECORD_LAYER_FAILURE")

OnDone = Callable[[TlsChannel, tuple[str, int], Listener], None]
OnFailed = Callable[[str, Listener], None]


class Handshake:
    __slots__ = ("channel", "is_over", "listener", "peer", "timer", "watch")

    def __init__(self, channel: TlsChannel, peer: tuple[str, int], listener: Listener) -> None:
        self.channel = channel
        self.peer = peer
        self.listener = listener
        self.timer: Any = None
        self.watch: Callable[[int], object] | None = None  # what takes the descriptor off the loop again
        self.is_over = False


class TlsHandshakes:
    """`on_done` takes an encrypted channel over; `on_failed` is told the host and listener of one that is closed."""

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers, on_done: OnDone, on_failed: OnFailed) -> None:
        self._loop = loop
        self._timers = timers
        self._on_done = on_done
        self._on_failed = on_failed
        self._ready: deque[Handshake] = deque()
        self._under_way: dict[Handshake, None] = {}
        self._has_turn = False

    def __len__(self) -> int:
        return len(self._under_way)

    def begin(self, channel: TlsChannel, peer: tuple[str, int], listener: Listener, timeout_ms: int) -> None:
        handshake = Handshake(channel, peer, listener)
        self._under_way[handshake] = None
        handshake.timer = self._timers.call_after(timeout_ms, lambda: self._on_late(handshake, timeout_ms))
        self._make_ready(handshake)

    def close(self) -> None:
        for handshake in list(self._under_way):
            self._fail(handshake)

    def _make_ready(self, handshake: Handshake) -> None:
        self._unwatch(handshake)
        if handshake.is_over:
            return
        self._ready.append(handshake)
        if not self._has_turn:
            self._has_turn = True
            self._loop.call_soon(self._take_turn)

    def _take_turn(self) -> None:
        ends = time.monotonic() + TURN_SECONDS
        ready = self._ready
        while ready:
            self._step(ready.popleft())
            if time.monotonic() >= ends:
                break
        self._has_turn = bool(ready)
        if ready:
            self._loop.call_soon(self._take_turn)

    def _step(self, handshake: Handshake) -> None:
        if handshake.is_over:
            return
        loop, descriptor = self._loop, handshake.channel.fileno()
        try:
            handshake.channel.do_handshake()
        except ssl.SSLWantReadError:
            loop.add_reader(descriptor, self._make_ready, handshake)
            handshake.watch = loop.remove_reader
        except ssl.SSLWantWriteError:
            loop.add_writer(descriptor, self._make_ready, handshake)
            handshake.watch = loop.remove_writer
        except OSError as error:
            logger.info("listener %s: %s: %s: closing", handshake.listener.name, handshake.peer[0], why_failed(error))
            self._fail(handshake)
        else:
            self._end(handshake)
            self._on_done(handshake.channel, handshake.peer, handshake.listener)

    def _on_late(self, handshake: Handshake, timeout_ms: int) -> None:
        logger.info(
            "listener %s: %s: no TLS handshake within %d ms: closing",
            handshake.listener.name,
            handshake.peer[0],
            timeout_ms,
        )
        self._fail(handshake)

    def _fail(self, handshake: Handshake) -> None:
        self._end(handshake)
        handshake.channel.close()
        self._on_failed(handshake.peer[0], handshake.listener)

    def _end(self, handshake: Handshake) -> None:
        handshake.is_over = True
        self._unwatch(handshake)
        self._timers.cancel(handshake.timer)
        del self._under_way[handshake]

    def _unwatch(self, handshake: Handshake) -> None:
        watch, handshake.watch = handshake.watch, None
        if watch is not None:
            watch(handshake.channel.fileno())


def why_failed(error: OSError) -> str:
    if isinstance(error, ssl.SSLEOFError | ssl.SSLZeroReturnError | ConnectionError):
        return "it closed the connection during the TLS handshake"
    if isinstance(error, ssl.SSLError):
        if error.reason in NOT_TLS:
            return "it sent plain text, but this listener takes TLS"
        if error.reason == "PEER_DID_NOT_RETURN_A_CERTIFICATE":
            return "it presented no certificate, which ssl.client.auth=required demands"
        return f"the TLS handshake failed ({error.reason})"
    return f"the TLS handshake failed ({error.strerror})"
