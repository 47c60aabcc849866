"""MQTT clients of a real broker, in both versions, by bytes on a socket."""

import socket
from collections.abc import Iterator
from urllib.request import urlopen

import pytest

from barnabas.mqtt.codec import decode, encode
from barnabas.mqtt.packet_reader import packet_bytes
from barnabas.mqtt.packets import (
    V5,
    V311,
    Ack,
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
    Will,
)
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker


class Client:
    def __init__(self, broker: Broker, version: int) -> None:
        self._version = version
        self._socket = socket.create_connection(("127.0.0.1", broker.mqtt_port), timeout=60)
        self._data = b""

    def send(self, *packets: Packet | bytes) -> None:
        self._socket.sendall(b"".join(p if isinstance(p, bytes) else encode(p, self._version) for p in packets))

    def receive(self) -> Packet | None:
        while not (size := packet_bytes(memoryview(self._data))) or len(self._data) < size:
            data = self._socket.recv(65536)
            if not data:
                return None
            self._data += data
        packet, self._data = self._data[:size], self._data[size:]
        return decode(memoryview(packet), self._version)

    def close(self) -> None:
        self._socket.close()


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"}) as running:
        yield running


def connected(broker: Broker, version: int, client_id: str = "c") -> Client:
    client = Client(broker, version)
    client.send(Connect(client_id=client_id, version=version))
    answer = client.receive()
    assert isinstance(answer, Connack) and answer.code == 0
    return client


@pytest.mark.parametrize("version", [V311, V5])
def test_published_messages_are_records_and_reach_subscribers(broker: Broker, version: int) -> None:
    name = f"v{version}/7/temp"
    reader = connected(broker, version, "reader")
    reader.send(Subscribe(packet_id=1, filters=[(f"v{version}/+/temp", SubscriptionOptions(1))]))
    assert reader.receive() == SubscriptionAck(type=PacketType.SUBACK, packet_id=1, codes=[1])
    writer = connected(broker, version, "writer")
    writer.send(Publish(topic=name, payload=b"a"), Publish(topic=name, payload=b"b", qos=1, packet_id=9))
    assert writer.receive() == Ack(type=PacketType.PUBACK, packet_id=9)
    records = broker.records(name.replace("/", "."))
    assert [(each.key, each.value) for each in records] == [(name.encode(), b"a"), (name.encode(), b"b")]
    first, second = reader.receive(), reader.receive()
    assert first == Publish(topic=name, payload=b"a")
    assert second == Publish(topic=name, payload=b"b", qos=1, packet_id=1)
    reader.send(Ack(type=PacketType.PUBACK, packet_id=1), Ping(PacketType.PINGREQ))
    assert reader.receive() == Ping(PacketType.PINGRESP)
    for client in (reader, writer):
        client.send(Disconnect())
        assert client.receive() is None
        client.close()


def test_a_malformed_packet_ends_its_connection_only(broker: Broker) -> None:
    good, bad = connected(broker, V5, "good"), connected(broker, V5, "bad")
    bad.send(b"\x36\x05\x00\x01a\x00\x01")
    answer = bad.receive()
    assert isinstance(answer, Disconnect) and answer.code == ReasonCode.MALFORMED_PACKET
    assert bad.receive() is None
    good.send(Ping(PacketType.PINGREQ))
    assert good.receive() == Ping(PacketType.PINGRESP)
    good.close()
    bad.close()


def test_a_second_client_with_the_same_id_takes_over(broker: Broker) -> None:
    first = connected(broker, V5, "twin")
    second = connected(broker, V5, "twin")
    assert first.receive() == Disconnect(code=ReasonCode.SESSION_TAKEN_OVER)
    second.send(Ping(PacketType.PINGREQ))
    assert second.receive() == Ping(PacketType.PINGRESP)
    first.close()
    second.close()


def test_the_first_packet_must_be_connect(broker: Broker) -> None:
    early = Client(broker, V5)
    early.send(Ping(PacketType.PINGREQ))
    assert early.receive() is None
    early.close()


@pytest.mark.parametrize(
    ("connect", "answer"),
    [
        (b"\x10\x0e\x00\x06MQIsdp\x03\x02\x00\x3c\x00\x00", b"\x20\x02\x00\x01"),
        (b"\x10\x0c\x00\x04MQTT\x06\x02\x00\x3c\x00\x00", b"\x20\x03\x00\x84\x00"),
        (b"\x10\x0c\x00\x04MQTX\x04\x02\x00\x3c\x00\x00", b"\x20\x02\x00\x01"),
    ],
)
def test_other_versions_are_told_so_as_they_read_it(broker: Broker, connect: bytes, answer: bytes) -> None:
    with socket.create_connection(("127.0.0.1", broker.mqtt_port), timeout=60) as client:
        client.sendall(connect)
        received = b""
        while data := client.recv(100):
            received += data
    assert received == answer


