"""MQTT packets to values and back, versions 3.1.1 and 5. No I/O.

    packet: type and flags (1 byte) | length of the rest (variable byte integer) | the rest

`decode` takes one whole packet. Whatever is wrong with it is an MqttError with the reason code to close with. Every
length is checked against the bytes that are there before anything is taken.
"""

from collections.abc import Callable
from typing import Final

from barnabas.mqtt import properties as props
from barnabas.mqtt.packets import (
    V5,
    V311,
    Ack,
    Auth,
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscriptionAck,
    SubscriptionOptions,
    Unsubscribe,
    Will,
)
from barnabas.mqtt.properties import Properties, Property, encode_properties, read_properties
from barnabas.mqtt.reason_codes import MqttError, ReasonCode, UnsupportedVersionError, malformed
from barnabas.mqtt.topics import check_topic_name
from barnabas.mqtt.wire import (
    UINT16,
    as_text,
    encode_binary,
    encode_text,
    encode_variable,
    read_binary,
    read_byte,
    read_text,
    read_uint16,
    read_variable,
)

T = PacketType
_FLAGS: Final = {T.PUBREL: 2, T.SUBSCRIBE: 2, T.UNSUBSCRIBE: 2}
"""The flags of a packet's first byte; PUBLISH has flags of its own, all others have none."""
_ACKS: Final = frozenset({T.PUBACK, T.PUBREC, T.PUBREL, T.PUBCOMP})


def decode(packet: memoryview, version: int) -> Packet:
    """One whole packet; the version of a CONNECT is in itself."""
    first = packet[0]
    kind = first >> 4
    _, position = read_variable(packet, 1)
    if kind == T.PUBLISH:
        return _read_publish(packet, position, version)
    if not kind or first & 0x0F != _FLAGS.get(PacketType(kind), 0):
        raise malformed(f"a packet cannot begin with 0x{first:02x}")
    return _READERS[PacketType(kind)](packet, position, version, PacketType(kind))


def _finish(view: memoryview, position: int) -> None:
    if position != len(view):
        raise malformed(f"{len(view) - position} bytes follow the last field")


def _packet_id(view: memoryview, position: int) -> tuple[int, int]:
    packet_id, position = read_uint16(view, position)
    if not packet_id:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "the packet identifier is 0")
    return packet_id, position


def _read_connect(view: memoryview, position: int, version: int, kind: PacketType) -> Connect:
    name, position = read_binary(view, position)
    version, position = read_byte(view, position)
    if name != b"MQTT" or version not in (V311, V5):
        raise UnsupportedVersionError(name, version)
    flags, position = read_byte(view, position)
    keep_alive, position = read_uint16(view, position)
    will_flag, will_qos, will_retain = flags & 4, flags >> 3 & 3, bool(flags & 0x20)
    if flags & 1 or will_qos == 3 or (not will_flag and (will_qos or will_retain)):
        raise malformed(f"the flags of CONNECT are 0x{flags:02x}")
    if version == V311 and flags & 0x40 and not flags & 0x80:
        raise malformed("a password without a user name")
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.CONNECT)
    client_id, position = read_text(view, position)
    connect = Connect(
        client_id=client_id,
        version=version,
        clean_start=bool(flags & 2),
        keep_alive=keep_alive,
        properties=properties,
    )
    if will_flag:
        will_properties: Properties = {}
        if version == V5:
            will_properties, position = read_properties(view, position, props.WILL)
        topic, position = read_text(view, position)
        check_topic_name(topic)
        payload, position = read_binary(view, position)
        connect.will = Will(topic=topic, payload=payload, qos=will_qos, retain=will_retain, properties=will_properties)
    if flags & 0x80:
        connect.username, position = read_text(view, position)
    if flags & 0x40:
        connect.password, position = read_binary(view, position)
    _finish(view, position)
    return connect


def _read_connack(view: memoryview, position: int, version: int, kind: PacketType) -> Connack:
    flags, position = read_byte(view, position)
    if flags > 1:
        raise malformed(f"the flags of CONNACK are 0x{flags:02x}")
    code, position = read_byte(view, position)
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.CONNACK)
    _finish(view, position)
    return Connack(code=code, session_present=bool(flags), properties=properties)


