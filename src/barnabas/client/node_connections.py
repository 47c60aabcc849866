"""The connections of one client: one for each node that is spoken to, opened when first needed.

A node that could not be reached is left alone for a while that grows (reconnect.backoff.ms). Bootstrap addresses are
nodes too, with negative ids. A group's coordinator has a connection of its own next to that of the broker it is, so
that its heartbeats never wait behind a long poll: `coordinator_id` gives it another id.
"""

import asyncio
import logging
from collections.abc import Callable, Iterator
from typing import Any

from barnabas.client.background import as_failure
from barnabas.client.connecting import Connector
from barnabas.client.connection import Connection
from barnabas.client.environment import environment
from barnabas.client.errors import ClientTimeoutError, ClosedError, UnreachableError
from barnabas.client.metadata import Node
from barnabas.client.options.common import CommonOptions
from barnabas.client.retry import Backoff, Deadline
from barnabas.clock import Clock
from barnabas.errors import KafkaError

logger = logging.getLogger(__name__)
COORDINATOR_BASE = (1 << 31) - 1
GONE = "the broker has left the cluster or has another address now"


def coordinator_id(node_id: int) -> int:
    """The id under which a node is spoken to as a group coordinator; the same call turns it back."""
    return COORDINATOR_BASE - node_id


def is_coordinator_id(node_id: int) -> bool:
    return node_id > COORDINATOR_BASE // 2


class NodeLink:
    """What is known about one way to a node."""

    __slots__ = ("backoff", "connection", "failure", "gone", "node", "not_before_ms", "opening")

    def __init__(self, node: Node, backoff: Backoff) -> None:
        self.node = node
        self.connection: Connection | None = None
        self.opening: asyncio.Task[Connection] | None = None
        self.backoff = backoff
        self.not_before_ms = 0
        self.failure: KafkaError | None = None
        """Why the last attempt failed."""
        self.gone = False
        """The broker is not at this address any more."""


