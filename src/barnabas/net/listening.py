"""The accept loop of one listener.

Owned by `Server`. Accepting pauses while the server is full (`max.connections`: as in Kafka the newcomers wait in the
backlog) and, for a moment, when the process has run out of file descriptors; neither ends the listener.
"""

import asyncio
import errno
import logging
from collections.abc import Callable
from typing import Any

from barnabas.net.settings import Listener
from barnabas.transport.channel import Channel, ListeningChannel, SocketOptions

logger = logging.getLogger(__name__)

ACCEPTS_PER_TURN = 64
BACK_OFF_SECONDS = 0.25
OUT_OF_RESOURCES = {errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM}

OnAccepted = Callable[[Channel, Any, Listener], None]


class AcceptLoop:
    """`may_accept` says whether there is room for one more; `on_accepted` takes the connection over.

    `options` is called for each connection, because settings change while a broker runs.
    """

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        listener: Listener,
        channel: ListeningChannel,
        options: Callable[[], SocketOptions],
        may_accept: Callable[[], bool],
        on_accepted: OnAccepted,
    ) -> None:
        self._loop = loop
        self.listener = listener
        self._channel = channel
        self._options = options
        name = channel.getsockname()
        self.address: tuple[str, int] = (name[0], name[1])
        self._may_accept = may_accept
        self._on_accepted = on_accepted
        self._accepting = False
        self._back_off: asyncio.TimerHandle | None = None
        self._out_of_resources = False
        self.closed = False

    def resume(self) -> None:
        """There is room again (or for the first time)."""
        if not self.closed and not self._accepting and self._back_off is None:
            self._accepting = True
            self._loop.add_reader(self._channel.fileno(), self._on_readable)

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        if self._back_off is not None:
            self._back_off.cancel()
        self._pause()
        self._channel.close()

    def _pause(self) -> None:
        if self._accepting:
            self._accepting = False
            self._loop.remove_reader(self._channel.fileno())

    def _on_readable(self) -> None:
        for _ in range(ACCEPTS_PER_TURN):
            if not self._may_accept():
                self._pause()
                return
            try:
                accepted, address = self._channel.accept_channel(self._options())
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._on_accept_failed(error)
                return
            self._out_of_resources = False
            self._on_accepted(accepted, address, self.listener)

    def _on_accept_failed(self, error: OSError) -> None:
        """Try again in a moment: the socket stays readable, so going on at once would spin."""
        if error.errno not in OUT_OF_RESOURCES:
            logger.warning("listener %s: accept failed: %s", self.listener.name, error)
        elif not self._out_of_resources:
            self._out_of_resources = True
            logger.error("listener %s: %s; new connections wait until some are closed", self.listener.name, error)
        self._pause()
        self._back_off = self._loop.call_later(BACK_OFF_SECONDS, self._after_back_off)

    def _after_back_off(self) -> None:
        self._back_off = None
        self.resume()
