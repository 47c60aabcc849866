"""Foreign clients and Apache Kafka's own tools on three brokers, one of which is killed or stopped meanwhile."""

from __future__ import annotations

import asyncio
import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import aiokafka
import pytest
from cluster_processes import BROKERS, ClusterProcesses
from confluent_kafka import Consumer, Producer
from kafka_process import run_tool, why_no_kafka
from write_gaps import SteadyWriter

COUNT = 300
ROLLING_GAP_S = 30.0
"""Not a measurement, which is `benchmarks.failover`: no client is to wait for a session to be over."""
PATIENCE_S = 180
needs_kafka = pytest.mark.skipif(why_no_kafka() is not None, reason=str(why_no_kafka()))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ClusterProcesses]:
    with ClusterProcesses(tmp_path_factory.mktemp("three")) as cluster:
        yield cluster


@pytest.fixture
def topic(cluster: ClusterProcesses, request: pytest.FixtureRequest) -> str:
    name = request.node.name.replace("[", "-").strip("]")
    cluster.admin.create_topic(name, partitions=1, replication_factor=3)
    cluster.known_topics.add(name)
    cluster.wait_until_in_sync()
    return name


def lose_leader(cluster: ClusterProcesses, topic: str) -> int:
    leader = cluster.who_is("leader", topic)
    cluster.kill(leader)
    return leader


def bring_back(cluster: ClusterProcesses, number: int) -> None:
    cluster.restart(number)
    cluster.wait_until_in_sync()


def read_by_confluent(bootstrap: str, topic: str, count: int) -> list[bytes | None]:
    consumer = Consumer(
        {"bootstrap.servers": bootstrap, "group.id": f"of-{topic}", "auto.offset.reset": "earliest", "log_level": 0}
    )
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    ends = time.monotonic() + PATIENCE_S
    while len(values) < count and time.monotonic() < ends:
        values += [message.value() for message in consumer.consume(100, 0.5) if message.error() is None]
    consumer.close()
    return values


def expected(count: int = COUNT) -> list[bytes]:
    return [b"%d" % number for number in range(count)]


def test_librdkafka(cluster: ClusterProcesses, topic: str) -> None:
    producer = Producer({"bootstrap.servers": cluster.bootstrap, "enable.idempotence": True, "log_level": 0})
    failures: list[object] = []
    killed = 0
    for number in range(COUNT):
        producer.produce(topic, b"%d" % number, on_delivery=lambda error, _: failures.append(error) if error else None)
        if number == COUNT // 2:
            producer.poll(0.1)
            killed = lose_leader(cluster, topic)
    assert producer.flush(PATIENCE_S) == 0 and not failures
    bring_back(cluster, killed)
    assert read_by_confluent(cluster.bootstrap, topic, COUNT) == expected()


# In a process of its own: it forgets its sockets to a broker that was killed, and our warnings are errors.
KAFKA_PYTHON = """
import sys, kafka
servers, topic, count = sys.argv[1].split(","), sys.argv[2], int(sys.argv[3])
producer = kafka.KafkaProducer(bootstrap_servers=servers, acks="all", retries=100)
sent = [producer.send(topic, b"%d" % number) for number in range(count // 2)]
print("half", flush=True)
sys.stdin.readline()
sent += [producer.send(topic, b"%d" % number) for number in range(count // 2, count)]
print([each.get(180).offset for each in sent])
"""


