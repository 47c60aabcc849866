"""What the network layer lets its user choose: fields are Kafka's setting names with underscores, defaults are Kafka's.

The broker fills this from its configuration; a change of the limits takes effect for the next connection or frame.
"""

import resource
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from barnabas.net.security import ListenerSecurity

UNLIMITED = 2**31 - 1


def descriptors_for_connections() -> int:
    """All that the process may open but an eighth: segments have to be opened and rolled whoever connects."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return UNLIMITED if soft == resource.RLIM_INFINITY else soft - soft // 8


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """One address to listen on. No host means every interface, IPv6 and IPv4 at once; port 0 means any free port."""

    name: str = "PLAINTEXT"
    host: str = ""
    port: int = 9092
    first_frame_max_bytes: int | None = None
    """Limit for frames until the handler raises `Connection.max_frame_bytes`, for peers that must authenticate."""
    security: "ListenerSecurity | None" = None
    """TLS, and who a peer is; without it every connection is served as it is."""
    connect: Callable[..., Any] | None = None
    """Makes a connection of another protocol than Kafka's; called with what `Connection` is made from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ListenerLimits:
    """What is set for one listener, besides the limits of the broker."""

    max_connections: int = UNLIMITED
    max_connection_creation_rate: int = UNLIMITED


@dataclass(frozen=True, slots=True, kw_only=True)
class NetworkSettings:
    socket_request_max_bytes: int = 104_857_600
    socket_send_buffer_bytes: int = 102_400
    same_host_send_buffer_bytes: int = -1
    """In place of the one above for peers on this machine: Kafka's default is for networks."""
    socket_receive_buffer_bytes: int = 102_400
    socket_listen_backlog_size: int = 50
    max_connections: int = UNLIMITED
    max_connection_creation_rate: int = UNLIMITED
    listener_limits: Mapping[str, ListenerLimits] = field(default_factory=dict)
    inter_broker_listener: str | None = None
    quota_window_num: int = 11
    quota_window_size_seconds: int = 1
    max_connections_per_ip: int = UNLIMITED
    max_connections_per_ip_overrides: Mapping[str, int] = field(default_factory=dict)
    max_descriptors: int = UNLIMITED
    """Descriptors of the process, files too, that may be open for a connection still to be taken."""
    connections_max_idle_ms: int = 600_000
    queued_max_request_bytes: int = -1
    pending_replies_per_connection: int = 256
    """Requests of one connection that may wait for their responses before no more are read from it."""
    queued_reply_bytes_per_connection: int = 1024 * 1024
    """Bytes of responses that a slow peer may leave unread before no more requests are read from it."""
