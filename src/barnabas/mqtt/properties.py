"""The properties of MQTT 5 packets: which there are, of what type, and in which packets they may be. No I/O.

A packet's properties are a plain dictionary from `Property` to the value. User properties are a list of pairs and
subscription identifiers a list of numbers, since both may be repeated; any other property twice is a protocol error.
"""

from enum import IntEnum
from typing import Any, Final

from barnabas.mqtt.reason_codes import MqttError, ReasonCode, malformed
from barnabas.mqtt.wire import (
    UINT16,
    UINT32,
    encode_binary,
    encode_text,
    encode_variable,
    read_binary,
    read_byte,
    read_text,
    read_uint16,
    read_uint32,
    read_variable,
)


class Property(IntEnum):
    PAYLOAD_FORMAT_INDICATOR = 0x01
    MESSAGE_EXPIRY_INTERVAL = 0x02
    CONTENT_TYPE = 0x03
    RESPONSE_TOPIC = 0x08
    CORRELATION_DATA = 0x09
    SUBSCRIPTION_IDENTIFIER = 0x0B
    SESSION_EXPIRY_INTERVAL = 0x11
    ASSIGNED_CLIENT_IDENTIFIER = 0x12
    SERVER_KEEP_ALIVE = 0x13
    AUTHENTICATION_METHOD = 0x15
    AUTHENTICATION_DATA = 0x16
    REQUEST_PROBLEM_INFORMATION = 0x17
    WILL_DELAY_INTERVAL = 0x18
    REQUEST_RESPONSE_INFORMATION = 0x19
    RESPONSE_INFORMATION = 0x1A
    SERVER_REFERENCE = 0x1C
    REASON_STRING = 0x1F
    RECEIVE_MAXIMUM = 0x21
    TOPIC_ALIAS_MAXIMUM = 0x22
    TOPIC_ALIAS = 0x23
    MAXIMUM_QOS = 0x24
    RETAIN_AVAILABLE = 0x25
    USER_PROPERTY = 0x26
    MAXIMUM_PACKET_SIZE = 0x27
    WILDCARD_SUBSCRIPTION_AVAILABLE = 0x28
    SUBSCRIPTION_IDENTIFIER_AVAILABLE = 0x29
    SHARED_SUBSCRIPTION_AVAILABLE = 0x2A


Properties = dict[Property, Any]

P = Property
_FLAGS: Final = frozenset(
    {
        P.PAYLOAD_FORMAT_INDICATOR,
        P.REQUEST_PROBLEM_INFORMATION,
        P.REQUEST_RESPONSE_INFORMATION,
        P.MAXIMUM_QOS,
        P.RETAIN_AVAILABLE,
        P.WILDCARD_SUBSCRIPTION_AVAILABLE,
        P.SUBSCRIPTION_IDENTIFIER_AVAILABLE,
        P.SHARED_SUBSCRIPTION_AVAILABLE,
    }
)
_UINT16: Final = frozenset({P.SERVER_KEEP_ALIVE, P.RECEIVE_MAXIMUM, P.TOPIC_ALIAS_MAXIMUM, P.TOPIC_ALIAS})
_UINT32: Final = frozenset(
    {P.MESSAGE_EXPIRY_INTERVAL, P.SESSION_EXPIRY_INTERVAL, P.WILL_DELAY_INTERVAL, P.MAXIMUM_PACKET_SIZE}
)
_BINARY: Final = frozenset({P.CORRELATION_DATA, P.AUTHENTICATION_DATA})
_NOT_ZERO: Final = frozenset({P.RECEIVE_MAXIMUM, P.MAXIMUM_PACKET_SIZE})
_BY_NUMBER: Final = {int(each): each for each in Property}

