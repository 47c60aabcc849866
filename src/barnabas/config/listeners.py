"""Listeners: `NAME://host:port` lists, the security protocol of each name, and what is advertised.

Used by the broker's settings for checking and by the server for binding. Resolves no names and opens no sockets: an
empty host (all interfaces) and port 0 (any free port) are passed on unchanged.
"""

import re
from typing import NamedTuple

LISTENER = re.compile(r"([^:/,\s]+)://(?:\[([0-9a-zA-Z%._:\-]*)\]|([0-9a-zA-Z%._\-]*)):([0-9]{1,5})", re.ASCII)
PROTOCOLS = ("PLAINTEXT", "SSL", "SASL_PLAINTEXT", "SASL_SSL")
MQTT = "MQTT"
"""Not one of Kafka's: a listener for MQTT clients."""
MQTTS = "MQTTS"
"""The same over TLS."""
MQTT_PROTOCOLS = (MQTT, MQTTS)


class Listener(NamedTuple):
    name: str
    host: str
    port: int
    protocol: str = "PLAINTEXT"

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.name}://{host}:{self.port}"


def parse_protocol_map(text: str) -> dict[str, str]:
    """`NAME:PROTOCOL,...`; names are upper-cased as Kafka does. Raises ValueError."""
    protocols: dict[str, str] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        name, colon, protocol = (part.strip() for part in item.rpartition(":"))
        if not colon or not name or protocol.upper() not in (*PROTOCOLS, *MQTT_PROTOCOLS):
            raise ValueError(f"{item!r} is not NAME:PROTOCOL with a protocol out of {', '.join(PROTOCOLS)}")
        protocols[name.upper()] = protocol.upper()
    return protocols


def parse_listeners(text: str, protocols: dict[str, str]) -> tuple[Listener, ...]:
    """Raises ValueError on a malformed entry, a name given twice, or a name without a security protocol."""
    listeners: dict[str, Listener] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        match = LISTENER.fullmatch(item)
        if match is None or int(match[4]) > 65535:
            raise ValueError(f"{item!r} is not NAME://host:port")
        name = match[1].upper()
        if name in listeners:
            raise ValueError(f"the listener name {name} appears twice")
        if name not in protocols:
            raise ValueError(f"the listener name {name} is not in listener.security.protocol.map")
        listeners[name] = Listener(name, match[2] or match[3] or "", int(match[4]), protocols[name])
    return tuple(listeners.values())


def check_ports(listeners: tuple[Listener, ...]) -> None:
    """Two listeners share a port only if one is IPv4 and the other IPv6. Raises ValueError."""
    taken: dict[tuple[int, bool], str] = {}
    for listener in listeners:
        if listener.port == 0:
            continue
        families = (":" in listener.host,) if listener.host else (False, True)
        for family in families:
            other = taken.setdefault((listener.port, family), listener.name)
            if other != listener.name:
                raise ValueError(f"the listeners {other} and {listener.name} have the same port {listener.port}")


def parse_connection_overrides(text: str) -> dict[str, int]:
    """`host:count,host:count` of max.connections.per.ip.overrides; raises ValueError."""
    overrides: dict[str, int] = {}
    for item in filter(None, (part.strip() for part in text.split(","))):
        host, _, count = item.rpartition(":")
        host = host.strip().removeprefix("[").removesuffix("]")
        if not re.fullmatch(r"[0-9a-zA-Z%._:\-]+", host) or not re.fullmatch(r"[0-9]{1,10}", count.strip()):
            raise ValueError(f"{item!r} is not host:count")
        overrides[host] = int(count)
    return overrides
