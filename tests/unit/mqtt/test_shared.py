"""Shared subscriptions: consumer groups by the name of the filter."""

from collections.abc import Iterator
from contextlib import closing

import pytest
from eventually import eventually
from mqtt_client import MqttClient, connected

from barnabas import Admin
from barnabas.mqtt.packets import V5, V311, Disconnect, PacketType, Publish, Subscribe, SubscriptionOptions
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"listeners": "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"}) as running:
        with Admin(running.bootstrap) as admin:
            for name in ("jobs.a", "left.a", "slow.a", "kept.a", "bad.a"):
                admin.create_topic(name, partitions=2)
        yield running


def take(client: MqttClient, count: int, *, ack: bool = True) -> list[bytes]:
    payloads = []
    for _ in range(count):
        packet = client.expect(Publish)
        payloads.append(packet.payload)
        if ack:
            client.ack(packet)
    return payloads


@pytest.mark.parametrize("version", [V311, V5])
def test_each_message_goes_to_one_of_the_clients(broker: Broker, version: int) -> None:
    text = f"$share/workers{version}/jobs/+"
    clients = [connected(broker.mqtt_port, f"worker-{number}", version) for number in range(2)]
    for client in clients:
        assert client.subscribe(text) == [1]
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        for number in range(10):
            writer.publish("jobs/a", b"%d" % number)
    received = [take(client, 5) for client in clients]
    assert sorted(received[0] + received[1]) == [b"%d" % number for number in range(10)]
    with Admin(broker.bootstrap) as admin:
        assert text in admin.list_groups()
    for client in clients:
        client.nothing_more()
        client.close()


def test_what_a_client_leaves_behind_goes_to_another_one(broker: Broker) -> None:
    first, second = (connected(broker.mqtt_port, name) for name in ("first", "second"))
    first.subscribe("$share/leavers/left/a")
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        for number in range(3):
            writer.publish("left/a", b"%d" % number)
    assert take(first, 3, ack=False) == [b"0", b"1", b"2"]
    second.subscribe("$share/leavers/left/a")
    first.close()
    assert sorted(take(second, 3)) == [b"0", b"1", b"2"]
    second.close()


def test_the_offsets_of_the_group_are_kept_while_nobody_is_there(broker: Broker) -> None:
    client = connected(broker.mqtt_port, "keeper")
    client.subscribe("$share/keepers/kept/a")
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        writer.publish("kept/a", b"before")
        assert take(client, 1) == [b"before"]
        client.send(Disconnect())
        assert client.receive() is None
        with Admin(broker.bootstrap) as admin:
            group = "$share/keepers/kept/a"
            eventually(lambda: not admin.describe_groups([group])[group].members, timeout=60)
        writer.publish("kept/a", b"meanwhile")
    client = connected(broker.mqtt_port, "keeper")
    client.subscribe("$share/keepers/kept/a")
    assert take(client, 1) == [b"meanwhile"]
    client.close()


def test_qos_2_over_a_shared_subscription(broker: Broker) -> None:
    client = connected(broker.mqtt_port, "two")
    client.subscribe("$share/twos/slow/a", qos=2)
    with closing(connected(broker.mqtt_port, "writer")) as writer:
        writer.publish("slow/a", b"x", qos=2)
    packet = client.expect(Publish)
    assert packet.qos == 2
    client.ack(packet, PacketType.PUBREC)
    client.receive()
    client.ack(packet, PacketType.PUBCOMP)
    client.nothing_more()
    client.close()


def test_names_that_are_none_are_refused(broker: Broker) -> None:
    client = connected(broker.mqtt_port, "names")
    assert (
        client.subscribe("$share//x", "$share/a+/x", "$share/a", "$share/a/") == [ReasonCode.TOPIC_FILTER_INVALID] * 4
    )
    own = SubscriptionOptions(1, no_local=True)
    client.send(Subscribe(packet_id=2, filters=[("$share/a/bad/a", own)]))
    assert client.expect(Disconnect).code == ReasonCode.PROTOCOL_ERROR
    client.close()


def test_nobody_stays_in_the_group_who_has_left(broker: Broker) -> None:
    client = connected(broker.mqtt_port, "leaver")
    text = "$share/gone/jobs/a"
    client.subscribe(text)
    with Admin(broker.bootstrap) as admin:
        eventually(lambda: len(admin.describe_groups([text])[text].members) == 1, timeout=60)
        client.close()
        eventually(lambda: not admin.describe_groups([text])[text].members, timeout=60)
