"""Bad input: whoever sends it loses the connection, nobody else notices, and nothing unforeseen happens.

Connections are fed with packets that are almost right. An error that was not foreseen is logged with its traceback, and
one such line fails the run. `MQTT_SEEDS` runs more seeds.
"""

import logging
import os
from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest
from mqtt_client import MqttClient, connected

from barnabas import Admin, Producer
from barnabas.mqtt.codec import encode
from barnabas.mqtt.packets import (
    V5,
    V311,
    Ack,
    Auth,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscriptionOptions,
    Unsubscribe,
    Will,
)
from barnabas.mqtt.properties import Property
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker

SEEDS = int(os.environ.get("MQTT_SEEDS", "6"))
TEN_MB = 10 * 1024 * 1024


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"}) as running:
        yield running


@pytest.fixture(autouse=True)
def nothing_unforeseen(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    yield
    assert [each.getMessage() for each in caplog.records if each.levelno >= logging.ERROR] == []


def plausible(random: Random) -> Packet:
    name = random.choice(
        ["f/a", "f/b/c", "f", "/", "f//", "$SYS/x", "ä/ö", "x" * 300, "__consumer_offsets", "..", "f/+", ""]
    )
    text = random.choice(["f/#", "#", "+/+", "$share/g/f/+", "$share/g", "f/a", "f/#/x", "", "$SYS/#"])
    number = random.choice([0, 1, 2, 7, 65535])
    properties = random.choice(
        [
            {},
            {Property.TOPIC_ALIAS: random.choice([0, 1, 5, 65535])},
            {Property.MESSAGE_EXPIRY_INTERVAL: 0, Property.USER_PROPERTY: [("a", "b")] * 3},
            {Property.SUBSCRIPTION_IDENTIFIER: [1, 2]},
            {Property.RESPONSE_TOPIC: "a/+"},
        ]
    )
    qos = random.choice([0, 1, 2])
    will = Will(topic=name or "w", payload=b"w", qos=qos, retain=True)
    options = SubscriptionOptions(qos, random.random() < 0.3, random.random() < 0.3, random.choice([0, 1, 2]))
    kind = random.choice([PacketType.PUBACK, PacketType.PUBREC, PacketType.PUBREL, PacketType.PUBCOMP])
    makers = [
        lambda: Publish(
            topic=name,
            payload=random.randbytes(random.choice([0, 10, 5000])),
            qos=qos,
            packet_id=number if qos else 0,
            retain=random.random() < 0.2,
            properties=properties,
        ),
        lambda: Subscribe(packet_id=number, filters=[(text, options)] * random.choice([1, 3])),
        lambda: Unsubscribe(packet_id=number, filters=[text]),
        lambda: Ack(type=kind, packet_id=number, code=random.choice([0, 0x80, 0x92])),
        lambda: Ping(random.choice([PacketType.PINGREQ, PacketType.PINGRESP])),
        lambda: Disconnect(code=random.choice([0, 4])),
        lambda: Auth(code=0x18),
        lambda: Connect(client_id=random.choice(["", "fuzz"]), will=will, properties={Property.RECEIVE_MAXIMUM: 1}),
    ]
    made: Packet = random.choices(makers, [8, 3, 1, 3, 1, 0.3, 0.2, 0.3])[0]()
    return made


def damaged(random: Random, data: bytes) -> bytes:
    chance = random.random()
    if chance < 0.5:
        return data
    changed = bytearray(data)
    for _ in range(random.choice([1, 1, 3])):
        changed[random.randrange(len(changed))] = random.randrange(256)
    if chance < 0.6:
        del changed[random.randrange(len(changed)) :]
    return bytes(changed)


@pytest.mark.parametrize("seed", range(SEEDS))
def test_almost_right_packets_hurt_their_sender_only(broker: Broker, seed: int) -> None:
    random = Random(seed)
    bystander = connected(broker.mqtt_port, "bystander")
    for _ in range(15):
        version = random.choice([V311, V5])
        client = MqttClient(broker.mqtt_port, version)
        properties = {Property.SESSION_EXPIRY_INTERVAL: 5} if version == V5 and random.random() < 0.5 else {}
        hello = Connect(client_id="fuzz", version=version, clean_start=random.random() < 0.5, properties=properties)
        data = b"" if random.random() < 0.1 else damaged(random, encode(hello, version))
        for _ in range(random.randrange(20)):
            try:
                data += damaged(random, encode(plausible(random), version))
            except ValueError:
                continue
        try:
            client.send(data)
            client.send(bytes(random.choice([0, 5])))
        except OSError:
            pass
        bystander.nothing_more()
        client.close()
    bystander.close()
    with closing(connected(broker.mqtt_port, "after")) as client:
        client.publish("after", b"served")


def test_lengths_that_are_absurd_take_no_memory(broker: Broker) -> None:
    clients = []
    for start in (b"\x10\xff\xff\xff\x7f", b"\x30\xff\xff\xff\x7f", b"\x10\x80\x80\x80\x80\x01"):
        client = MqttClient(broker.mqtt_port)
        client.send(start + bytes(10))
        client.read_to_end()
        clients.append(client)
    with closing(connected(broker.mqtt_port, "large")) as client:
        client.send(b"\x30\xff\xff\xff\x7f\x00\x01a")
        assert client.expect(Disconnect).code == ReasonCode.PACKET_TOO_LARGE
    for client in clients:
        client.close()


def test_ten_megabytes_are_refused_or_stored_as_the_settings_say(broker: Broker) -> None:
    payload = bytes(TEN_MB)
    with closing(connected(broker.mqtt_port, "refused")) as client:
        try:
            client.send(Publish(topic="big", payload=payload, qos=1, packet_id=1))
        except OSError:
            pass
        packet = client.receive()
        assert packet is None or (isinstance(packet, Disconnect) and packet.code == ReasonCode.PACKET_TOO_LARGE)
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0",
        "mqtt.max.packet.bytes": str(2 * TEN_MB),
        "message.max.bytes": str(2 * TEN_MB),
    }
    with Broker(settings) as large:
        reader, writer = connected(large.mqtt_port, "reader"), connected(large.mqtt_port, "writer")
        reader.subscribe("big")
        ack = writer.publish("big", payload)
        assert ack is not None and ack.code == 0
        assert reader.expect(Publish).payload == payload
        for client in (reader, writer):
            client.close()


