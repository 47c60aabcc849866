"""Sessions that outlive their connections, and what QoS 1 and 2 promise over them."""

import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
from mqtt_client import MqttClient, connected

from barnabas.mqtt.packets import V5, V311, Ack, Disconnect, PacketType, Publish, Will
from barnabas.mqtt.properties import Property
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker

SETTINGS = {"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker(SETTINGS) as running:
        yield running


def resumed(broker: Broker, client_id: str, version: int = V5) -> MqttClient:
    client = MqttClient(broker.mqtt_port, version)
    answer = client.connect(client_id, clean=False, expiry=1000 if version == V5 else None)
    assert answer.session_present
    return client


@pytest.mark.parametrize("version", [V311, V5])
def test_messages_that_came_while_the_client_was_away_are_delivered(broker: Broker, version: int) -> None:
    reader = MqttClient(broker.mqtt_port, version)
    assert not reader.connect(f"away{version}", clean=False, expiry=1000 if version == V5 else None).session_present
    assert reader.subscribe(f"away{version}/+") == [1]
    reader.send(Disconnect())
    assert reader.receive() is None
    writer = connected(broker.mqtt_port, "writer", version)
    for number in range(3):
        writer.publish(f"away{version}/x", b"%d" % number)
    writer.publish(f"away{version}/x", b"not kept", qos=0)
    writer.publish(f"away{version}/new", b"a topic that is new")
    reader = resumed(broker, f"away{version}", version)
    received = [reader.expect(Publish) for _ in range(4)]
    assert {each.payload for each in received} == {b"0", b"1", b"2", b"a topic that is new"}
    assert [each.payload for each in received if each.topic.endswith("x")] == [b"0", b"1", b"2"]
    for each in received:
        reader.ack(each)
    writer.publish(f"away{version}/x", b"live", qos=0)
    assert reader.expect(Publish).payload == b"live"
    reader.close()
    writer.close()


def test_what_was_not_acknowledged_comes_again_with_its_packet_id(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "again", clean=False, expiry=1000)
    reader.subscribe("again")
    writer = connected(broker.mqtt_port, "writer")
    for number in range(3):
        writer.publish("again", b"%d" % number)
    first, second, third = (reader.expect(Publish) for _ in range(3))
    reader.ack(second)
    reader.nothing_more()
    reader.close()
    reader = resumed(broker, "again")
    for before in (first, third):
        packet = reader.expect(Publish)
        assert (packet.payload, packet.packet_id, packet.dup) == (before.payload, before.packet_id, True)
        reader.ack(packet)
    reader.nothing_more()
    reader.close()
    writer.close()


def test_qos_2_goes_on_where_it_was_interrupted(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "steps", clean=False, expiry=1000)
    reader.subscribe("steps", qos=2)
    writer = connected(broker.mqtt_port, "writer")
    for number in range(2):
        writer.publish("steps", b"%d" % number, qos=2, packet_id=number + 1)
        writer.send(Ack(type=PacketType.PUBREL, packet_id=number + 1))
        writer.expect(Ack)
    first, second = reader.expect(Publish), reader.expect(Publish)
    reader.ack(first, PacketType.PUBREC)
    assert reader.expect(Ack).type is PacketType.PUBREL
    reader.close()
    reader = resumed(broker, "steps")
    assert reader.expect(Ack) == Ack(type=PacketType.PUBREL, packet_id=first.packet_id)
    again = reader.expect(Publish)
    assert (again.payload, again.packet_id, again.dup) == (b"1", second.packet_id, True)
    reader.ack(first, PacketType.PUBCOMP)
    reader.ack(second, PacketType.PUBREC)
    assert reader.expect(Ack).type is PacketType.PUBREL
    reader.ack(second, PacketType.PUBCOMP)
    reader.nothing_more()
    reader.close()
    reader = resumed(broker, "steps")
    reader.nothing_more()
    reader.close()
    writer.close()


def test_a_clean_start_ends_the_session_that_was_there(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "fresh", clean=False, expiry=1000)
    reader.subscribe("fresh/#")
    reader.close()
    reader = MqttClient(broker.mqtt_port)
    assert not reader.connect("fresh", clean=True, expiry=1000).session_present
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        writer.publish("fresh/x", b"nobody's")
    reader.nothing_more()
    reader.close()


def test_a_session_is_over_after_its_expiry_interval(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "short", clean=False, expiry=1)
    reader.subscribe("short")
    reader.close()

    time.sleep(1.1)
    reader = MqttClient(broker.mqtt_port)
    assert not reader.connect("short", clean=False, expiry=1).session_present
    reader.close()


def test_disconnect_may_change_the_expiry_interval(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "leaving", clean=False, expiry=1000)
    reader.send(Disconnect(properties={Property.SESSION_EXPIRY_INTERVAL: 0}))
    assert reader.receive() is None
    reader = MqttClient(broker.mqtt_port)
    assert not reader.connect("leaving", clean=False, expiry=1000).session_present
    reader.close()


def test_a_delayed_will_waits_and_is_not_published_if_the_client_is_back(broker: Broker) -> None:
    watcher = connected(broker.mqtt_port, "watcher")
    watcher.subscribe("wills/+")
    for client_id, delay in (("late", 1), ("back", 1000)):
        mortal = MqttClient(broker.mqtt_port)
        will = Will(topic=f"wills/{client_id}", payload=b"gone", properties={Property.WILL_DELAY_INTERVAL: delay})
        mortal.connect(client_id, clean=False, expiry=2000, will=will)
        mortal.close()
    back = connected(broker.mqtt_port, "back", clean=False, expiry=2000)
    assert watcher.expect(Publish).topic == "wills/late"
    watcher.nothing_more()
    back.close()
    watcher.close()


def test_a_message_that_has_expired_is_not_delivered(broker: Broker) -> None:
    reader = connected(broker.mqtt_port, "expiry", clean=False, expiry=1000)
    reader.subscribe("expiry")
    reader.close()
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        writer.publish("expiry", b"short", properties={Property.MESSAGE_EXPIRY_INTERVAL: 1})
        writer.publish("expiry", b"long", properties={Property.MESSAGE_EXPIRY_INTERVAL: 1000})
    time.sleep(1.1)
    reader = resumed(broker, "expiry")
    packet = reader.expect(Publish)
    assert packet.payload == b"long"
    assert 900 < packet.properties[Property.MESSAGE_EXPIRY_INTERVAL] < 1000
    reader.close()


def test_the_receive_maximum_of_a_client_is_kept(broker: Broker) -> None:
    reader = MqttClient(broker.mqtt_port)
    reader.connect("window", properties={Property.RECEIVE_MAXIMUM: 2})
    reader.subscribe("window")
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        for number in range(4):
            writer.publish("window", b"%d" % number)
    first, second = reader.expect(Publish), reader.expect(Publish)
    reader.nothing_more()
    reader.ack(first)
    reader.ack(second)
    assert [reader.expect(Publish).payload for _ in range(2)] == [b"2", b"3"]
    reader.close()


@pytest.mark.parametrize("step", ["before PUBREC was read", "before PUBREL", "before PUBCOMP was read"])
def test_qos_2_is_stored_once_although_the_broker_is_killed(tmp_path: Path, step: str) -> None:
    broker = Broker(SETTINGS, data_dir=tmp_path).start()
    try:
        client = connected(broker.mqtt_port, "once", clean=False, expiry=1000)
        messages = [Publish(topic="once", payload=b"%d" % n, qos=2, packet_id=n + 1) for n in range(12)]
        client.send(*messages)
        for _ in messages:
            client.expect(Ack)
        if step == "before PUBCOMP was read":
            client.send(Ack(type=PacketType.PUBREL, packet_id=1))
            client.expect(Ack)
        broker.kill()
        client.close()
        broker.start()
        client = resumed(broker, "once")
        left = messages[1:] if step == "before PUBCOMP was read" else messages
        if step == "before PUBREC was read":
            for each in left:
                each.dup = True
            client.send(*left)
            for each in left:
                assert client.expect(Ack) == Ack(type=PacketType.PUBREC, packet_id=each.packet_id)
        client.send(*(Ack(type=PacketType.PUBREL, packet_id=each.packet_id) for each in left))
        for each in left:
            assert client.expect(Ack) == Ack(type=PacketType.PUBCOMP, packet_id=each.packet_id)
        client.publish("once", b"next", qos=2, packet_id=1)
        assert [each.value for each in broker.records("once")] == [*(each.payload for each in messages), b"next"]
        client.close()
    finally:
        broker.stop()


def test_a_session_survives_a_broker_that_is_killed(tmp_path: Path) -> None:
    broker = Broker(SETTINGS, data_dir=tmp_path).start()
    try:
        reader = connected(broker.mqtt_port, "survivor", clean=False, expiry=1000)
        reader.subscribe("kept/#")
        writer = connected(broker.mqtt_port, "writer")
        writer.publish("kept/x", b"1")
        reader.ack(reader.expect(Publish))
        writer.publish("kept/x", b"2")
        broker.kill()
        broker.start()
        reader = resumed(broker, "survivor")
        received = [reader.expect(Publish).payload]
        if received == [b"1"]:  # its acknowledgement was not stored yet, and QoS 1 means at least once
            received.append(reader.expect(Publish).payload)
        assert received[-1] == b"2"
        reader.close()
    finally:
        broker.stop()


def test_the_session_of_another_user_is_not_taken_over() -> None:
    listeners = "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"
    plain = 'PlainLoginModule required user_ann="a" user_bob="b";'
    with Broker({"listeners": listeners, "listener.name.mqtt.plain.sasl.jaas.config": plain}) as broker:
        ann = MqttClient(broker.mqtt_port)
        ann.connect("shared-id", clean=False, expiry=1000, username="ann", password=b"a")
        ann.subscribe("secret")
        bob = MqttClient(broker.mqtt_port)
        answer = bob.connect("shared-id", clean=False, expiry=1000, username="bob", password=b"b")
        assert answer.code == 0 and not answer.session_present
        gone = ann.expect(Disconnect)
        assert gone.code == ReasonCode.SESSION_TAKEN_OVER
        bob.nothing_more()
        ann.close()
        bob.close()


def test_qos_2_reaches_a_subscriber_once_although_the_broker_is_killed(tmp_path: Path) -> None:
    """The packet id is stored before PUBLISH goes out, PUBREC before PUBREL."""
    broker = Broker(SETTINGS, data_dir=tmp_path).start()
    try:
        reader = connected(broker.mqtt_port, "stepwise", clean=False, expiry=1000)
        reader.subscribe("stepwise", qos=2)
        with closing(connected(broker.mqtt_port, "writer")) as writer:
            for number in range(2):
                writer.publish("stepwise", b"%d" % number, qos=2, packet_id=number + 1)
        first, second = reader.expect(Publish), reader.expect(Publish)
        broker.kill()
        broker.start()
        reader = resumed(broker, "stepwise")
        for before in (first, second):
            again = reader.expect(Publish)
            assert (again.payload, again.packet_id, again.dup) == (before.payload, before.packet_id, True)
        reader.ack(first, PacketType.PUBREC)
        assert reader.expect(Ack).type is PacketType.PUBREL
        broker.kill()
        broker.start()
        reader = resumed(broker, "stepwise")
        assert reader.expect(Ack) == Ack(type=PacketType.PUBREL, packet_id=first.packet_id)
        again = reader.expect(Publish)
        assert (again.payload, again.packet_id, again.dup) == (b"1", second.packet_id, True)
        reader.close()
    finally:
        broker.stop()
