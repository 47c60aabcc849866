"""MQTT clients of a real broker, in both versions, by bytes on a socket."""

import socket
from collections.abc import Iterator

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
    assert bad.receive() == Disconnect(code=ReasonCode.MALFORMED_PACKET)
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


def test_what_is_not_there_is_refused(broker: Broker) -> None:
    client = connected(broker, V5)
    client.send(Publish(topic="a", payload=b"", qos=2, packet_id=1))
    assert client.receive() == Disconnect(code=ReasonCode.QOS_NOT_SUPPORTED)
    client.close()
    early = Client(broker, V5)
    early.send(Ping(PacketType.PINGREQ))
    answer = early.receive()
    assert isinstance(answer, Connack) and answer.code == ReasonCode.PROTOCOL_ERROR
    early.close()