class NodeConnections:
    """One connection per node, opened when it is needed."""

    def __init__(
        self, options: CommonOptions, clock: Clock, find_node: Callable[[int], Node | None], connector: Connector
    ) -> None:
        self._options = options
        self._clock = clock
        self._find_node = find_node
        self._connector = connector
        self._links: dict[int, NodeLink] = {}
        self._random = environment().new_random()
        self._closed = False

    def ready(self, node_id: int) -> Connection | None:
        """The connection, if there is one and a request may be sent now."""
        link = self._links.get(node_id)
        connection = None if link is None else link.connection
        return connection if connection is not None and connection.takes_requests else None

    async def get_ready(self, node_id: int, deadline: Deadline) -> Connection:
        """The connection to a node as soon as it takes requests. Raises UnreachableError, AuthenticationError."""
        while True:
            connection = await self.get(node_id, deadline)
            if connection.takes_requests:
                return connection
            if connection.session_ends and connection.gate is None:
                self._connector.begin_reauthentication(connection)
            if connection.gate is not None:
                await asyncio.shield(connection.gate)
            if connection.throttled_s * 1000 > deadline.remaining_ms:
                raise ClientTimeoutError(
                    f"{connection.address}: a quota is used up, and the broker takes nothing for another"
                    f" {connection.throttled_s * 1000:.0f} ms"
                )
            await asyncio.sleep(connection.throttled_s)

    async def get(self, node_id: int, deadline: Deadline) -> Connection:
        """The connection to a node, opened if need be. Raises UnreachableError, AuthenticationError."""
        if self._closed:
            raise ClosedError("the client is closed: make a new one")
        link = self._link(node_id)
        if link.connection is not None:
            return link.connection
        if link.opening is None:
            link.opening = asyncio.create_task(self._open(link))
            link.opening.add_done_callback(retrieve)
        try:
            return await asyncio.wait_for(asyncio.shield(link.opening), deadline.remaining_s)
        except TimeoutError:
            why = f" ({link.failure.why})" if isinstance(link.failure, UnreachableError) else ""
            raise ClientTimeoutError(f"{link.node.address}: no connection in time{why}") from None
        except asyncio.CancelledError:
            if self._closed:
                raise ClosedError("the client was closed") from None
            raise

    def is_backing_off(self, node_id: int) -> bool:
        link = self._links.get(node_id)
        return link is not None and link.connection is None and self._clock.monotonic_ms() < link.not_before_ms

    def connected(self) -> Iterator[tuple[int, Connection]]:
        for node_id, link in list(self._links.items()):  # also read by the user's thread
            if link.connection is not None:
                yield node_id, link.connection

    def adopt(self, bootstrap_id: int, node_id: int) -> None:
        """The bootstrap address turned out to be that node: go on with the same connection."""
        link = self._links.get(bootstrap_id)
        known = self._links.get(node_id)
        if link is None or link.connection is None or (known is not None and (known.connection or known.opening)):
            return
        node = self._find_node(node_id)
        if node is not None and (node.host, node.port) == (link.node.host, link.node.port):
            del self._links[bootstrap_id]
            link.node = node
            self._links[node_id] = link

    def close_gone(self) -> None:
        """Metadata has changed: close connections to brokers that are gone or have moved."""
        for node_id, link in list(self._links.items()):
            node = self._find_node(node_id)
            if node is None or (node.host, node.port) != (link.node.host, link.node.port):
                del self._links[node_id]
                link.gone = True
                if link.connection is not None:
                    link.connection.close(GONE)

    def disconnect(self) -> None:
        for _, connection in list(self.connected()):
            connection.close()

    async def close(self) -> None:
        self._closed = True
        links = list(self._links.values())
        self._links.clear()
        opening = [link.opening for link in links if link.opening is not None]
        for task in opening:
            task.cancel()
        for link in links:
            if link.connection is not None:
                link.connection.close()
        if opening:
            await asyncio.wait(opening)

    def _link(self, node_id: int) -> NodeLink:
        link = self._links.get(node_id)
        if link is None:
            node = self._find_node(node_id)
            if node is None:
                raise UnreachableError(f"node {node_id}", "no broker has this id at present")
            backoff = Backoff(self._options.reconnect_backoff_ms, self._options.reconnect_backoff_max_ms, self._random)
            link = self._links[node_id] = NodeLink(node, backoff)
        return link

    async def _open(self, link: NodeLink) -> Connection:
        wait_ms = link.not_before_ms - self._clock.monotonic_ms()
        if wait_ms > 0:
            await asyncio.sleep(wait_ms / 1000)
        try:
            connection = await self._connector.connect(link.node, link.backoff.attempts)
        except Exception as error:
            failure = as_failure(f"connecting to {link.node.address}", error)
            pause_ms = link.backoff.next_ms()
            link.not_before_ms = self._clock.monotonic_ms() + int(pause_ms)
            link.failure = failure
            logger.warning(
                "no connection to %s; next attempt in %.0f ms at the earliest",
                failure.message,
                pause_ms,
                extra={"unreachable": failure.message},
            )
            raise failure from failure.__cause__
        finally:
            link.opening = None
        if link.gone:
            connection.close(GONE)
            raise UnreachableError(link.node.address, GONE)
        if connection.closed is not None:  # between its last response and now
            link.not_before_ms = self._clock.monotonic_ms() + int(link.backoff.next_ms())
            link.failure = connection.closed
            raise connection.closed
        link.backoff.reset()
        link.failure = None
        link.connection = connection
        self._connector.meters.opened += 1
        connection.on_closed = lambda _: self._on_closed(link)
        return connection

    def _on_closed(self, link: NodeLink) -> None:
        link.connection = None
        self._connector.meters.closed += 1
        link.not_before_ms = self._clock.monotonic_ms() + int(link.backoff.next_ms())
        # A connection that worked once and then closed is no failure: only failures to open one add up.
        link.backoff.reset()


def retrieve(task: "asyncio.Task[Any]") -> None:
    """Everybody who waited may have given up: then the failure is nobody's, and no reason for a warning."""
    if not task.cancelled():
        task.exception()