def _read_publish(view: memoryview, position: int, version: int) -> Publish:
    flags = view[0] & 0x0F
    qos = flags >> 1 & 3
    if qos == 3 or (not qos and flags & 8):
        raise malformed(f"the flags of PUBLISH are 0x{flags:02x}")
    name, position = read_binary(view, position)
    topic = as_text(name)
    packet_id = 0
    if qos:
        packet_id, position = _packet_id(view, position)
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.PUBLISH)
        if properties.get(Property.TOPIC_ALIAS) == 0:
            raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, "the topic alias is 0")
        if Property.RESPONSE_TOPIC in properties:
            check_topic_name(properties[Property.RESPONSE_TOPIC])
    if topic or Property.TOPIC_ALIAS not in properties:
        check_topic_name(topic)
    return Publish(
        topic=topic,
        payload=bytes(view[position:]),
        qos=qos,
        retain=bool(flags & 1),
        dup=bool(flags & 8),
        packet_id=packet_id,
        properties=properties,
    )


def _read_ack(view: memoryview, position: int, version: int, kind: PacketType) -> Ack:
    packet_id, position = _packet_id(view, position)
    ack = Ack(type=kind, packet_id=packet_id)
    if version == V5 and position < len(view):
        ack.code, position = read_byte(view, position)
        if position < len(view):
            ack.properties, position = read_properties(view, position, props.ACK)
    _finish(view, position)
    return ack


def _read_subscribe(view: memoryview, position: int, version: int, kind: PacketType) -> Subscribe:
    packet_id, position = _packet_id(view, position)
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.SUBSCRIBE)
        if len(properties.get(Property.SUBSCRIPTION_IDENTIFIER, ())) > 1:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, "SUBSCRIBE has two subscription identifiers")
    filters: list[tuple[str, SubscriptionOptions]] = []
    while position < len(view):
        text, position = read_text(view, position)
        options, position = read_byte(view, position)
        if options & 3 == 3 or options & (0xC0 if version == V5 else 0xFC) or options >> 4 & 3 == 3:
            raise malformed(f"the options of a subscription are 0x{options:02x}")
        filters.append((text, SubscriptionOptions(options & 3, bool(options & 4), bool(options & 8), options >> 4 & 3)))
    if not filters:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "SUBSCRIBE has no topic filter")
    return Subscribe(packet_id=packet_id, filters=filters, properties=properties)


def _read_unsubscribe(view: memoryview, position: int, version: int, kind: PacketType) -> Unsubscribe:
    packet_id, position = _packet_id(view, position)
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.UNSUBSCRIBE)
    filters: list[str] = []
    while position < len(view):
        text, position = read_text(view, position)
        filters.append(text)
    if not filters:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, "UNSUBSCRIBE has no topic filter")
    return Unsubscribe(packet_id=packet_id, filters=filters, properties=properties)


def _read_subscription_ack(view: memoryview, position: int, version: int, kind: PacketType) -> SubscriptionAck:
    packet_id, position = _packet_id(view, position)
    properties: Properties = {}
    if version == V5:
        properties, position = read_properties(view, position, props.ACK)
    return SubscriptionAck(type=kind, packet_id=packet_id, codes=list(view[position:]), properties=properties)


def _read_ping(view: memoryview, position: int, version: int, kind: PacketType) -> Ping:
    _finish(view, position)
    return Ping(kind)


def _read_disconnect(view: memoryview, position: int, version: int, kind: PacketType) -> Disconnect:
    disconnect = Disconnect()
    if version == V5 and position < len(view):
        disconnect.code, position = read_byte(view, position)
        if position < len(view):
            disconnect.properties, position = read_properties(view, position, props.DISCONNECT)
    _finish(view, position)
    return disconnect


def _read_auth(view: memoryview, position: int, version: int, kind: PacketType) -> Auth:
    if version != V5:
        raise malformed("AUTH is a packet of MQTT 5")
    auth = Auth()
    if position < len(view):
        auth.code, position = read_byte(view, position)
        auth.properties, position = read_properties(view, position, props.AUTH)
    _finish(view, position)
    return auth


