"""Several brokers in one process: roles, kills, restarts and partitions."""

import asyncio
import socket
from pathlib import Path

import pytest

from barnabas import Admin, Producer, TopicExistsError
from barnabas.testing import Broker, Cluster
from barnabas.testing.network import BreakableNetwork
from barnabas.transport.channel import ResolvedAddress, SocketOptions


def test_three_brokers_are_one_cluster(barnabas_cluster: Cluster) -> None:
    assert len(barnabas_cluster.bootstrap.split(",")) == len(barnabas_cluster.brokers) == 3
    assert barnabas_cluster.controller in (0, 1, 2)
    barnabas_cluster.create_topic("t", partitions=6, replication_factor=1)
    assert {barnabas_cluster.leader("t", n) for n in range(6)} == {0, 1, 2}
    with pytest.raises(TopicExistsError):
        barnabas_cluster.create_topic("t", replication_factor=1)


def test_any_broker_leads_to_all_records(barnabas_cluster: Cluster) -> None:
    barnabas_cluster.create_topic("t", partitions=3, replication_factor=1)
    with Producer(barnabas_cluster.brokers[1].bootstrap) as producer:
        for partition in range(3):
            producer.send("t", b"%d" % partition, partition=partition).result()
    assert [record.value for record in barnabas_cluster.records("t")] == [b"0", b"1", b"2"]


def test_a_killed_broker_refuses_connections_and_comes_back_with_what_it_had(barnabas_cluster: Cluster) -> None:
    barnabas_cluster.create_topic("t", replication_factor=1)
    leader = barnabas_cluster.leader("t", 0)
    broker = barnabas_cluster.brokers[leader]
    port = broker.port
    with Producer(barnabas_cluster.bootstrap) as producer:
        producer.send("t", b"kept").result()
        barnabas_cluster.kill(leader)
        assert not broker.is_running
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.1", port))
        sent = producer.send("t", b"waits")
        barnabas_cluster.restart(leader)
        assert sent.result().offset == 1
    assert broker.port == port
    assert [record.value for record in barnabas_cluster.records("t")] == [b"kept", b"waits"]


@pytest.mark.barnabas_settings({"min.insync.replicas": 2})
def test_a_kill_leaves_no_error_in_the_log(barnabas_cluster: Cluster, caplog: pytest.LogCaptureFixture) -> None:
    """The killed broker's loop must not run on with sockets that are closed."""
    barnabas_cluster.create_topic("busy", partitions=3)
    with Producer(barnabas_cluster.bootstrap) as producer:
        for number in range(3):
            sent = [producer.send("busy", b"x" * 100) for _ in range(300)]
            barnabas_cluster.kill(number)
            barnabas_cluster.restart(number)
            for each in sent:
                each.result(60)
    assert [each for each in caplog.messages if "Exception in callback" in each] == []


def test_what_is_acknowledged_survives_its_leader(barnabas_cluster: Cluster) -> None:
    barnabas_cluster.create_topic("t")
    with Producer(barnabas_cluster.bootstrap, acks="all", retry_backoff_ms=20) as producer:
        for number in range(3):
            producer.send("t", b"%d" % number).result()
        killed = barnabas_cluster.leader("t", 0)
        barnabas_cluster.kill(killed)
        assert producer.send("t", b"3").result().offset == 3
        assert barnabas_cluster.leader("t", 0) != killed
        barnabas_cluster.restart(killed)
    assert [record.value for record in barnabas_cluster.records("t")] == [b"0", b"1", b"2", b"3"]


@pytest.mark.barnabas_settings({"replica.lag.time.max.ms": 500})
def test_brokers_that_are_cut_off_from_each_other() -> None:
    # The follower leaves soon, not after half a minute.
    with Cluster(settings={"replica.lag.time.max.ms": 2000}) as cluster:
        # Only a leader that reaches the controller can have its follower taken out of the in-sync replicas.
        leader = cluster.controller
        follower = next(number for number in range(3) if number != leader)
        with Admin(cluster.bootstrap) as admin:
            admin.create_topic("t", assignments={0: [leader, follower]})
        assert cluster.leader("t", 0) == leader
        cluster.partition(leader, follower)
        with Producer(cluster.bootstrap, acks="all") as producer:
            producer.send("t", b"alone").result()  # once the follower has left the in-sync replicas
        assert _in_sync(cluster, leader) == {leader}
        cluster.heal()
        met = cluster.brokers[leader].when_image(
            lambda image: len(image.topics["t"].partitions[0].in_sync_replicas) == 2
        )
        met.result(60)