def test_clients_and_messages_are_counted() -> None:
    settings = {"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0", "metrics.listener": "127.0.0.1:0"}
    with Broker(settings) as broker:
        reader, writer = connected(broker, V5, "reader"), connected(broker, V5, "writer")
        reader.send(Subscribe(packet_id=1, filters=[("count/+", SubscriptionOptions(1))]))
        assert isinstance(reader.receive(), SubscriptionAck)
        for number in range(1, 4):
            writer.send(Publish(topic="count/x", payload=b"x", qos=1, packet_id=number))
            assert isinstance(writer.receive(), Ack)
            assert isinstance(reader.receive(), Publish)
        host, port = broker.metrics_address
        with urlopen(f"http://{host}:{port}/metrics", timeout=60) as response:
            lines = dict(line.rsplit(" ", 1) for line in response.read().decode().splitlines() if line[:1] != "#")
        found = {name: float(value) for name, value in lines.items() if name.startswith("barnabas_mqtt_")}
        assert found == {
            "barnabas_mqtt_connections": 2,
            "barnabas_mqtt_sessions": 0,
            "barnabas_mqtt_in_flight": 3,
            "barnabas_mqtt_publishes_total": 3,
            "barnabas_mqtt_deliveries_total": 3,
        }
        reader.close()
        writer.close()


@pytest.mark.parametrize("version", [V311, V5])
def test_qos_2_is_stored_once_and_delivered_in_four_steps(broker: Broker, version: int) -> None:
    name = f"q2/v{version}"
    reader, writer = connected(broker, version, "reader"), connected(broker, version, "writer")
    reader.send(Subscribe(packet_id=1, filters=[(name, SubscriptionOptions(2))]))
    assert reader.receive() == SubscriptionAck(type=PacketType.SUBACK, packet_id=1, codes=[2])
    message = Publish(topic=name, payload=b"once", qos=2, packet_id=7)
    writer.send(message)
    assert writer.receive() == Ack(type=PacketType.PUBREC, packet_id=7)
    message.dup = True
    writer.send(message, Ack(type=PacketType.PUBREL, packet_id=7))
    assert writer.receive() == Ack(type=PacketType.PUBREC, packet_id=7)
    assert writer.receive() == Ack(type=PacketType.PUBCOMP, packet_id=7)
    assert [each.value for each in broker.records(name.replace("/", "."))] == [b"once"]
    writer.send(Ack(type=PacketType.PUBREL, packet_id=7))
    unknown = ReasonCode.PACKET_IDENTIFIER_NOT_FOUND if version == V5 else 0
    assert writer.receive() == Ack(type=PacketType.PUBCOMP, packet_id=7, code=unknown)
    assert reader.receive() == Publish(topic=name, payload=b"once", qos=2, packet_id=1)
    reader.send(Ack(type=PacketType.PUBREC, packet_id=1))
    assert reader.receive() == Ack(type=PacketType.PUBREL, packet_id=1)
    reader.send(Ack(type=PacketType.PUBCOMP, packet_id=1), Ping(PacketType.PINGREQ))
    assert reader.receive() == Ping(PacketType.PINGRESP)
    reader.close()
    writer.close()


@pytest.mark.parametrize("version", [V311, V5])
def test_the_last_retained_message_is_for_those_who_come_later(broker: Broker, version: int) -> None:
    base = f"kept/v{version}"
    writer = connected(broker, version, "writer")
    for number, (name, payload) in enumerate((("a", b"old"), ("a", b"new"), ("b", b"gone"), ("b", b"")), 1):
        writer.send(Publish(topic=f"{base}/{name}", payload=payload, qos=1, retain=True, packet_id=number))
        assert writer.receive() == Ack(type=PacketType.PUBACK, packet_id=number)
    reader = connected(broker, version, "reader")
    for packet_id, filter_text in ((1, f"{base}/a"), (2, f"{base}/#")):
        reader.send(Subscribe(packet_id=packet_id, filters=[(filter_text, SubscriptionOptions(0))]))
        assert reader.receive() == SubscriptionAck(type=PacketType.SUBACK, packet_id=packet_id, codes=[0])
        assert reader.receive() == Publish(topic=f"{base}/a", payload=b"new", retain=True)
    writer.send(Publish(topic=f"{base}/a", payload=b"live", retain=True))
    assert reader.receive() == Publish(topic=f"{base}/a", payload=b"live")
    reader.close()
    writer.close()


def test_options_of_a_subscription_decide_about_retained_messages(broker: Broker) -> None:
    writer, reader = connected(broker, V5, "writer"), connected(broker, V5, "reader")
    writer.send(Publish(topic="opt/a", payload=b"1", qos=1, retain=True, packet_id=1))
    assert writer.receive() == Ack(type=PacketType.PUBACK, packet_id=1)
    never = SubscriptionOptions(0, retain_as_published=True, retain_handling=2)
    once = SubscriptionOptions(0, retain_as_published=True, retain_handling=1)
    reader.send(Subscribe(packet_id=1, filters=[("opt/a", never)]), Subscribe(packet_id=2, filters=[("opt/a", once)]))
    for packet_id in (1, 2):
        assert reader.receive() == SubscriptionAck(type=PacketType.SUBACK, packet_id=packet_id, codes=[0])
    writer.send(Publish(topic="opt/a", payload=b"2", retain=True))
    assert reader.receive() == Publish(topic="opt/a", payload=b"2", retain=True)
    reader.close()
    writer.close()


def test_a_retained_will_is_published_when_the_connection_breaks(broker: Broker) -> None:
    reader = connected(broker, V5, "reader")
    reader.send(Subscribe(packet_id=1, filters=[("wills/#", SubscriptionOptions(1))]))
    assert isinstance(reader.receive(), SubscriptionAck)
    client = Client(broker, V5)
    will = Will(topic="wills/x", payload=b"gone", qos=1, retain=True)
    client.send(Connect(client_id="mortal", will=will))
    assert isinstance(client.receive(), Connack)
    client.close()
    assert reader.receive() == Publish(topic="wills/x", payload=b"gone", qos=1, packet_id=1)
    reader.close()
