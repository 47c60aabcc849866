"""What a message carries besides topic and payload, as headers of its record and back."""

from typing import Final

from barnabas.mqtt.packets import Publish
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.topics import name_of
from barnabas.records import Record

USER: Final = "mqtt.user."
RESPONSE_TOPIC: Final = "mqtt.response_topic"
_TEXTS: Final = {Property.CONTENT_TYPE: "mqtt.content_type", Property.RESPONSE_TOPIC: RESPONSE_TOPIC}
_NUMBERS: Final = {
    Property.PAYLOAD_FORMAT_INDICATOR: "mqtt.payload_format",
    Property.MESSAGE_EXPIRY_INTERVAL: "mqtt.expiry_seconds",
}
CORRELATION: Final = "mqtt.correlation_data"


def headers_of(packet: Publish, client_id: str) -> list[tuple[str, bytes | None]]:
    headers: list[tuple[str, bytes | None]] = [
        ("mqtt.topic", packet.topic.encode()),
        ("mqtt.client_id", client_id.encode()),
        ("mqtt.qos", b"%d" % packet.qos),
        ("mqtt.retain", b"%d" % packet.retain),
    ]
    for name, value in packet.properties.items():
        if name in _TEXTS:
            headers.append((_TEXTS[name], value.encode()))
        elif name in _NUMBERS:
            headers.append((_NUMBERS[name], b"%d" % value))
        elif name is Property.CORRELATION_DATA:
            headers.append((CORRELATION, value))
        elif name is Property.USER_PROPERTY:
            headers += [(USER + key, text.encode()) for key, text in value]
    return headers


def headers_to_properties(record: Record, now_ms: int) -> Properties:
    """A message's expiry is what is left of it: 0 if it is over. What is no valid property is left out."""
    properties: Properties = {}
    texts = {name: property for property, name in _TEXTS.items()}
    numbers = {name: property for property, name in _NUMBERS.items()}
    for name, value in record.headers:
        if value is None or len(value) > 0xFFFF:
            continue
        if name == CORRELATION:
            properties[Property.CORRELATION_DATA] = value
        elif name in numbers and value.isdigit():
            properties[numbers[name]] = int(value)
        elif (name in texts or name.startswith(USER)) and (text := _text(value)) is not None:
            if name not in texts:
                if (key := _user_key(name)) is not None:
                    properties.setdefault(Property.USER_PROPERTY, []).append((key, text))
            elif name != RESPONSE_TOPIC or name_of(value) is not None:
                properties[texts[name]] = text
    expiry = properties.get(Property.MESSAGE_EXPIRY_INTERVAL)
    if expiry is not None:
        left_seconds = expiry - max(0, now_ms - record.timestamp) // 1000
        properties[Property.MESSAGE_EXPIRY_INTERVAL] = min(max(0, left_seconds), 0xFFFF_FFFF)
    if properties.get(Property.PAYLOAD_FORMAT_INDICATOR, 0) not in (0, 1):
        del properties[Property.PAYLOAD_FORMAT_INDICATOR]
    return properties


def _user_key(name: str) -> str | None:
    key = name[len(USER) :]
    data = key.encode(errors="surrogateescape")
    return key if len(data) <= 0xFFFF and _text(data) is not None else None


def _text(value: bytes) -> str | None:
    try:
        text = value.decode()
    except UnicodeDecodeError:
        return None
    return None if "\0" in text else text
