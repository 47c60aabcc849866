"""MQTT packets: both versions there and back, bytes of the specification, and bad input of every kind."""

import random

import pytest

from barnabas.mqtt.codec import decode, encode
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
from barnabas.mqtt.properties import Property
from barnabas.mqtt.reason_codes import MqttError, ReasonCode

P = Property
BOTH: list[Packet] = [
    Connack(session_present=True),
    Connack(code=5),
    Publish(topic="a/b", payload=b"x" * 300),
    Publish(topic="ä", payload=b"", qos=2, packet_id=65535, dup=True, retain=True),
    *(Ack(type=kind, packet_id=7) for kind in (PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL)),
    Ack(type=PacketType.PUBCOMP, packet_id=256),
    Subscribe(packet_id=1, filters=[("a/+", SubscriptionOptions(1)), ("#", SubscriptionOptions(2))]),
    Unsubscribe(packet_id=2, filters=["a/+", "#"]),
    SubscriptionAck(type=PacketType.SUBACK, packet_id=1, codes=[0, 1, 0x80]),
    Ping(PacketType.PINGREQ),
    Ping(PacketType.PINGRESP),
    Disconnect(),
]
ONLY_5: list[Packet] = [
    Connack(
        code=ReasonCode.NOT_AUTHORIZED,
        properties={
            P.SESSION_EXPIRY_INTERVAL: 60,
            P.RECEIVE_MAXIMUM: 20,
            P.MAXIMUM_QOS: 1,
            P.RETAIN_AVAILABLE: 0,
            P.MAXIMUM_PACKET_SIZE: 1000,
            P.ASSIGNED_CLIENT_IDENTIFIER: "auto-1",
            P.TOPIC_ALIAS_MAXIMUM: 5,
            P.REASON_STRING: "no",
            P.USER_PROPERTY: [("a", "1"), ("a", "2")],
            P.SERVER_KEEP_ALIVE: 30,
        },
    ),
    Publish(
        topic="",
        payload=b"p",
        qos=1,
        packet_id=3,
        properties={
            P.TOPIC_ALIAS: 4,
            P.PAYLOAD_FORMAT_INDICATOR: 1,
            P.MESSAGE_EXPIRY_INTERVAL: 2**32 - 1,
            P.CONTENT_TYPE: "text/plain",
            P.RESPONSE_TOPIC: "r/1",
            P.CORRELATION_DATA: b"\0\1",
            P.SUBSCRIPTION_IDENTIFIER: [1, 268_435_455],
        },
    ),
    Ack(type=PacketType.PUBREC, packet_id=9, code=ReasonCode.QUOTA_EXCEEDED, properties={P.REASON_STRING: "full"}),
    Subscribe(
        packet_id=5,
        filters=[("$share/g/a", SubscriptionOptions(1, True, True, 2))],
        properties={P.SUBSCRIPTION_IDENTIFIER: [300]},
    ),
    SubscriptionAck(type=PacketType.UNSUBACK, packet_id=2, codes=[0, 0x11]),
    Disconnect(code=ReasonCode.SESSION_TAKEN_OVER, properties={P.REASON_STRING: "twice"}),
    Auth(code=ReasonCode.CONTINUE_AUTHENTICATION, properties={P.AUTHENTICATION_METHOD: "SCRAM-SHA-256"}),
]
CONNECTS = [
    Connect(client_id="", version=V311, keep_alive=60),
    Connect(client_id="c", version=V311, clean_start=False, username="u", password=b"\0p"),
    Connect(client_id="c", version=V311, will=Will(topic="w", payload=b"gone", qos=2, retain=True)),
    Connect(
        client_id="five",
        username="u",
        will=Will(topic="w/1", payload=b"", qos=1, properties={P.WILL_DELAY_INTERVAL: 5}),
        properties={P.SESSION_EXPIRY_INTERVAL: 10, P.RECEIVE_MAXIMUM: 1, P.USER_PROPERTY: [("k", "v")]},
    ),
]


@pytest.mark.parametrize("packet", BOTH, ids=repr)
@pytest.mark.parametrize("version", [V311, V5])
def test_there_and_back_in_both_versions(packet: Packet, version: int) -> None:
    assert decode(memoryview(encode(packet, version)), version) == packet


@pytest.mark.parametrize("packet", ONLY_5, ids=lambda packet: type(packet).__name__)
def test_there_and_back_in_version_5(packet: Packet) -> None:
    assert decode(memoryview(encode(packet, V5)), V5) == packet


@pytest.mark.parametrize("packet", CONNECTS, ids=lambda packet: f"{packet.client_id}-{packet.version}")
def test_a_connect_says_its_version(packet: Connect) -> None:
    assert decode(memoryview(encode(packet, packet.version)), 0) == packet


