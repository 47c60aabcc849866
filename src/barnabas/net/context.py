"""What the connections of one server share: loop, handler, buffers, budget, and the flush at the end of a turn.

Made by `Server`, used by `Connection`. It exists once per server, never per process.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Protocol

from barnabas.clock import Clock
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.net.resting import RestingConnections
from barnabas.net.settings import Listener, NetworkSettings
from barnabas.net.timers import Timers
from barnabas.transport.budget import MemoryBudget
from barnabas.transport.shared_buffers import SharedBuffers

if TYPE_CHECKING:
    from barnabas.net.connection import Connection


class RequestHandler(Protocol):
    def on_request(self, connection: "Connection", frame: memoryview) -> bytes | Parts | Deferred[Parts] | None:
        """Handle one frame (without its size prefix): what to send now, a Deferred of it, or None for no response.

        The frame may be written to, and is valid only until this returns: whatever outlives the call must be copied. A
        ProtocolError closes the connection quietly; any other exception closes it with a traceback in the log.
        """
        ...

    def on_closed(self, connection: "Connection") -> None:
        """The connection is gone, for whatever reason; called once, its open replies have been abandoned before."""
        ...


class ServedConnection(Protocol):
    """What a server and its context need of a connection, whatever protocol it speaks."""

    peer_host: str
    listener: Listener

    @property
    def last_active_ms(self) -> int:
        """When the peer last sent something."""
        ...

    def flush(self) -> None: ...
    def finish(self) -> None:
        """Read no more, send what is on its way, then close."""
        ...

    def close(self) -> None: ...


class ConnectionContext:
    __slots__ = (
        "_to_flush",
        "budget",
        "buffers",
        "clock",
        "handler",
        "loop",
        "on_closed",
        "resting",
        "settings",
        "timers",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        timers: Timers,
        settings: NetworkSettings,
        handler: RequestHandler,
        on_closed: Callable[[ServedConnection], None],
        resting: RestingConnections | None,
    ) -> None:
        """`resting`: heartbeat-only connections rest there, if they can."""
        self.loop = loop
        self.clock = clock
        self.timers = timers
        self.settings = settings
        self.handler = handler
        self.on_closed = on_closed
        self.buffers = SharedBuffers()
        self.resting = resting
        self.budget = MemoryBudget(settings.queued_max_request_bytes)
        self._to_flush: dict[ServedConnection, None] = {}

    def flush_soon(self, connection: ServedConnection) -> None:
        """Write this connection's finished replies on the next turn, together with all that finish until then."""
        if not self._to_flush:
            self.loop.call_soon(self._flush)
        self._to_flush[connection] = None

    def _flush(self) -> None:
        connections = self._to_flush
        self._to_flush = {}
        for connection in connections:
            connection.flush()
