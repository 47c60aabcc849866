"""Brokers killed with -9 under MQTT clients: QoS 2 exactly once, QoS 1 at least once, sessions go on."""

from __future__ import annotations

import os
from collections import Counter
from pathlib import Path
from random import Random
from typing import Any

import pytest
from cluster_processes import BROKERS, ClusterProcesses
from mqtt_client import MqttClient
from mqtt_process import MqttBarnabas
from server_process import free_port

from barnabas import Consumer, TopicPartition
from barnabas.mqtt.packets import V5, Ack, PacketType, Publish
from barnabas.mqtt.reason_codes import ReasonCode

pytestmark = pytest.mark.soak
KILLS = int(os.environ.get("MQTT_KILLS", "4"))
WINDOW = 20


class Publisher:
    """Sends numbered messages with QoS 2, and goes on with the same session at any broker."""

    def __init__(self, client_id: str, qos: int, topic: str) -> None:
        self._client_id = client_id
        self._qos = qos
        self._topic = topic
        self._open: dict[int, Publish] = {}
        self._released: list[int] = []
        self._next_id = 1
        self.sent = 0
        self.done = 0
        self._client: MqttClient | None = None

    def connect(self, port: int) -> None:
        self.close()
        client = MqttClient(port, V5)
        answer = client.connect(self._client_id, clean=False, expiry=10_000)
        assert answer.code == 0
        assert answer.session_present or not self.sent
        self._client = client
        for message in self._open.values():
            message.dup = True
            client.send(message)
        for packet_id in self._released:
            client.send(Ack(type=PacketType.PUBREL, packet_id=packet_id))

    def publish(self, count: int) -> None:
        """Raises OSError or EOFError when the broker is gone."""
        assert self._client is not None
        for _ in range(count):
            while len(self._open) + len(self._released) >= WINDOW:
                self.take_one()
            while self._next_id in self._open or self._next_id in self._released:
                self._next_id = self._next_id % 1000 + 1
            packet_id, self._next_id = self._next_id, self._next_id % 1000 + 1
            message = Publish(topic=self._topic, payload=b"%d" % self.sent, qos=self._qos, packet_id=packet_id)
            self._open[packet_id] = message
            self.sent += 1
            self._client.send(message)

    def finish(self) -> None:
        while self._open or self._released:
            self.take_one()

    def take_one(self) -> None:
        assert self._client is not None
        ack: Any = self._client.receive()
        if ack is None:
            raise EOFError
        assert isinstance(ack, Ack), ack
        # What was released just before the kill is not known any more.
        assert ack.code in (0, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND if ack.type is PacketType.PUBCOMP else 0), ack
        if ack.type is PacketType.PUBREC:
            if self._open.pop(ack.packet_id, None) is not None:
                self._released.append(ack.packet_id)
                self._client.send(Ack(type=PacketType.PUBREL, packet_id=ack.packet_id))
            return
        if ack.type is PacketType.PUBCOMP:
            if ack.packet_id in self._released:
                self._released.remove(ack.packet_id)
        else:
            self._open.pop(ack.packet_id, None)
        self.done += 1

    def close(self) -> None:
        if self._client is not None:
            self._client.close()
            self._client = None


def payloads(bootstrap: str, topic: str, partitions: int = 1) -> list[int]:
    found: list[int] = []
    with Consumer(bootstrap, auto_offset_reset="earliest") as consumer:
        places = [TopicPartition(topic, number) for number in range(partitions)]
        consumer.assign(places)
        ends = consumer.end_offsets(places)
        while any(consumer.position(place) < ends[place] for place in places):
            found += [int(record.value or b"-1") for record in consumer.poll(1.0)]
    return found


@pytest.mark.parametrize("qos", [1, 2])
def test_a_lone_broker_is_killed_again_and_again(tmp_path: Path, qos: int) -> None:
    random = Random(qos)
    broker = MqttBarnabas(tmp_path).start()
    publisher = Publisher("killed", qos, "killed/x")
    try:
        for _ in range(KILLS):
            publisher.connect(broker.mqtt_port)
            publisher.publish(random.randrange(1, 200))
            broker.kill()
            broker.start()
        publisher.connect(broker.mqtt_port)
        publisher.publish(10)
        publisher.finish()
        counts = Counter(payloads(broker.bootstrap, "killed.x"))
        assert counts.keys() == set(range(publisher.sent))
        if qos == 2:
            assert set(counts.values()) == {1}
    finally:
        publisher.close()
        broker.stop()


def test_brokers_of_a_cluster_are_killed_in_turn(tmp_path: Path) -> None:
    """The one that has the session, which leads a partition of the topic and one of the sessions as well."""
    cluster = ClusterProcesses(tmp_path, settings={"num.partitions": "3"})
    ports = {number: free_port() for number in BROKERS}
    for number, process in cluster.brokers.items():
        where = process.command.index("--listen")
        listeners = f"PLAINTEXT://127.0.0.1:{process.port},MQTT://127.0.0.1:{ports[number]}"
        process.command[where : where + 2] = ["--set", f"listeners={listeners}"]
    random = Random(3)
    publisher = Publisher("moving", 2, "moving/x")
    with cluster:
        number = 1
        for _ in range(KILLS):
            publisher.connect(ports[number])
            publisher.publish(random.randrange(1, 100))
            cluster.kill(number)
            other = number % 3 + 1
            publisher.connect(ports[other])
            publisher.publish(5)
            publisher.finish()
            cluster.restart(number)
            cluster.wait_until_in_sync()
            number = other
        publisher.close()
        counts = Counter(payloads(cluster.bootstrap, "moving.x", 3))
        assert counts == dict.fromkeys(range(publisher.sent), 1)
