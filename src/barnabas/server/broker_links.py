"""Links to the other brokers of the cluster, by node id, on the listener that brokers use among themselves.

`to(node_id, use)` gives the link, made at its first use; where the broker is unknown, has no such listener, or one of
another security protocol, a link that fails every request. How links are secured is `link_security`. Links are closed
when their broker leaves, and opened again when it comes back with another address or broker epoch. One link per use,
because responses come in order: a fetch that waits at its leader must not hold up a marker of a transaction.
"""

from collections.abc import Callable, Iterable
from enum import Enum, auto

from barnabas.clock import Random
from barnabas.metadata.image import BrokerEndpoint, BrokerImage, ClusterImage, Delta
from barnabas.net.link import REQUEST_TIMEOUT_MS, Link
from barnabas.server.link_security import LinkSecurity
from barnabas.transport.channel import Network, SocketOptions
from barnabas.types import NodeId


class LinkUse(Enum):
    """What a link is for."""

    CONTROL = auto()
    """To the controller: AlterPartition, AllocateProducerIds, controlled shutdown."""
    FORWARDING = auto()
    """To the controller: requests of clients, which may take long and must not hold up this broker's own."""
    REPLICATION = auto()
    """From a follower to its leader; fetches wait there."""
    COORDINATION = auto()
    """Between coordinators and leaders: verification, offsets of epochs."""
    MARKERS = auto()
    """From a transaction coordinator to leaders, which respond once the markers are replicated."""
    DELAYED = auto()
    """Transactions that deliver delayed messages; also to this broker itself."""
    MQTT_WRITES = auto()
    """From a broker with MQTT clients to leaders."""
    MQTT_READS = auto()
    """The same for reads, which wait there."""
    MQTT_GROUPS = auto()
    """To coordinators of the groups behind shared subscriptions; also to this broker itself."""
    LIVENESS = auto()
    """From the controller to every broker."""


class BrokerLinks:
    """`timeout_ms` may be changed for links that are made later."""

    def __init__(
        self,
        network: Network,
        random: Random,
        node_id: NodeId,
        image: Callable[[], ClusterImage],
        *,
        listener: str,
        security: LinkSecurity | None = None,
        timeout_ms: int = REQUEST_TIMEOUT_MS,
        receive_buffer_bytes: int = -1,
    ) -> None:
        self._network = network
        self._random = random
        self._node_id = node_id
        self._image = image
        self._listener = listener
        self.security = security
        self.timeout_ms = timeout_ms
        self._options = SocketOptions(receive_buffer_bytes=receive_buffer_bytes)
        self._links: dict[tuple[int, LinkUse], Link] = {}
        self._closed = False

    def to(self, node_id: int, use: LinkUse = LinkUse.COORDINATION) -> Link:
        link = self._links.get((node_id, use))
        if link is None:
            endpoint = self._endpoint(node_id)
            if endpoint is None or self._closed:
                return self._nowhere(node_id)
            if why := self._why_unusable(node_id, endpoint):
                return self._closed_link(endpoint.host, endpoint.port, why)
            link = self._links[node_id, use] = self._make(endpoint, use)
        return link

    def probes(self, brokers: Iterable[BrokerImage]) -> list[Link]:
        """Links to these brokers for one question each, from before this broker has joined. The caller closes them."""
        found = [(each.node_id, each.endpoint(self._listener)) for each in brokers if each.node_id != self._node_id]
        return [
            self._make(endpoint, LinkUse.LIVENESS)
            for node_id, endpoint in found
            if endpoint is not None and not self._why_unusable(node_id, endpoint)
        ]

    def address_of(self, node_id: int) -> str | None:
        """host:port that a link to the broker would connect to."""
        endpoint = self._endpoint(node_id)
        return None if endpoint is None else f"{endpoint.host}:{endpoint.port}"

    def on_delta(self, delta: Delta) -> None:
        for node_id in delta.brokers_changed:
            before, now = delta.previous.brokers.get(node_id), delta.image.brokers.get(node_id)
            if now is not None and before is not None and self._is_same(before, now):
                continue
            why = f"broker {node_id} left the cluster" if now is None else f"broker {node_id} was started again"
            for use in LinkUse:
                link = self._links.pop((node_id, use), None)
                if link is not None:
                    link.close(why)

    def close(self) -> None:
        self._closed = True
        links, self._links = self._links, {}
        for link in links.values():
            link.close("this broker stops")

    def _is_same(self, before: BrokerImage, now: BrokerImage) -> bool:
        return before.epoch == now.epoch and before.endpoint(self._listener) == now.endpoint(self._listener)

    def _endpoint(self, node_id: int) -> BrokerEndpoint | None:
        broker = self._image().brokers.get(node_id)
        return None if broker is None else broker.endpoint(self._listener)

    def _make(self, endpoint: BrokerEndpoint, use: LinkUse) -> Link:
        return Link(
            self._network,
            self._random,
            endpoint.host,
            endpoint.port,
            client_id=f"broker-{self._node_id}-{use.name.lower()}",
            request_timeout_ms=self.timeout_ms,
            options=self._options,
            security=None if self.security is None or self.security.is_plain else self.security,
        )

    def _why_unusable(self, node_id: int, endpoint: BrokerEndpoint) -> str:
        protocol = "PLAINTEXT" if self.security is None else self.security.protocol
        if endpoint.security_protocol != protocol:
            # No password goes out where this broker would not take one.
            return (
                f"the listener {endpoint.listener} of broker {node_id} uses {endpoint.security_protocol}, here it uses"
                f" {protocol}: listener.security.protocol.map must be the same everywhere"
            )
        if self.security is not None and self.security.unusable:
            return f"brokers cannot log in to each other: {self.security.unusable}"
        return ""

    def _nowhere(self, node_id: int) -> Link:
        why = "this broker stops" if self._closed else f"broker {node_id} is not in the cluster"
        return self._closed_link(f"broker-{node_id}", 0, why)

    def _closed_link(self, host: str, port: int, why: str) -> Link:
        link = Link(self._network, self._random, host, port, client_id="")
        link.close(why)
        return link