_READERS: Final[dict[PacketType, Callable[[memoryview, int, int, PacketType], Packet]]] = {
    T.CONNECT: _read_connect,
    T.CONNACK: _read_connack,
    T.PUBACK: _read_ack,
    T.PUBREC: _read_ack,
    T.PUBREL: _read_ack,
    T.PUBCOMP: _read_ack,
    T.SUBSCRIBE: _read_subscribe,
    T.SUBACK: _read_subscription_ack,
    T.UNSUBSCRIBE: _read_unsubscribe,
    T.UNSUBACK: _read_subscription_ack,
    T.PINGREQ: _read_ping,
    T.PINGRESP: _read_ping,
    T.DISCONNECT: _read_disconnect,
    T.AUTH: _read_auth,
}


def encode(packet: Packet, version: int) -> bytes:
    if isinstance(packet, Publish):
        return encode_publish(packet, version)
    if isinstance(packet, Ack):
        return encode_ack(packet.type, packet.packet_id, packet.code, packet.properties, version)
    kind, parts = _encode_rest(packet, version)
    return _packet(kind << 4 | _FLAGS.get(kind, 0), parts)


def encode_publish(packet: Publish, version: int) -> bytes:
    parts = [encode_text(packet.topic)]
    if packet.qos:
        parts.append(UINT16.pack(packet.packet_id))
    if version == V5:
        parts.append(encode_properties(packet.properties))
    parts.append(packet.payload)
    return _packet(T.PUBLISH << 4 | packet.dup << 3 | packet.qos << 1 | packet.retain, parts)


def encode_ack(kind: PacketType, packet_id: int, code: int, properties: Properties, version: int) -> bytes:
    """Success without properties is the same four bytes in both versions; MQTT 3.1.1 has nothing else."""
    first = kind << 4 | _FLAGS.get(kind, 0)
    if version != V5 or (not code and not properties):
        return bytes((first, 2, packet_id >> 8, packet_id & 0xFF))
    return _packet(first, [UINT16.pack(packet_id), bytes((code,)), encode_properties(properties)])


def _packet(first: int, parts: list[bytes]) -> bytes:
    return b"".join((bytes((first,)), encode_variable(sum(map(len, parts))), *parts))


def _encode_rest(packet: Packet, version: int) -> tuple[PacketType, list[bytes]]:
    v5 = version == V5
    if isinstance(packet, Connect):
        return T.CONNECT, _connect_parts(packet)
    if isinstance(packet, Connack):
        parts = [bytes((packet.session_present, packet.code))]
        return T.CONNACK, [*parts, encode_properties(packet.properties)] if v5 else parts
    if isinstance(packet, Ping):
        return packet.type, []
    if isinstance(packet, (Disconnect, Auth)):
        kind = T.DISCONNECT if isinstance(packet, Disconnect) else T.AUTH
        if not v5 or (not packet.code and not packet.properties):
            return kind, []
        return kind, [bytes((packet.code,)), encode_properties(packet.properties)]
    assert isinstance(packet, (Subscribe, Unsubscribe, SubscriptionAck))
    parts = [UINT16.pack(packet.packet_id)]
    if v5:
        parts.append(encode_properties(packet.properties))
    if isinstance(packet, SubscriptionAck):
        return packet.type, [*parts, bytes(packet.codes)] if v5 or packet.type is T.SUBACK else parts
    if isinstance(packet, Unsubscribe):
        return T.UNSUBSCRIBE, parts + [encode_text(each) for each in packet.filters]
    for text, options in packet.filters:
        byte = options.qos | options.no_local << 2 | options.retain_as_published << 3 | options.retain_handling << 4
        parts += (encode_text(text), bytes((byte,)))
    return T.SUBSCRIBE, parts


def _connect_parts(packet: Connect) -> list[bytes]:
    v5 = packet.version == V5
    will = packet.will
    flags = packet.clean_start << 1 | (packet.username is not None) << 7 | (packet.password is not None) << 6
    if will is not None:
        flags |= 4 | will.qos << 3 | will.retain << 5
    parts = [encode_text("MQTT"), bytes((packet.version, flags)), UINT16.pack(packet.keep_alive)]
    if v5:
        parts.append(encode_properties(packet.properties))
    parts.append(encode_text(packet.client_id))
    if will is not None:
        if v5:
            parts.append(encode_properties(will.properties))
        parts += (encode_text(will.topic), encode_binary(will.payload))
    if packet.username is not None:
        parts.append(encode_text(packet.username))
    if packet.password is not None:
        parts.append(encode_binary(packet.password))
    return parts
