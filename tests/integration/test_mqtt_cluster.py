"""MQTT clients of a cluster: any broker will do, and sessions outlive the broker that had them."""

from collections.abc import Iterator

import pytest
from eventually import eventually
from mqtt_client import MqttClient

from barnabas.mqtt.packets import V5, Ack, Disconnect, PacketType, Publish, Will
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker, Cluster

SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0",
    "default.replication.factor": "3",
    "min.insync.replicas": "2",
}


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster(3, SETTINGS) as running:
        yield running


def joined(broker: Broker, client_id: str, **fields: object) -> MqttClient:
    client = MqttClient(broker.mqtt_port, V5)
    answer = client.connect(client_id, **fields)  # type: ignore[arg-type]
    assert answer.code == 0
    return client


def test_any_broker_takes_and_brings_messages(cluster: Cluster) -> None:
    cluster.create_topic("any.a", partitions=3)
    readers = [joined(broker, f"reader-{number}") for number, broker in enumerate(cluster.brokers)]
    for reader in readers:
        assert reader.subscribe("any/+", qos=2) == [2]
    for number, broker in enumerate(cluster.brokers):
        writer = joined(broker, f"writer-{number}")
        for qos in (1, 2):
            ack = writer.publish("any/a", b"%d %d" % (number, qos), qos=qos, packet_id=qos)
            assert ack is not None and ack.code == 0
        writer.close()
    expected = sorted(b"%d %d" % (number, qos) for number in range(3) for qos in (1, 2))
    for reader in readers:
        assert sorted(reader.expect(Publish).payload for _ in expected) == expected
        reader.close()


def test_the_session_goes_along_to_another_broker(cluster: Cluster) -> None:
    here, there = cluster.brokers[0], cluster.brokers[1]
    cluster.create_topic("moving.a", partitions=1)
    first = joined(here, "mover", clean=False, expiry=1000)
    first.subscribe("moving/a", qos=2)
    writer = joined(here, "writer")
    writer.publish("moving/a", b"1", qos=2)
    packet = first.expect(Publish)
    second = joined(there, "mover", clean=False, expiry=1000)
    assert first.expect(Disconnect).code == ReasonCode.SESSION_TAKEN_OVER
    again = second.expect(Publish)
    assert (again.payload, again.packet_id, again.dup) == (b"1", packet.packet_id, True)
    second.ack(again, PacketType.PUBREC)
    assert second.expect(Ack).type is PacketType.PUBREL
    third = joined(cluster.brokers[2], "mover", clean=True)
    assert second.expect(Disconnect).code == ReasonCode.SESSION_TAKEN_OVER
    for client in (first, second, third, writer):
        client.close()


def test_qos_2_is_stored_once_over_a_failover(cluster: Cluster) -> None:
    cluster.create_topic("once.a", partitions=1)
    leader = cluster.leader("once.a", 0)
    for number in range(2):
        # The client's broker is killed, and with it the leader of the partition the first time.
        broker = cluster.brokers[leader] if number == 0 else cluster.brokers[(leader + 1) % 3]
        client = joined(broker, "failing-over", clean=False, expiry=1000)
        messages = [Publish(topic="once/a", payload=b"%d-%d" % (number, n), qos=2, packet_id=n + 1) for n in range(8)]
        client.send(*messages)
        assert client.expect(Ack).type is PacketType.PUBREC
        cluster.kill(int(cluster.brokers.index(broker)))
        client.close()
        other = cluster.brokers[(cluster.brokers.index(broker) + 1) % 3]
        client = joined(other, "failing-over", clean=False, expiry=1000)
        for each in messages:
            each.dup = True
        client.send(*messages)
        for each in messages:
            assert client.expect(Ack) == Ack(type=PacketType.PUBREC, packet_id=each.packet_id)
        client.send(*(Ack(type=PacketType.PUBREL, packet_id=each.packet_id) for each in messages))
        released = [client.expect(Ack) for _ in messages]
        assert sorted(each.packet_id for each in released) == [each.packet_id for each in messages]
        assert {(each.type, each.code) for each in released} == {(PacketType.PUBCOMP, 0)}
        client.close()
        cluster.restart(int(cluster.brokers.index(broker)))
    payloads = [each.value for each in cluster.records("once.a")]
    assert payloads == [b"%d-%d" % (number, n) for number in range(2) for n in range(8)]


def test_the_will_of_a_client_whose_broker_dies_is_published(cluster: Cluster) -> None:
    cluster.create_topic("wills.x")
    watcher = joined(cluster.brokers[0], "watcher")
    watcher.subscribe("wills/+")
    mortal = joined(cluster.brokers[2], "mortal", will=Will(topic="wills/x", payload=b"gone"))
    cluster.kill(2)
    assert watcher.expect(Publish).payload == b"gone"
    mortal.close()
    watcher.close()


def test_a_shared_subscription_is_spread_over_brokers(cluster: Cluster) -> None:
    cluster.create_topic("jobs.a", partitions=4)
    cluster.create_topic("jobs.b", partitions=4)
    clients = [joined(broker, f"worker-{number}") for number, broker in enumerate(cluster.brokers[:2])]
    for client in clients:
        client.subscribe("$share/workers/jobs/+", qos=0)
    received: list[list[bytes]] = [[], []]
    writer = joined(cluster.brokers[2], "writer")
    sent = 0

    def all_have_come() -> bool:
        for client, payloads in zip(clients, received, strict=True):
            payloads += client.drain()
        return sum(map(len, received)) >= sent

    def both_have_some() -> bool:
        nonlocal sent
        writer.publish(f"jobs/{'ab'[sent % 2]}", b"%d" % sent)
        sent += 1
        return all_have_come() and all(received)

    eventually(both_have_some, timeout=60)
    eventually(all_have_come, timeout=60)
    assert sorted(received[0] + received[1]) == sorted(b"%d" % number for number in range(sent))
    for client in (*clients, writer):
        client.close()
