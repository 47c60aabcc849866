"""The network server of a broker: listeners, connection limits, and an orderly end.

The broker makes one, gives it a handler, and awaits `start` and `stop`. Several may live in one process and on one
loop; they share nothing.
"""

import asyncio
import logging
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from barnabas.clock import Clock, SystemClock
from barnabas.net.connection import Connection
from barnabas.net.connection_limits import ConnectionLimits
from barnabas.net.context import ConnectionContext, RequestHandler, ServedConnection
from barnabas.net.listening import AcceptLoop
from barnabas.net.resting import SUPPORTED as RESTING_IS_SUPPORTED
from barnabas.net.resting import RestingConnections
from barnabas.net.settings import Listener, NetworkSettings
from barnabas.net.timers import Timers
from barnabas.net.tls_handshakes import TlsHandshakes
from barnabas.transport.budget import MemoryBudget
from barnabas.transport.channel import Channel, Network, SocketOptions
from barnabas.transport.system import SystemNetwork

logger = logging.getLogger(__name__)


class Server:
    def __init__(
        self,
        handler: RequestHandler,
        listeners: Sequence[Listener],
        settings: NetworkSettings | None = None,
        *,
        clock: Clock | None = None,
        timers: Timers | None = None,
        network: Network | None = None,
    ) -> None:
        self._network: Network = network or SystemNetwork()
        self._handler = handler
        self._listeners = listeners
        self._settings = settings or NetworkSettings()
        self._clock = clock or SystemClock()
        self._timers = timers
        self._owns_timers = timers is None
        self._context: ConnectionContext | None = None
        self._handshakes: TlsHandshakes | None = None
        self._accept_loops: list[AcceptLoop] = []
        self._connections: dict[ServedConnection, None] = {}
        self._connections_by_ip: dict[str, int] = {}
        self._limits = ConnectionLimits(self._clock, self._settings, [each.name for each in listeners])
        self._throttled: set[str] = set()
        """Listeners that accept nothing for a while."""
        self._held_back: dict[Channel, None] = {}
        """What is neither served nor refused yet."""
        self.throttle_address: Callable[[str], int] = lambda _: 0
        """Counts a new connection of an address; milliseconds if there are too many of them."""
        self._all_closed: asyncio.Event = asyncio.Event()

    @property
    def addresses(self) -> dict[str, tuple[str, int]]:
        """Where each listener really listens, by its name; known after `start`."""
        addresses: dict[str, tuple[str, int]] = {}
        for accept_loop in self._accept_loops:
            addresses.setdefault(accept_loop.listener.name, accept_loop.address)
        return addresses

    @property
    def port(self) -> int:
        """The port of the first listener."""
        return self._accept_loops[0].address[1]

    @property
    def connections(self) -> Sequence[Connection]:
        """Those of Kafka's clients."""
        return [each for each in self._connections if isinstance(each, Connection)]

    @property
    def budget(self) -> MemoryBudget:
        assert self._context is not None, "the server is not started"
        return self._context.budget

    async def start(self) -> None:
        """Bind, and serve at once. OSError if a listener cannot be bound."""
        await self.bind()
        self.serve()

    async def bind(self) -> None:
        """Bind everywhere, or nowhere: if one listener fails, all are closed and OSError is raised.

        Clients that connect from here on wait in the backlog until `serve`: a broker must know its ports before it can
        register, and be registered before it can respond.
        """
        loop = asyncio.get_running_loop()
        timers = self._timers = self._timers or Timers(loop, self._clock)
        can_rest = RESTING_IS_SUPPORTED and self._network.has_descriptors
        resting = RestingConnections(loop) if can_rest else None
        self._context = ConnectionContext(
            loop, self._clock, timers, self._settings, self._handler, self._on_connection_closed, resting
        )
        self._handshakes = TlsHandshakes(loop, timers, self._open, self._on_handshake_failed)
        try:
            for listener in self._listeners:
                await self._bind(loop, listener)
        except OSError:
            self._close_listeners()
            raise

    def serve(self) -> None:
        """Accept connections."""
        for accept_loop in self._accept_loops:
            accept_loop.resume()

    async def stop(self, drain_seconds: float = 5.0) -> None:
        """Accept and read no more, send the replies in progress for at most `drain_seconds`, close everything."""
        self._close_listeners()
        if self._handshakes is not None:
            self._handshakes.close()
        for channel in self._held_back:
            channel.close()
        self._held_back.clear()
        for connection in list(self._connections):
            connection.finish()
        if self._connections:
            self._all_closed.clear()
            try:
                await asyncio.wait_for(self._all_closed.wait(), drain_seconds)
            except TimeoutError:
                logger.info("closing %d connections that did not take their replies in time", len(self._connections))
        for connection in list(self._connections):
            connection.close()
        if self._context is not None and self._context.resting is not None:
            self._context.resting.close()
        if self._owns_timers and self._timers is not None:
            self._timers.close()

    def reconfigure(self, settings: NetworkSettings) -> None:
        """New limits on connections and queues. Sizes of buffers and frames are those of when a connection came."""
        self._settings = settings
        if self._context is not None:
            self._context.settings = settings
        self._limits.reconfigure(settings)
        self._close_excess()
        self._resume_accepting()

    async def _bind(self, loop: asyncio.AbstractEventLoop, listener: Listener) -> None:
        backlog = self._settings.socket_listen_backlog_size
        may_accept = partial(self._may_accept, listener.name)
        for channel in await self._network.listen(listener.host, listener.port, backlog, self._socket_options()):
            self._accept_loops.append(
                AcceptLoop(loop, listener, channel, self._socket_options, may_accept, self._on_accepted)
            )

    def _socket_options(self) -> SocketOptions:
        """A size of 0 leaves the choice to the system too."""
        settings = self._settings
        return SocketOptions(
            send_buffer_bytes=settings.socket_send_buffer_bytes or -1,
            same_host_send_buffer_bytes=settings.same_host_send_buffer_bytes or -1,
            receive_buffer_bytes=settings.socket_receive_buffer_bytes or -1,
        )

    def _may_accept(self, listener: str) -> bool:
        return listener not in self._throttled and self._limits.has_room(listener)

    def _on_accepted(self, channel: Channel, address: Any, listener: Listener) -> None:
        # On a socket for both families an IPv4 peer shows as ::ffff:1.2.3.4; limits and logs know it as 1.2.3.4.
        host: str = address[0].removeprefix("::ffff:")
        settings = self._settings
        # The lowest free number is taken: so many are open.
        if self._network.has_descriptors and channel.fileno() >= settings.max_descriptors:
            logger.warning("listener %s: %s is refused, few descriptors are left", listener.name, host)
            channel.close()
            return
        peer = (host, address[1])
        if throttle_ms := self._limits.add(listener.name):
            self._throttled.add(listener.name)
            self._hold_back(channel, throttle_ms, partial(self._end_throttle, channel, peer, listener))
        else:
            self._admit(channel, peer, listener)

    def _end_throttle(self, channel: Channel, peer: tuple[str, int], listener: Listener) -> None:
        """Too many came at once: this one is served now, the next ones have waited in the backlog."""
        self._throttled.discard(listener.name)
        self._admit(channel, peer, listener)
        self._resume_accepting()

    def _admit(self, channel: Channel, peer: tuple[str, int], listener: Listener) -> None:
        """Serve it, unless its address has too many connections or makes too many."""
        host = peer[0]
        if throttle_ms := self.throttle_address(host):
            # Refused late, as in Kafka, so that it does not come again at once.
            self._limits.remove(listener.name)
            self._hold_back(channel, throttle_ms, channel.close)
            return
        settings = self._settings
        limit = settings.max_connections_per_ip_overrides.get(host, settings.max_connections_per_ip)
        count = self._connections_by_ip.get(host, 0)
        if count >= limit:
            logger.info("listener %s: too many connections from %s (at most %d)", listener.name, host, limit)
            self._limits.remove(listener.name)
            channel.close()
            return
        assert self._handshakes is not None
        self._connections_by_ip[host] = count + 1
        security = listener.security
        context = None if security is None else security.tls_context()
        if security is None or context is None:
            self._open(channel, peer, listener)
            return
        try:
            encrypted = self._network.wrap_tls(channel, context)
        except OSError:  # gone again
            channel.close()
            self._forget(host, listener)
            return
        self._handshakes.begin(encrypted, peer, listener, security.handshake_timeout_ms)

    def _open(self, channel: Channel, peer: tuple[str, int], listener: Listener) -> None:
        assert self._context is not None
        if listener.connect is not None:
            self._connections[listener.connect(self._context, channel, peer, listener)] = None
            self._close_excess()
            return
        connection = Connection(self._context, channel, peer, listener)
        self._connections[connection] = None
        if listener.security is not None:
            listener.security.on_connected(connection, channel)
        self._close_excess()

    def _on_handshake_failed(self, host: str, listener: Listener) -> None:
        self._forget(host, listener)
        self._resume_accepting()

    def _hold_back(self, channel: Channel, delay_ms: int, then: Callable[[], None]) -> None:
        assert self._timers is not None
        self._held_back[channel] = None

        def end() -> None:
            if channel in self._held_back:
                del self._held_back[channel]
                then()

        self._timers.call_after(delay_ms, end)

    def _close_excess(self) -> None:
        """Only a protected listener, or a lower limit, leads to too many: the others' idlest connections are closed."""
        excess = self._limits.excess
        if excess > 0:
            candidates = [each for each in self._connections if not self._limits.is_protected(each.listener.name)]
            for connection in sorted(candidates, key=lambda each: each.last_active_ms)[:excess]:
                logger.info("listener %s: closing an idle connection, there are too many", connection.listener.name)
                connection.close()

    def _on_connection_closed(self, connection: ServedConnection) -> None:
        del self._connections[connection]
        self._forget(connection.peer_host, connection.listener)
        if not self._connections:
            self._all_closed.set()
        self._resume_accepting()

    def _forget(self, host: str, listener: Listener) -> None:
        self._limits.remove(listener.name)
        self._connections_by_ip[host] -= 1
        if not self._connections_by_ip[host]:
            del self._connections_by_ip[host]

    def _resume_accepting(self) -> None:
        for accept_loop in self._accept_loops:
            if self._may_accept(accept_loop.listener.name):
                accept_loop.resume()

    def _close_listeners(self) -> None:
        for accept_loop in self._accept_loops:
            accept_loop.close()
