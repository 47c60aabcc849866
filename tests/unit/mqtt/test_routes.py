"""The short way of plain messages does what the long way does, and nothing else takes it."""

from collections.abc import Iterator
from contextlib import closing
from random import Random

import pytest
from mqtt_client import MqttClient, connected

from barnabas import Admin
from barnabas.client.admin.types import AclBinding, AclOperation, AclPermission, ResourceType
from barnabas.mqtt.codec import encode
from barnabas.mqtt.packets import V5, V311, Ack, Disconnect, PacketType, Ping, Publish
from barnabas.mqtt.properties import Property
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0",
        "authorizer.class.name": AUTHORIZER,
        "allow.everyone.if.no.acl.found": "true",
        "super.users": "User:root",
        "mqtt.max.packet.bytes": "400000",
        "mqtt.receive.maximum": "50",
    }
    with Broker(settings) as running:
        yield running


def random_messages(random: Random, name: str, version: int) -> list[Publish]:
    messages = []
    for number in range(300):
        qos = random.choice((0, 1, 1))
        size = random.choice((0, 1, 5, 100, 127, 128, 20_000)) if number % 50 else 300_000
        properties = {}
        if version == V5 and random.random() < 0.1:
            properties = {Property.CONTENT_TYPE: "text/plain"}
        messages.append(
            Publish(
                topic=f"{name}/{random.choice('ab')}",
                payload=random.randbytes(size),
                qos=qos,
                packet_id=number + 1 if qos else 0,
                retain=random.random() < 0.05,
                dup=bool(qos) and random.random() < 0.1,
                properties=properties,
            )
        )
    return messages


@pytest.mark.parametrize("version", [V311, V5])
@pytest.mark.parametrize("seed", range(3))
def test_all_messages_are_stored_in_order_and_acknowledged(broker: Broker, version: int, seed: int) -> None:
    random = Random(seed)
    name = f"run{version}{seed}"
    messages = random_messages(random, name, version)
    client = connected(broker.mqtt_port, "runner", version)
    unacknowledged: list[int] = []
    data = b""
    for message in messages:
        data += encode(message, version)
        if message.qos:
            unacknowledged.append(message.packet_id)
        if random.random() < 0.2 or len(unacknowledged) >= 40:
            # In pieces that end anywhere.
            cut = random.randrange(len(data)) if len(data) > 1 else 0
            client.send(data[:cut])
            client.send(data[cut:])
            data = b""
            while unacknowledged:
                assert client.expect(Ack) == Ack(type=PacketType.PUBACK, packet_id=unacknowledged.pop(0))
    client.send(data)
    for packet_id in unacknowledged:
        assert client.expect(Ack).packet_id == packet_id
    client.nothing_more()
    client.close()
    for level in "ab":
        expected = [each for each in messages if each.topic == f"{name}/{level}"]
        records = broker.records(f"{name}.{level}")
        assert [each.value for each in records] == [each.payload for each in expected]
        for record, message in zip(records, expected, strict=True):
            headers = dict(record.headers)
            assert record.key == message.topic.encode() == headers["mqtt.topic"]
            assert headers["mqtt.client_id"] == b"runner"
            assert headers["mqtt.qos"] == b"%d" % message.qos
            assert headers["mqtt.retain"] == b"%d" % message.retain
            assert headers.get("mqtt.content_type") == (b"text/plain" if message.properties else None)


def test_a_right_that_is_taken_away_ends_the_short_way(broker: Broker) -> None:
    client = connected(broker.mqtt_port, "denied")
    for number in range(1, 4):
        client.publish("denied", b"%d" % number, packet_id=number)
    rule = AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name="denied",
        principal="User:ANONYMOUS",
        operation=AclOperation.WRITE,
        permission=AclPermission.DENY,
    )
    with Admin(broker.bootstrap) as admin:
        admin.create_acls([rule])
        ack = client.publish("denied", b"no", packet_id=9)
        while ack is not None and ack.code == 0:  # until the broker has the new rule
            ack = client.publish("denied", b"no", packet_id=9)
        assert ack is not None and ack.code == ReasonCode.NOT_AUTHORIZED
    client.close()


def test_what_is_wrong_in_a_row_of_good_ones_is_found(broker: Broker) -> None:
    good = encode(Publish(topic="row", payload=b"good" * 5, qos=1, packet_id=1), V5)
    no_id, no_topic, no_properties = (
        b"\x32\x0a\x00\x03row\x00\x00\x00xy",
        b"\x30\x03\x00\x09ab",
        b"\x30\x06\x00\x03row\x05",
    )
    expected = (ReasonCode.MALFORMED_PACKET, ReasonCode.PROTOCOL_ERROR)
    for bad in (no_id, no_topic, no_properties, b"\x30\xff\xff\xff\xff"):
        with closing(connected(broker.mqtt_port, "row")) as client:
            client.send(good)
            client.expect(Ack)
            client.send(good + good + bad + bytes(20))
            packet = client.receive()
            while isinstance(packet, Ack):
                packet = client.receive()
            assert isinstance(packet, Disconnect) and packet.code in expected
            assert client.receive() is None


def test_a_client_that_never_waits_for_acknowledgements_is_held_back_or_refused(broker: Broker) -> None:
    client = MqttClient(broker.mqtt_port, V5)
    assert client.connect("eager").properties[Property.RECEIVE_MAXIMUM] == 50
    client.publish("eager", b"first")
    client.send(*(Publish(topic="eager", payload=b"%d" % n, qos=1, packet_id=n) for n in range(1, 41)))
    for number in range(1, 41):
        assert client.expect(Ack).packet_id == number
    client.send(Ping(PacketType.PINGREQ))
    assert client.receive() == Ping(PacketType.PINGRESP)
    client.close()
