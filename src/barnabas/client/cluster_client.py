"""The cluster as one client sees it: sends a request to a node, and knows which node is meant.

Lives on the client's loop; one for each Producer, Consumer and Admin, whose cores are built on it. It opens
connections, agrees on versions, keeps the metadata fresh and finds coordinators. It never retries a request of its
caller and never reads the error codes in a response: only the caller knows what they mean for it.
"""

import asyncio
import contextlib
import logging
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from barnabas.client.connecting import Connector
from barnabas.client.connection import Connection
from barnabas.client.coordinators import LAST_VERSION_WITH_ONE_KEY, CoordinatorKind, Coordinators
from barnabas.client.environment import environment
from barnabas.client.errors import ClientTimeoutError, ClosedError, UnreachableError
from barnabas.client.metadata import MetadataCache, Node, NodeAndEpoch, TopicMetadata
from barnabas.client.metadata_updates import MetadataUpdates
from barnabas.client.metrics.meters import NetworkMeters
from barnabas.client.node_connections import NodeConnections, coordinator_id, is_coordinator_id, retrieve
from barnabas.client.options.common import CommonOptions, parse_address
from barnabas.client.retry import Backoff, Deadline, retrying
from barnabas.client.topic_wait import wait_for_leader, wait_for_topic
from barnabas.clock import Clock
from barnabas.errors import KafkaError, ProtocolError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.transport.channel import Network
from barnabas.transport.parts import Memory
from barnabas.types import TopicPartition

__all__ = ["ClusterClient", "CoordinatorKind"]
logger = logging.getLogger(__name__)
DEFAULT_TIMEOUT_MS = 60_000


