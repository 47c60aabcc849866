"""What the packets of MQTT say, as values; `codec` turns bytes into them and back."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.mqtt.properties import Properties
from barnabas.mqtt.reason_codes import ReasonCode

V311: Final = 4
V5: Final = 5


class PacketType(IntEnum):
    CONNECT = 1
    CONNACK = 2
    PUBLISH = 3
    PUBACK = 4
    PUBREC = 5
    PUBREL = 6
    PUBCOMP = 7
    SUBSCRIBE = 8
    SUBACK = 9
    UNSUBSCRIBE = 10
    UNSUBACK = 11
    PINGREQ = 12
    PINGRESP = 13
    DISCONNECT = 14
    AUTH = 15


@dataclass(slots=True, kw_only=True)
class Will:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Connect:
    client_id: str
    version: int = V5
    clean_start: bool = True
    keep_alive: int = 0
    username: str | None = None
    password: bytes | None = None
    will: Will | None = None
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Connack:
    code: int = ReasonCode.SUCCESS
    """Of the version that is spoken: a return code in MQTT 3.1.1, a reason code in MQTT 5."""
    session_present: bool = False
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Publish:
    topic: str
    payload: bytes
    qos: int = 0
    retain: bool = False
    dup: bool = False
    packet_id: int = 0
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Ack:
    """PUBACK, PUBREC, PUBREL or PUBCOMP."""

    type: PacketType
    packet_id: int
    code: int = ReasonCode.SUCCESS
    properties: Properties = field(default_factory=dict)


class SubscriptionOptions(NamedTuple):
    qos: int = 0
    no_local: bool = False
    retain_as_published: bool = False
    retain_handling: int = 0


@dataclass(slots=True, kw_only=True)
class Subscribe:
    packet_id: int
    filters: list[tuple[str, SubscriptionOptions]]
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Unsubscribe:
    packet_id: int
    filters: list[str]
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class SubscriptionAck:
    """SUBACK or UNSUBACK; an UNSUBACK of MQTT 3.1.1 has no codes."""

    type: PacketType
    packet_id: int
    codes: list[int]
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True)
class Ping:
    """PINGREQ or PINGRESP."""

    type: PacketType


@dataclass(slots=True, kw_only=True)
class Disconnect:
    code: int = ReasonCode.SUCCESS
    properties: Properties = field(default_factory=dict)


@dataclass(slots=True, kw_only=True)
class Auth:
    code: int = ReasonCode.SUCCESS
    properties: Properties = field(default_factory=dict)


Packet = Connect | Connack | Publish | Ack | Subscribe | Unsubscribe | SubscriptionAck | Ping | Disconnect | Auth