def test_kafka_python(cluster: ClusterProcesses, topic: str) -> None:
    command = [sys.executable, "-W", "ignore", "-c", KAFKA_PYTHON, cluster.bootstrap, topic, str(COUNT)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "half\n"
        killed = lose_leader(cluster, topic)
        printed, _ = process.communicate("go\n", timeout=PATIENCE_S)
    bring_back(cluster, killed)
    assert json.loads(printed) == list(range(COUNT))
    assert read_by_confluent(cluster.bootstrap, topic, COUNT) == expected()


def test_aiokafka(cluster: ClusterProcesses, topic: str) -> None:
    async def scenario() -> int:
        async with aiokafka.AIOKafkaProducer(
            bootstrap_servers=cluster.bootstrap, acks="all", enable_idempotence=True
        ) as producer:
            for number in range(COUNT // 2):
                await producer.send_and_wait(topic, b"%d" % number)
            killed = await asyncio.to_thread(lose_leader, cluster, topic)
            for number in range(COUNT // 2, COUNT):
                await producer.send_and_wait(topic, b"%d" % number)
        return killed

    killed = asyncio.run(scenario())
    bring_back(cluster, killed)
    assert read_by_confluent(cluster.bootstrap, topic, COUNT) == expected()


@pytest.mark.skipif(shutil.which("kcat") is None, reason="kcat is not installed")
def test_kcat(cluster: ClusterProcesses, topic: str) -> None:
    lines = b"\n".join(expected())
    subprocess.run(["kcat", "-b", cluster.bootstrap, "-P", "-t", topic], input=lines, check=True, timeout=PATIENCE_S)
    killed = lose_leader(cluster, topic)
    command = ["kcat", "-b", cluster.bootstrap, "-C", "-t", topic, "-o", "beginning", "-e", "-q"]
    read = subprocess.run(command, capture_output=True, check=True, timeout=PATIENCE_S)
    bring_back(cluster, killed)
    assert read.stdout.split() == expected()


def test_a_rolling_restart_fails_no_write(cluster: ClusterProcesses, topic: str) -> None:
    with SteadyWriter(cluster.bootstrap, topic, 0) as writer:
        began = time.monotonic()
        for number in BROKERS:
            cluster.brokers[number].stop()
            bring_back(cluster, number)
        writer.wait_for_acknowledgement(time.monotonic(), PATIENCE_S)
        gap = writer.longest_gap(began)
    assert writer.writes.failures == []
    print(f"longest gap {gap:.2f} s")
    assert gap < ROLLING_GAP_S


@pytest.mark.java
@needs_kafka
def test_kafkas_verifiable_producer_and_consumer(cluster: ClusterProcesses, topic: str) -> None:
    """They check themselves: each line that the consumer counts was acknowledged to the producer."""
    address = ["--bootstrap-server", cluster.bootstrap, "--topic", topic]
    producer = "org.apache.kafka.tools.VerifiableProducer"
    produced = run_tool(producer, *address, "--max-messages", "2000", "--acks", "-1")
    lines = [json.loads(line) for line in produced.stdout.splitlines() if line.startswith("{")]
    assert sum(each["name"] == "producer_send_success" for each in lines) == 2000
    # Before a broker is lost: the topic of the coordinators is made with three replicas, as in Kafka.
    assert len(read_by_confluent(cluster.bootstrap, topic, 2000)) == 2000
    killed = lose_leader(cluster, topic)
    consumed = run_tool(
        "org.apache.kafka.tools.VerifiableConsumer", *address, "--group-id", "verifiers", "--max-messages", "2000"
    )
    bring_back(cluster, killed)
    events = [json.loads(line) for line in consumed.stdout.splitlines() if line.startswith("{")]
    assert sum(each["count"] for each in events if each["name"] == "records_consumed") == 2000


@pytest.mark.java
@needs_kafka
def test_kafkas_tools_move_and_elect(cluster: ClusterProcesses, topic: str, tmp_path: Path) -> None:
    address = ["--bootstrap-server", cluster.bootstrap]
    described = run_tool("org.apache.kafka.tools.TopicCommand", *address, "--describe", "--topic", topic)
    assert "ReplicationFactor: 3" in described.stdout, described
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [{"topic": topic, "partition": 0, "replicas": [3, 2]}]}))
    move = ["--reassignment-json-file", str(plan)]
    reassign = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
    started = run_tool(reassign, *address, *move, "--execute")
    assert "Successfully started" in started.stdout, started

    def moved() -> bool:
        return cluster.admin.describe_topic(topic).partitions[0].replicas == (3, 2)

    cluster.wait_until(moved, "move")
    assert "is completed" in run_tool(reassign, *address, *move, "--verify").stdout
    election = ["--election-type", "preferred", "--topic", topic, "--partition", "0"]
    elected = run_tool("org.apache.kafka.tools.LeaderElectionCommand", *address, *election)
    assert elected.returncode == 0, elected
    assert cluster.who_is("leader", topic) == 3
    listed = run_tool("org.apache.kafka.tools.LogDirsCommand", *address, "--describe", "--topic-list", topic)
    sizes = json.loads(listed.stdout.splitlines()[-1])
    with_topic = [each["broker"] for each in sizes["brokers"] if each["logDirs"][0]["partitions"]]
    assert sorted(with_topic) == [2, 3]


@pytest.mark.java
@needs_kafka
def test_the_replicas_files_are_equal_and_kafka_reads_them(cluster: ClusterProcesses, topic: str) -> None:
    with SteadyWriter(cluster.bootstrap, topic, 0, **{"enable.idempotence": True}) as writer:
        killed = lose_leader(cluster, topic)
        writer.wait_for_acknowledgement(time.monotonic(), PATIENCE_S)
    bring_back(cluster, killed)
    files = [cluster.data(number) / f"{topic}-0" / "00000000000000000000.log" for number in BROKERS]
    cluster.wait_until(lambda: len({path.read_bytes() for path in files}) == 1, "equal files")
    dumped = run_tool("kafka.tools.DumpLogSegments", "--deep-iteration", "--files", str(files[0]))
    assert dumped.stdout.count("| offset:") == len(writer.writes.acknowledged), dumped.stdout[-500:]