def test_bytes_of_the_specification() -> None:
    connect = bytes.fromhex("10100004 4d515454 04ce 000a 0004 61626364".replace(" ", ""))
    assert connect[:2] == b"\x10\x10"  # user name and password are announced, and missing
    with pytest.raises(MqttError, match="ends before"):
        decode(memoryview(connect), 0)
    assert encode(Publish(topic="a/b", payload=b"", qos=1, packet_id=10), V311) == bytes.fromhex("32070003612f62000a")
    subscribe = Subscribe(packet_id=10, filters=[("a/b", SubscriptionOptions(1)), ("c/d", SubscriptionOptions(2))])
    assert encode(subscribe, V311) == bytes.fromhex("820e000a0003612f62010003632f6402")
    assert encode(Ack(type=PacketType.PUBREL, packet_id=1), V5) == bytes.fromhex("62020001")


BAD = {
    "type 0": "0000",
    "flags of PUBREL": "60020001",
    "flags of SUBSCRIBE": "80060001000161 00",
    "QoS 3": "36050001610001",
    "DUP with QoS 0": "3803000161",
    "packet id 0": "32050001610000",
    "topic with a wildcard": "300300012b",
    "empty topic": "30020000",
    "topic beyond the packet": "3003000961",
    "U+0000 in a topic": "3003000100",
    "a surrogate in a topic": "30050003eda080",
    "no filter": "82020001",
    "QoS 3 in a filter": "820600010001 6103",
    "reserved bits in a filter": "820600010001 6104",
    "PINGREQ with a body": "c00100",
    "AUTH in 3.1.1": "f000",
    "reserved flag of CONNECT": "100d00044d5154540401000a000161",
    "will QoS without will": "100d00044d5154540408000a000161",
    "password without user": "100f00044d5154540440000a0001610000",
    "CONNACK flags": "20020200",
}


@pytest.mark.parametrize("text", BAD.values(), ids=BAD)
def test_bad_packets_are_refused_in_311(text: str) -> None:
    packet = memoryview(bytes.fromhex(text.replace(" ", "")))
    with pytest.raises(MqttError) as refused:
        decode(packet, V311)
    assert refused.value.code >= ReasonCode.UNSPECIFIED_ERROR


BAD_5 = {
    "property of another packet": ("30060001610211ff", ReasonCode.MALFORMED_PACKET),
    "unknown property": ("30060001610277ff", ReasonCode.MALFORMED_PACKET),
    "property twice": ("3008000161 04 01010101", ReasonCode.PROTOCOL_ERROR),
    "flag that is 2": ("3006000161 02 0102", ReasonCode.PROTOCOL_ERROR),
    "alias 0": ("3007000161 03 230000", ReasonCode.TOPIC_ALIAS_INVALID),
    "subscription identifier 0": ("8208 0001 020b00 000161 00", ReasonCode.PROTOCOL_ERROR),
    "properties beyond the packet": ("3004 000161 09", ReasonCode.MALFORMED_PACKET),
    "a property cut by their end": ("3006 000161 02 0200", ReasonCode.MALFORMED_PACKET),
}


@pytest.mark.parametrize(("text", "code"), BAD_5.values(), ids=BAD_5)
def test_bad_packets_are_refused_in_5(text: str, code: ReasonCode) -> None:
    with pytest.raises(MqttError) as refused:
        decode(memoryview(bytes.fromhex(text.replace(" ", ""))), V5)
    assert refused.value.code is code


def test_an_unknown_version_is_named() -> None:
    with pytest.raises(MqttError) as refused:
        decode(memoryview(bytes.fromhex("100d00044d5154540302000a000161")), 0)
    assert refused.value.code is ReasonCode.UNSUPPORTED_PROTOCOL_VERSION


@pytest.mark.parametrize("seed", range(20))
def test_damaged_bytes_are_refused_or_mean_something_else(seed: int) -> None:
    """Nothing but MqttError comes out, and what is accepted can be encoded again."""
    chance = random.Random(seed)
    packets = [*BOTH, *ONLY_5, *CONNECTS]
    for _ in range(300):
        packet = chance.choice(packets)
        data = bytearray(encode(packet, V5 if not isinstance(packet, Connect) else packet.version))
        for _ in range(chance.randint(1, 3)):
            data[chance.randrange(len(data))] = chance.randrange(256)
        data = data[: chance.randint(1, len(data))] if chance.random() < 0.3 else data
        try:
            found = decode(memoryview(bytes(data)), V5)
        except MqttError:
            continue
        assert encode(found, V5)