def test_a_message_larger_than_its_topic_takes_is_refused_with_a_reason(broker: Broker) -> None:
    broker.create_topic("small", config={"max.message.bytes": 1000})
    with closing(connected(broker.mqtt_port, "small")) as client:
        for qos in (1, 2):
            ack = client.publish("small", bytes(5000), qos=qos)
            assert ack is not None and ack.code == ReasonCode.PACKET_TOO_LARGE


@pytest.mark.parametrize("name", ["__consumer_offsets", "..", ".", "x" * 300])
def test_names_that_a_topic_cannot_have_are_refused_with_a_reason(broker: Broker, name: str) -> None:
    with closing(connected(broker.mqtt_port, "names")) as client:
        ack = client.publish(name, b"x")
        assert ack is not None and ack.code == ReasonCode.TOPIC_NAME_INVALID
    with closing(connected(broker.mqtt_port, "names", V311)) as client:
        client.send(Publish(topic=name, payload=b"x", qos=1, packet_id=1))
        assert client.receive() is None


def test_a_client_that_falls_silent_is_closed_with_its_will(broker: Broker) -> None:
    watcher = connected(broker.mqtt_port, "watcher")
    watcher.subscribe("silence")
    client = MqttClient(broker.mqtt_port)
    client.connect("silent", keep_alive=1, will=Will(topic="silence", payload=b"silent"))
    assert client.expect(Disconnect).code == ReasonCode.KEEP_ALIVE_TIMEOUT
    assert watcher.expect(Publish).payload == b"silent"
    client.close()
    watcher.close()


def test_a_client_that_does_not_read_holds_nobody_up(broker: Broker) -> None:
    slow, quick, writer = (connected(broker.mqtt_port, name) for name in ("slow", "quick", "writer"))
    for reader in (slow, quick):
        reader.subscribe("flood", qos=0)
    payload = bytes(100_000)
    for number in range(1, 101):
        writer.publish("flood", payload, packet_id=number)
        assert quick.expect(Publish).payload == payload
    assert sum(slow.expect(Publish).payload == payload for _ in range(100)) == 100
    for client in (slow, quick, writer):
        client.close()


def test_enhanced_authentication_is_refused(broker: Broker) -> None:
    client = MqttClient(broker.mqtt_port)
    answer = client.connect("auth", properties={Property.AUTHENTICATION_METHOD: "GS2-KRB5"})
    assert answer.code == ReasonCode.BAD_AUTHENTICATION_METHOD
    client.close()
    client = connected(broker.mqtt_port, "auth")
    client.send(Auth(code=0x19))
    assert client.expect(Disconnect).code == ReasonCode.PROTOCOL_ERROR
    client.close()


POISON: list[list[tuple[str, bytes | None]]] = [
    [("mqtt.topic", b"x" * 70_000)],
    [("mqtt.topic", b"p/+")],
    [("mqtt.topic", b"")],
    [("mqtt.topic", b"p\0")],
    [("mqtt.user." + "x" * 70_000, b"")],
    [("mqtt.user.\udcff", b"")],
    [("mqtt.user.\0", b"")],
    [("mqtt.response_topic", b"a/#")],
]


@pytest.mark.parametrize("share", ["", "$share/g/"])
def test_a_record_that_is_no_message_of_mqtt_stops_no_subscriber(broker: Broker, share: str) -> None:
    """Whoever may write to a topic with a client of Kafka decides about headers."""
    topic = f"poison.{len(share)}"
    with Admin(broker.bootstrap) as admin:
        admin.create_topic(topic)
    with closing(connected(broker.mqtt_port, "reader")) as reader, Producer(broker.bootstrap) as producer:
        assert reader.subscribe(share + topic.replace(".", "/"), qos=1) == [1]
        for headers in POISON:
            producer.send(topic, b"bad", headers=headers)
        producer.send(topic, b"good")
        producer.flush()
        for _ in POISON:
            message = reader.expect(Publish)
            assert (message.topic, message.payload) == (topic.replace(".", "/"), b"bad")
            assert not message.properties
            reader.ack(message)
        assert reader.expect(Publish).payload == b"good"