class ClusterClient:
    """Sends requests to the nodes of one cluster."""

    def __init__(
        self,
        options: CommonOptions,
        *,
        clock: Clock | None = None,
        topic_expiry_ms: int | None = None,
        network: Network | None = None,
    ) -> None:
        """`topic_expiry_ms`: topics that nobody touches for so long are no longer kept up to date."""
        self.options = options
        self.clock: Clock = environment().clock if clock is None else clock
        self.metadata = MetadataCache()
        self.features: Mapping[str, int] = {}
        """Finalized features of the cluster: name -> level."""
        self._features_epoch = -1
        self._bootstrap: dict[int, Node] = {}
        self._network: Network = network or environment().network
        connector = Connector(options, self._network)
        self.meters: NetworkMeters = connector.meters
        """Requests, bytes and latencies of all connections."""
        self._connections = NodeConnections(options, self.clock, self._find_node, connector)
        self._updates = MetadataUpdates(
            options, self.clock, self.metadata, self._candidates, self._send_metadata, self._on_updated, topic_expiry_ms
        )
        self._coordinators = Coordinators(self._ask_for_coordinator)
        self._listeners: list[Callable[[MetadataCache], None]] = []
        self._random = environment().new_random()
        self._starting: asyncio.Task[None] | None = None
        self._aging: asyncio.Task[None] | None = None
        self._closed = False

    # --- life ---

    async def start(self) -> None:
        """Learn of the cluster from the bootstrap servers, if that has not been done. Raises UnreachableError."""
        if self._closed:
            raise ClosedError("the client is closed: make a new one")
        if self.metadata.brokers:
            return
        if self._starting is None or self._starting.done():
            self._starting = asyncio.create_task(self._start())
            self._starting.add_done_callback(retrieve)  # everybody who waits may give up before it fails
        await asyncio.shield(self._starting)

    async def close(self) -> None:
        self._closed = True
        tasks = [task for task in (self._starting, self._aging) if task is not None and not task.done()]
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)
        await self._updates.close()
        await self._connections.close()

    def disconnect(self) -> None:
        """Close every connection at once, with what is not written yet; requests without a response fail."""
        self._connections.disconnect()

    async def _start(self) -> None:
        if not self._bootstrap:
            self._bootstrap = await self._bootstrap_nodes()
        await self._updates.refresh((), False)
        if self._aging is None:
            self._aging = asyncio.create_task(self._updates.refresh_when_old())

    async def _bootstrap_nodes(self) -> dict[int, Node]:
        addresses: list[tuple[str, int]] = []
        for text in self.options.bootstrap_servers:
            host, port = parse_address(text)
            hosts = [host]
            if self.options.client_dns_lookup == "resolve_canonical_bootstrap_servers_only":
                try:
                    hosts = await self._network.canonical_names(host, port)
                except OSError as error:
                    raise UnreachableError(text, f"the name {host} is not known ({error})") from error
            addresses += [(name, port) for name in hosts]
        return {-1 - number: Node(-1 - number, host, port) for number, (host, port) in enumerate(addresses)}

    # --- what is measured ---

    def metadata_age_ms(self) -> int | None:
        """None before there was any."""
        updated_ms = self._updates.last_update_ms
        return None if updated_ms is None else self.clock.monotonic_ms() - updated_ms

    def requests_in_flight(self) -> int:
        """Of all connections. Any thread."""
        return sum(connection.in_flight_count for _, connection in self._connections.connected())

    def connected_node(self) -> int | None:
        """A node that is connected and takes requests, the least busy one, by its own id."""
        ready = [
            (connection.in_flight_count, node_id)
            for node_id, connection in self._connections.connected()
            if node_id >= 0 and not is_coordinator_id(node_id) and connection.takes_requests
        ]
        return min(ready)[1] if ready else None

    # --- requests ---

    async def send(
        self,
        node_id: int,
        request: Any,
        *,
        timeout_ms: int | None = None,
        max_version: int | None = None,
        min_version: int = 0,
    ) -> Any:
        """The decoded response of that node, in the newest version that both sides know.

        Raises UnreachableError (no connection, or it was lost), ClientTimeoutError, UnsupportedVersionError; TypeError
        if no version can hold the request. Error codes in the response are the caller's to check.
        """
        api_key: ApiKey = request.__schema__.api_key
        connection = await self._connection(node_id, timeout_ms)
        version = connection.versions.pick(api_key, min_version=min_version, max_version=max_version)
        body = connection.versions.encode(request, version)
        frame = await connection.post(api_key, version, (body,), timeout_ms=timeout_ms)
        try:
            response, _ = decode(response_type(api_key), version, frame)
        except ProtocolError as error:
            connection.close(f"it sent a response that cannot be read: {error}")
            raise UnreachableError(connection.address, f"it sent a response that cannot be read: {error}") from error
        connection.throttle(getattr(response, "throttle_time_ms", 0))
        return response

    async def send_frame(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int,
        parts: Sequence[Memory],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> memoryview:
        """The response's body for a request whose body is encoded already; large parts are not copied.

        The parts must not change until the response is there. A throttle time in the response is the caller's to pass
        on (`throttle`), since nobody else reads it.
        """
        connection = await self._connection(node_id, timeout_ms)
        return await connection.post(api_key, version, parts, timeout_ms=timeout_ms, expect_response=expect_response)

    def post_frame(
        self,
        node_id: int,
        api_key: ApiKey,
        version: int,
        parts: Sequence[Memory],
        *,
        timeout_ms: int | None = None,
        expect_response: bool = True,
    ) -> "asyncio.Future[memoryview]":
        """`send_frame` for requests whose order matters: it leaves now, on the connection that is there, or not at all.

        One that waited for a new connection could arrive before what was lost with the old one and is sent again.
        """
        connection = self._ready(node_id)
        return connection.post(api_key, version, parts, timeout_ms=timeout_ms, expect_response=expect_response)

    def ready_version(self, node_id: int, api_key: ApiKey, *, max_version: int | None = None) -> int:
        """The version for `post_frame`. Raises UnreachableError, as that does, if it could not leave now."""
        return self._ready(node_id).versions.pick(api_key, max_version=max_version)

    async def version_of(
        self, node_id: int, api_key: ApiKey, *, max_version: int | None = None, min_version: int = 0
    ) -> int:
        """The version that `send` would use. Connects, if need be."""
        connection = await self._connection(node_id, None)
        return connection.versions.pick(api_key, min_version=min_version, max_version=max_version)

    async def connect(self, node_id: int, *, timeout_ms: int | None = None) -> None:
        """Have a connection to the node; afterwards `is_ready`, as a rule."""
        await self._connection(node_id, timeout_ms)

    def is_ready(self, node_id: int) -> bool:
        """Whether a request to the node would leave at once: connected, not throttled, not authenticating again."""
        return self._connections.ready(node_id) is not None

    def in_flight_count(self, node_id: int) -> int:
        connection = self._connections.ready(node_id)
        return 0 if connection is None else connection.in_flight_count

    def throttle(self, node_id: int, throttle_time_ms: int) -> None:
        """A response to `send_frame` said so (KIP-219): nothing is sent to that node for the time."""
        for each_id, connection in self._connections.connected():
            if each_id == node_id:
                connection.throttle(throttle_time_ms)

    # --- nodes ---

    async def any_node(self) -> int:
        """The least busy node that is connected, else any that is known."""
        await self.start()
        node_id = self._candidates(True)[0]
        return coordinator_id(node_id) if is_coordinator_id(node_id) else node_id

    async def controller(self) -> int:
        """The node to send to what changes the cluster. In KRaft any broker passes it on."""
        await self.start()
        controller_id = self.metadata.controller_id
        return controller_id if controller_id in self.metadata.brokers else await self.any_node()

    async def coordinator(self, kind: CoordinatorKind, key: str, deadline: Deadline | None = None) -> int:
        """The id to send to for that group or transactional id; remembered until `forget_coordinator`.

        Raises the last failure at the deadline (a minute by default): COORDINATOR_NOT_AVAILABLE for instance.
        """
        known = self._coordinators.known(kind, key)
        if known is not None:
            return known
        found = await retrying(
            lambda: self._coordinators.find(kind, key),
            deadline=Deadline(DEFAULT_TIMEOUT_MS, self.clock) if deadline is None else deadline,
            backoff=self.new_backoff(),
        )
        self._connections.close_gone()  # it may have another address than the metadata says
        return found

    def forget_coordinator(self, kind: CoordinatorKind, key: str) -> None:
        """It was not the coordinator, or could not be reached: ask again next time."""
        self._coordinators.forget(kind, key)

    # --- metadata ---

    async def refresh_metadata(
        self, topics: Collection[str] | None = (), *, allow_auto_topic_creation: bool = False
    ) -> None:
        """Ask for these topics and keep them up to date from now on; () is those that are, None all of the cluster.

        Shared with everybody who asks at the same time. Raises UnreachableError if no broker responds.
        """
        if not self.metadata.brokers:
            await self.start()
        await self._updates.refresh(topics, allow_auto_topic_creation)

    async def topic_metadata(
        self, topic: str, deadline: Deadline, *, allow_auto_topic_creation: bool = False
    ) -> TopicMetadata:
        """What is known of the topic, asked for until the deadline. Raises UnknownTopicError then, or what kept it."""
        self._updates.touch((topic,))
        return await wait_for_topic(self, topic, deadline, allow_auto_topic_creation)

    async def leader(self, tp: TopicPartition, deadline: Deadline) -> NodeAndEpoch:
        """The partition's leader; waits for an election until the deadline."""
        self._updates.touch((tp.topic,))
        return await wait_for_leader(self, tp, deadline)

    def touch(self, topics: Collection[str]) -> None:
        """These topics are in use and do not expire."""
        self._updates.touch(topics)

    def follow(self, topics: Collection[str] | None) -> None:
        """Keep these topics up to date and no others; None is all topics of the cluster."""
        self._updates.follow(topics)

    def on_metadata(self, callback: Callable[[MetadataCache], None]) -> None:
        """Call this on the loop after each response."""
        self._listeners.append(callback)

    def new_backoff(self) -> Backoff:
        """Pauses between retries as the options have them."""
        return Backoff(self.options.retry_backoff_ms, self.options.retry_backoff_max_ms, self._random)

    # --- inside ---

    async def _connection(self, node_id: int, timeout_ms: int | None) -> Connection:
        ready = self._connections.ready(node_id)
        if ready is not None:
            return ready
        deadline = Deadline(timeout_ms, self.clock)  # without one, what opens a connection has time-outs of its own
        if node_id >= 0 and not self.metadata.brokers:
            await self.start()
        connection = await self._connections.get_ready(node_id, deadline)
        self._take_features(connection)
        return connection

    def _ready(self, node_id: int) -> Connection:
        connection = self._connections.ready(node_id)
        if connection is None:
            raise UnreachableError(f"node {node_id}", "the connection was lost before the request left")
        return connection

    def _find_node(self, node_id: int) -> Node | None:
        if node_id < 0:
            return self._bootstrap.get(node_id)
        real_id = coordinator_id(node_id) if is_coordinator_id(node_id) else node_id
        return self._coordinators.nodes.get(real_id) or self.metadata.brokers.get(real_id)

    def _candidates(self, known: bool) -> list[int]:
        """Nodes to ask, best first: the least busy connection, then nodes not tried lately, then the others."""
        if not known and self.metadata.brokers and self.options.metadata_recovery_strategy == "none":
            return []
        best: dict[int, tuple[int, float, int]] = {}
        for node_id in self.metadata.brokers if known else self._bootstrap:
            best[node_id] = (2 if self._connections.is_backing_off(node_id) else 1), self._random.random(), node_id
        for link_id, connection in self._connections.connected():
            # A node may have two connections, and on one of them a long poll may keep responses waiting.
            node_id = coordinator_id(link_id) if is_coordinator_id(link_id) else link_id
            if node_id in best:
                best[node_id] = min(best[node_id], (0, connection.in_flight_count, link_id))
        return [link_id for _, _, link_id in sorted(best.values())]

    async def _send_metadata(self, node_id: int, request: MetadataRequest) -> Any:
        # Version 0 knows no way to ask for no topics; it has been gone since Kafka 0.10.
        return await self.send(node_id, request, min_version=1)

    def _on_updated(self, node_id: int) -> None:
        if node_id < 0:
            for known_id in self.metadata.brokers:
                self._connections.adopt(node_id, known_id)
        self._coordinators.forget_addresses(self.metadata.brokers)
        self._connections.close_gone()
        for callback in self._listeners:
            try:
                callback(self.metadata)
            except Exception:
                logger.exception("a listener for metadata failed")

    async def _ask_for_coordinator(self, request: FindCoordinatorRequest) -> Any:
        await self.start()
        node_id = self._candidates(True)[0]
        try:
            return await self.send(node_id, request, max_version=LAST_VERSION_WITH_ONE_KEY)
        except (UnreachableError, ClientTimeoutError):
            # All that are known may be gone: somebody else, or a bootstrap server, knows who is there now.
            with contextlib.suppress(KafkaError):
                await self._updates.refresh((), False)
            raise

    def _take_features(self, connection: Connection) -> None:
        versions = connection.versions
        if versions.features_epoch > self._features_epoch:
            self._features_epoch = versions.features_epoch
            self.features = versions.features
