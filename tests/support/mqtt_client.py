"""An MQTT client by bytes on a socket: packets of our codec, sent and received one by one."""

from __future__ import annotations

import socket
import ssl
from typing import Any

from barnabas.mqtt.codec import decode, encode
from barnabas.mqtt.packet_reader import packet_bytes
from barnabas.mqtt.packets import (
    V5,
    Ack,
    Connack,
    Connect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscriptionAck,
    SubscriptionOptions,
)
from barnabas.mqtt.properties import Property


class MqttClient:
    def __init__(self, port: int, version: int = V5, tls: ssl.SSLContext | None = None) -> None:
        self.version = version
        plain = socket.create_connection(("127.0.0.1", port), timeout=60)
        self._socket = plain if tls is None else tls.wrap_socket(plain, server_hostname="localhost")
        self._data = b""

    def send(self, *packets: Packet | bytes) -> None:
        self._socket.sendall(b"".join(p if isinstance(p, bytes) else encode(p, self.version) for p in packets))

    def receive(self) -> Packet | None:
        while not (size := packet_bytes(memoryview(self._data))) or len(self._data) < size:
            try:
                data = self._socket.recv(65536)
            except ConnectionError:
                return None
            if not data:
                return None
            self._data += data
        packet, self._data = self._data[:size], self._data[size:]
        return decode(memoryview(packet), self.version)

    def read_to_end(self) -> None:
        """Until the broker closes the connection, whatever it sends before."""
        try:
            while self._socket.recv(65536):
                pass
        except ConnectionError:
            pass

    def expect(self, kind: type[Any]) -> Any:
        packet = self.receive()
        assert isinstance(packet, kind), packet
        return packet

    def nothing_more(self) -> None:
        """What the broker had to send is here: a ping comes back next."""
        self.send(Ping(PacketType.PINGREQ))
        assert self.receive() == Ping(PacketType.PINGRESP)

    def drain(self) -> list[bytes]:
        """The payloads that have come by now."""
        self.send(Ping(PacketType.PINGREQ))
        payloads: list[bytes] = []
        while isinstance(packet := self.receive(), Publish):
            payloads.append(packet.payload)
        assert packet == Ping(PacketType.PINGRESP), packet
        return payloads

    def connect(self, client_id: str, *, expiry: int | None = None, clean: bool = True, **fields: Any) -> Connack:
        properties = {} if expiry is None else {Property.SESSION_EXPIRY_INTERVAL: expiry}
        properties |= fields.pop("properties", {})
        self.send(
            Connect(client_id=client_id, version=self.version, clean_start=clean, properties=properties, **fields)
        )
        answer: Connack = self.expect(Connack)
        return answer

    def subscribe(self, *filters: str, qos: int = 1, packet_id: int = 1) -> list[int]:
        options = SubscriptionOptions(qos)
        self.send(Subscribe(packet_id=packet_id, filters=[(text, options) for text in filters]))
        codes: list[int] = self.expect(SubscriptionAck).codes
        return codes

    def publish(self, topic: str, payload: bytes, qos: int = 1, packet_id: int = 1, **fields: Any) -> Ack | None:
        self.send(Publish(topic=topic, payload=payload, qos=qos, packet_id=packet_id if qos else 0, **fields))
        return self.expect(Ack) if qos else None

    def ack(self, packet: Publish, kind: PacketType = PacketType.PUBACK) -> None:
        self.send(Ack(type=kind, packet_id=packet.packet_id))

    def close(self) -> None:
        self._socket.close()

    def __del__(self) -> None:
        self._socket.close()  # of a test that has failed, or whose broker was killed


def connected(port: int, client_id: str, version: int = V5, **fields: Any) -> MqttClient:
    client = MqttClient(port, version)
    answer = client.connect(client_id, **fields)
    assert answer.code == 0, answer
    return client
