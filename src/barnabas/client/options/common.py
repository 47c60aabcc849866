"""Options that all clients share: where the cluster is, time-outs, retries, sockets, metadata."""

import re

from barnabas.client.options.option import HIGH, LOW, choice, flag, int32, int64, text, texts
from barnabas.client.options.security import SecurityOptions
from barnabas.config.checks import at_least
from barnabas.config.table import settings_area

INT32_MAX = (1 << 31) - 1
ADDRESS = re.compile(r"(?:[A-Za-z_]+://)?(?:\[([0-9a-zA-Z%._:\-]+)\]|([0-9a-zA-Z%._\-]+)):([0-9]{1,5})", re.ASCII)


def parse_address(text: str) -> tuple[str, int]:
    """(host, port); an IPv6 address stands in brackets. The ValueError it raises is worded to follow the address."""
    match = ADDRESS.fullmatch(text.strip())
    if match is None or not 0 < int(match[3]) < 65536:
        raise ValueError("is not host:port")
    return match[1] or match[2], int(match[3])


@settings_area
class CommonOptions(SecurityOptions):
    """Options that all clients have."""

    __slots__ = ()

    bootstrap_servers: tuple[str, ...] = texts(
        (),
        "Addresses (host:port) from which the rest of the cluster is learnt; one that responds is enough.",
        importance=HIGH,
    )
    client_dns_lookup: str = choice(
        "use_all_dns_ips",
        "Whether every address of a name is tried in turn, or bootstrap names are first turned into canonical ones.",
        "use_all_dns_ips",
        "resolve_canonical_bootstrap_servers_only",
    )
    client_id: str = text("", "Name of this client in the brokers' logs and quotas.")
    connections_max_idle_ms: int
    request_timeout_ms: int = int32(
        30_000, "How long to wait for the response to one request before the connection is given up.", at_least(0)
    )
    retry_backoff_ms: int = int64(
        100, "Pause before the first retry; it doubles with each one.", at_least(0), importance=LOW
    )
    retry_backoff_max_ms: int = int64(1_000, "Longest pause between retries.", at_least(0), importance=LOW)
    reconnect_backoff_ms: int = int64(
        50, "Pause before a broker is tried again after the first failure; it doubles.", at_least(0), importance=LOW
    )
    reconnect_backoff_max_ms: int = int64(1_000, "Longest pause between attempts.", at_least(0), importance=LOW)
    socket_connection_setup_timeout_ms: int = int64(
        10_000, "How long one attempt to connect to one address may take; it doubles.", at_least(1)
    )
    socket_connection_setup_timeout_max_ms: int = int64(30_000, "Longest time for one attempt.", at_least(1))
    send_buffer_bytes: int = int32(
        -1, "Size of the socket's send buffer (SO_SNDBUF); -1 leaves it to the system.", at_least(-1)
    )
    receive_buffer_bytes: int = int32(
        -1, "Size of the socket's receive buffer (SO_RCVBUF); -1 leaves it to the system.", at_least(-1)
    )
    metadata_max_age_ms: int = int64(
        300_000, "Age at which metadata of the cluster is requested again.", at_least(0), importance=LOW
    )
    metadata_recovery_strategy: str = choice(
        "rebootstrap",
        "What to do when no known broker responds: start again from the bootstrap servers, or go on trying.",
        "rebootstrap",
        "none",
        importance=LOW,
    )
    metadata_recovery_rebootstrap_trigger_ms: int = int64(
        300_000,
        "Time without metadata after which to start again from the bootstrap servers.",
        at_least(0),
        importance=LOW,
    )
    enable_metrics_push: bool = flag(
        True,
        "Whether to push this client's metrics to a broker that has subscribed to them (KIP-714).",
        importance=LOW,
    )


def address_faults(options: CommonOptions) -> list[str]:
    if not options.bootstrap_servers:
        if "bootstrap_servers" in options.given:
            return ["bootstrap_servers: at least one host:port is needed"]
        return ["bootstrap_servers: missing, give at least one host:port"]
    faults = []
    for address in options.bootstrap_servers:
        try:
            parse_address(address)
        except ValueError as fault:
            faults.append(f"bootstrap_servers: {address!r} {fault}")
    return faults


def backoff_faults(options: CommonOptions) -> list[str]:
    """A longest pause that is shorter than the first is a mistake only if it was given."""
    faults = []
    for first, longest in (
        ("retry_backoff_ms", "retry_backoff_max_ms"),
        ("reconnect_backoff_ms", "reconnect_backoff_max_ms"),
        ("socket_connection_setup_timeout_ms", "socket_connection_setup_timeout_max_ms"),
    ):
        if longest in options.given and getattr(options, first) > getattr(options, longest):
            faults.append(f"{longest} ({getattr(options, longest)}) is less than {first} ({getattr(options, first)})")
    return faults
