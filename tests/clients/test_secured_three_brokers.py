"""Three processes of brokers that log in to each other, used by librdkafka and by Apache Kafka's own tools."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_processes import BROKERS
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from kafka_process import run_tool, why_no_kafka
from secured_cluster import KINDS, USERS, librdkafka
from secured_processes import SecuredProcesses, java_properties
from transactions import transaction, transactional_producer

pytestmark = pytest.mark.soak  # three processes for each way; the same in one process is in tests/integration
COUNT = 200
needs_kafka = pytest.mark.skipif(why_no_kafka() is not None, reason=str(why_no_kafka()))


@pytest.fixture(scope="module", params=KINDS)
def cluster(tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest) -> Iterator[SecuredProcesses]:
    with SecuredProcesses(tmp_path_factory.mktemp("secured"), request.param) as cluster:
        yield cluster


def read(cluster: SecuredProcesses, topic: str, count: int) -> list[bytes | None]:
    settings = librdkafka(cluster.options, cluster.bootstrap)
    consumer = Consumer({**settings, "group.id": f"of-{topic}", "auto.offset.reset": "earliest"})
    consumer.subscribe([topic])
    values: list[bytes | None] = []
    cluster.wait_until(lambda: take(consumer, values) >= count, f"{count} records")
    consumer.close()
    return values


def take(consumer: Consumer, values: list[bytes | None]) -> int:
    values += [message.value() for message in consumer.consume(100, 0.5) if message.error() is None]
    return len(values)


def test_librdkafka_while_a_leader_is_killed(cluster: SecuredProcesses) -> None:
    settings = librdkafka(cluster.options, cluster.bootstrap)
    admin = AdminClient(settings)
    admin.create_topics([NewTopic("orders", 1, 3)])["orders"].result(60)
    cluster.known_topics.add("orders")
    cluster.wait_until_in_sync()
    failures: list[object] = []
    producer = Producer({**settings, "enable.idempotence": True})
    killed = 0
    for number in range(COUNT):
        producer.produce("orders", b"%d" % number, on_delivery=lambda error, _: failures.append(error) if error else 0)
        if number == COUNT // 2:
            producer.poll(0.1)
            killed = cluster.who_is("leader", "orders")
            cluster.kill(killed)
    assert producer.flush(120) == 0 and not failures
    cluster.restart(killed)
    cluster.wait_until_in_sync()
    assert read(cluster, "orders", COUNT) == [b"%d" % number for number in range(COUNT)]
    writer = transactional_producer(cluster.bootstrap, "t", **settings)
    transaction(writer, "orders", [b"aborted"], commit=False)
    transaction(writer, "orders", [b"committed"])
    assert read(cluster, "orders", 1) == [b"committed"]  # from where the group has come to
    printed = "".join(cluster.brokers[number].printed() for number in BROKERS)
    assert all(password not in printed for password in USERS.values())


@pytest.mark.java
@needs_kafka
def test_kafkas_own_tools(cluster: SecuredProcesses, tmp_path: Path) -> None:
    config = tmp_path / "client.properties"
    config.write_text(java_properties(cluster.options))
    server = ["--bootstrap-server", cluster.bootstrap]
    made = run_tool(
        "org.apache.kafka.tools.TopicCommand",
        *(*server, "--command-config", str(config)),
        *("--create", "--topic", "by-java", "--partitions", "2", "--replication-factor", "3"),
    )
    assert made.returncode == 0, made
    produced = run_tool(
        "org.apache.kafka.tools.VerifiableProducer",
        *(*server, "--topic", "by-java", "--producer.config", str(config)),
        *("--max-messages", "500", "--acks", "-1"),
    )
    lines = [json.loads(line) for line in produced.stdout.splitlines() if line.startswith("{")]
    assert sum(each["name"] == "producer_send_success" for each in lines) == 500, produced.stderr
    assert len(read(cluster, "by-java", 500)) == 500
