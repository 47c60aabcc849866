"""`barnabas broker` and `barnabas cluster balance` on a cluster of Apache Kafka: the judge of what they request."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from kafka_cluster import KafkaCluster
from kafka_process import QuickKafka, why_no_kafka

from barnabas import Admin, Producer
from barnabas.cli.main import main
from barnabas.types import TopicPartition

pytestmark = [
    pytest.mark.java,
    pytest.mark.soak,
    pytest.mark.skipif(why_no_kafka() is not None, reason=why_no_kafka() or ""),
]
Run = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaCluster]:
    with KafkaCluster(Path(tmp_path_factory.mktemp("kafka")), process=QuickKafka) as cluster:
        yield cluster


@pytest.fixture
def run(cluster: KafkaCluster, capsys: pytest.CaptureFixture[str]) -> Run:
    def command(*words: str) -> tuple[int, str, str]:
        status = main(["-b", cluster.bootstrap, *words])
        captured = capsys.readouterr()
        return status, captured.out, captured.err

    return command


def shown(output: str) -> Any:
    return json.loads(output)


def test_balance_drain_and_decommission(cluster: KafkaCluster, run: Run) -> None:
    with Admin(cluster.bootstrap) as admin:
        admin.create_topic("crowded", assignments={number: [1, 2] for number in range(6)})
        with Producer(cluster.bootstrap, acks="all") as producer:
            for number in range(6):
                for _ in range(20):
                    producer.send("crowded", bytes(100_000), partition=number)

        status, output, _ = run("broker", "list", "--json")
        assert status == 0 and [row["broker"] for row in shown(output)] == [1, 2, 3]
        assert [row["replicas"] for row in shown(output)] == [6, 6, 0]
        assert sum(row["controller"] for row in shown(output)) == 1

        status, output, _ = run("cluster", "balance")
        assert status == 0 and "dry run, nothing changed; add --execute" in output
        assert all(3 not in each.replicas for each in admin.describe_topic("crowded").partitions)

        status, output, _ = run("cluster", "balance", "--execute", "--throttle", "20MB", "--json")
        assert status == 0 and shown(output)["finished"]
        partitions = admin.describe_topic("crowded").partitions
        held = [sum(broker in each.replicas for each in partitions) for broker in (1, 2, 3)]
        assert held == [4, 4, 4]
        assert sorted(each.leader or 0 for each in partitions) == [1, 1, 2, 2, 3, 3]
        assert not admin.list_partition_reassignments()
        status, output, _ = run("config", "get", "topic", "crowded", "--json")
        assert "throttled" not in output, output

        status, _, error = run("broker", "decommission", "3")
        assert status == 1 and "still holds 4 replicas" in error
        status, output, _ = run("broker", "drain", "3", "--execute", "--json")
        assert status == 0 and shown(output)["finished"]
        assert all(3 not in each.replicas for each in admin.describe_topic("crowded").partitions)
        ends = admin.list_offsets({TopicPartition("crowded", number): -1 for number in range(6)})
        assert [each.offset for each in ends.values()] == [20] * 6
        status, _, error = run("broker", "decommission", "3")
        assert status == 1 and "is running: stop it first" in error
        status, _, error = run("broker", "drain", "9")
        assert status == 1 and "there is no broker 9" in error