_ANY: Final = {P.USER_PROPERTY}
_MESSAGE: Final = {
    P.PAYLOAD_FORMAT_INDICATOR,
    P.MESSAGE_EXPIRY_INTERVAL,
    P.CONTENT_TYPE,
    P.RESPONSE_TOPIC,
    P.CORRELATION_DATA,
}
CONNECT: Final = frozenset(
    _ANY
    | {
        P.SESSION_EXPIRY_INTERVAL,
        P.AUTHENTICATION_METHOD,
        P.AUTHENTICATION_DATA,
        P.REQUEST_PROBLEM_INFORMATION,
        P.REQUEST_RESPONSE_INFORMATION,
        P.RECEIVE_MAXIMUM,
        P.TOPIC_ALIAS_MAXIMUM,
        P.MAXIMUM_PACKET_SIZE,
    }
)
WILL: Final = frozenset(_ANY | _MESSAGE | {P.WILL_DELAY_INTERVAL})
CONNACK: Final = frozenset(
    _ANY
    | {
        P.SESSION_EXPIRY_INTERVAL,
        P.ASSIGNED_CLIENT_IDENTIFIER,
        P.SERVER_KEEP_ALIVE,
        P.AUTHENTICATION_METHOD,
        P.AUTHENTICATION_DATA,
        P.RESPONSE_INFORMATION,
        P.SERVER_REFERENCE,
        P.REASON_STRING,
        P.RECEIVE_MAXIMUM,
        P.TOPIC_ALIAS_MAXIMUM,
        P.MAXIMUM_QOS,
        P.RETAIN_AVAILABLE,
        P.MAXIMUM_PACKET_SIZE,
        P.WILDCARD_SUBSCRIPTION_AVAILABLE,
        P.SUBSCRIPTION_IDENTIFIER_AVAILABLE,
        P.SHARED_SUBSCRIPTION_AVAILABLE,
    }
)
PUBLISH: Final = frozenset(_ANY | _MESSAGE | {P.SUBSCRIPTION_IDENTIFIER, P.TOPIC_ALIAS})
ACK: Final = frozenset(_ANY | {P.REASON_STRING})
SUBSCRIBE: Final = frozenset(_ANY | {P.SUBSCRIPTION_IDENTIFIER})
UNSUBSCRIBE: Final = frozenset(_ANY)
DISCONNECT: Final = frozenset(_ANY | {P.SESSION_EXPIRY_INTERVAL, P.SERVER_REFERENCE, P.REASON_STRING})
AUTH: Final = frozenset(_ANY | {P.AUTHENTICATION_METHOD, P.AUTHENTICATION_DATA, P.REASON_STRING})


def read_properties(view: memoryview, position: int, allowed: frozenset[Property]) -> tuple[Properties, int]:
    """The properties at the position, and where they end."""
    size, position = read_variable(view, position)
    end = position + size
    if end > len(view):
        raise malformed(f"properties of {size} bytes in a packet that has {len(view) - position} left")
    properties: Properties = {}
    inner = view[:end]
    while position < end:
        number, position = read_variable(inner, position)
        name = _BY_NUMBER.get(number)
        if name is None or name not in allowed:
            raise malformed(f"the property 0x{number:02x} does not belong into this packet")
        position = _read_value(inner, position, name, properties)
    return properties, end


def _read_value(view: memoryview, position: int, name: Property, properties: Properties) -> int:
    value: Any
    if name is P.USER_PROPERTY:
        key, position = read_text(view, position)
        text, position = read_text(view, position)
        properties.setdefault(name, []).append((key, text))
        return position
    if name is P.SUBSCRIPTION_IDENTIFIER:
        value, position = read_variable(view, position)
        if not value:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, "a subscription identifier is 0")
        properties.setdefault(name, []).append(value)
        return position
    if name in properties:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, f"the property {name.name} is there twice")
    if name in _FLAGS:
        value, position = read_byte(view, position)
        if value > 1:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"the property {name.name} is {value}, 0 or 1 are possible")
    elif name in _UINT16:
        value, position = read_uint16(view, position)
    elif name in _UINT32:
        value, position = read_uint32(view, position)
    elif name in _BINARY:
        value, position = read_binary(view, position)
    else:
        value, position = read_text(view, position)
    if name in _NOT_ZERO and not value:
        raise MqttError(ReasonCode.PROTOCOL_ERROR, f"the property {name.name} is 0")
    properties[name] = value
    return position


def encode_properties(properties: Properties) -> bytes:
    """With their length in front."""
    if not properties:
        return b"\0"
    parts: list[bytes] = []
    for name, value in properties.items():
        number = bytes((name,))
        if name is P.USER_PROPERTY:
            for key, text in value:
                parts += (number, encode_text(key), encode_text(text))
        elif name is P.SUBSCRIPTION_IDENTIFIER:
            for each in value:
                parts += (number, encode_variable(each))
        else:
            parts += (number, _encode_value(name, value))
    block = b"".join(parts)
    return encode_variable(len(block)) + block


def _encode_value(name: Property, value: Any) -> bytes:
    if name in _FLAGS:
        return bytes((int(value),))
    if name in _UINT16:
        return UINT16.pack(value)
    if name in _UINT32:
        return UINT32.pack(value)
    return encode_binary(value) if name in _BINARY else encode_text(value)