def _in_sync(cluster: Cluster, number: int) -> set[int]:
    return set(cluster.brokers[number]._running().cluster.image.topics["t"].partitions[0].in_sync_replicas)


def test_another_controller_takes_over_when_it_is_killed(barnabas_cluster: Cluster) -> None:
    first = barnabas_cluster.controller
    barnabas_cluster.kill(first)
    second = barnabas_cluster.controller
    assert second != first
    barnabas_cluster.create_topic("t", partitions=4, replication_factor=1)
    assert first not in {barnabas_cluster.leader("t", n) for n in range(4)}
    barnabas_cluster.restart(first)
    assert barnabas_cluster.controller == second


def test_a_clean_restart(tmp_path: Path) -> None:
    cluster = Cluster(2, data_dir=tmp_path)
    with cluster:
        cluster.create_topic("t", replication_factor=1)
        leader = cluster.leader("t", 0)
        with Producer(cluster.bootstrap) as producer:
            producer.send("t", b"kept").result()
        cluster.restart(leader)
        assert [record.value for record in cluster.records("t")] == [b"kept"]
    assert (tmp_path / str(leader) / "t-0").is_dir()
    with cluster:
        assert [record.value for record in cluster.records("t")] == [b"kept"]


def test_a_request_fault_of_one_broker(barnabas_cluster: Cluster) -> None:
    barnabas_cluster.create_topic("t", replication_factor=1)
    barnabas_cluster.brokers[barnabas_cluster.leader("t", 0)].fault("Produce", error="NOT_LEADER_OR_FOLLOWER")
    with Producer(barnabas_cluster.bootstrap, retry_backoff_ms=10) as producer:
        assert producer.send("t", b"once").result().offset == 0
    barnabas_cluster.brokers[0].fault("Metadata", close=True, count=None)
    barnabas_cluster.clear_faults()
    assert len(barnabas_cluster.records("t")) == 1


@pytest.mark.barnabas_settings({"num.partitions": 5})
def test_settings_are_for_every_broker(barnabas_cluster: Cluster) -> None:
    barnabas_cluster.create_topic("t", -1, replication_factor=1)
    assert {barnabas_cluster.leader("t", n) for n in range(5)} == {0, 1, 2}


def test_a_lone_broker_can_be_killed_too(tmp_path: Path) -> None:
    broker = Broker(data_dir=tmp_path).start()
    with Producer(broker.bootstrap) as producer:
        producer.send("t", b"kept").result()
        broker.kill()
        with pytest.raises(RuntimeError, match="does not run"):
            broker.kill()
        broker.start()
        producer.send("t", b"later").result()
    assert [record.value for record in broker.records("t")] == [b"kept", b"later"]
    broker.stop()


def test_a_cluster_that_cannot_be() -> None:
    with pytest.raises(ValueError, match="at least one"):
        Cluster(0)
    with pytest.raises(RuntimeError, match="no broker runs"):
        assert Cluster().bootstrap


def test_a_partition_ends_connections_and_leaves_new_ones_without_a_response(barnabas_broker: Broker) -> None:
    async def scenario() -> None:
        network = BreakableNetwork()
        address = ResolvedAddress(socket.AF_INET, ("127.0.0.1", barnabas_broker.port))
        channel = await network.connect(address, SocketOptions())
        network.cut(frozenset({barnabas_broker.port}))
        await asyncio.wait_for(_readable(channel.fileno()), 10)
        assert channel.recv_into(memoryview(bytearray(1))) == 0
        channel.close()
        connecting = asyncio.ensure_future(network.connect(address, SocketOptions()))
        done, _ = await asyncio.wait([connecting], timeout=0.05)
        assert not done
        network.cut(frozenset())
        (await asyncio.wait_for(connecting, 10)).close()

    asyncio.run(scenario())


async def _readable(descriptor: int) -> None:
    readable = asyncio.Event()
    loop = asyncio.get_running_loop()
    loop.add_reader(descriptor, readable.set)
    await readable.wait()
    loop.remove_reader(descriptor)
