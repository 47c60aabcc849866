"""The same commands against Apache Kafka: every noun once, with what people do first."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent import produce_all
from eventually import eventually
from kafka_process import QuickKafka

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Broker
from barnabas.types import TopicPartition

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[QuickKafka]:
    with QuickKafka(tmp_path_factory.mktemp("kafka")) as kafka:
        yield kafka


@pytest.fixture
def command(kafka: QuickKafka, barnabas: Any, monkeypatch: pytest.MonkeyPatch) -> Any:
    monkeypatch.setenv("BARNABAS_BOOTSTRAP", kafka.bootstrap)
    return barnabas


def test_topics_and_settings(command: Any, kafka: QuickKafka) -> None:
    made = command("topic create orders -p 2 -c retention.ms=5000")
    assert made.out == "created orders: 2 partitions, 1 replica each\n"
    eventually(lambda: ["orders", "2", "1"] in command("topic list").rows)
    assert command("topic create orders").status == 1
    described = eventually(lambda: command("topic describe orders"), lambda done: done.status == 0)
    assert ["config", "retention.ms", "5000"] in described.rows
    produce_all(kafka.bootstrap, "orders", [b"x"] * 3)
    assert command("topic offsets orders").rows[1] == ["orders", "0", "0", "3", "3"]
    assert command("topic delete-records orders -p 0 --before 1").rows[1] == ["orders", "0", "1"]
    assert command("topic add-partitions orders --to 3").status == 0
    assert command("config set topic orders max.message.bytes=2000").status == 0
    eventually(lambda: "max.message.bytes" in command("config get topic orders").out)
    assert command("config set topic orders retention.ms=soon").status == 1
    assert command("topic delete orders").out == "deleted orders\n"


def test_groups(command: Any, kafka: QuickKafka) -> None:
    command("topic create bills")
    produce_all(kafka.bootstrap, "bills", [b"x"] * 3)
    dry = command("group reset-offsets readers --topic bills --to-earliest")
    assert dry.out.splitlines()[-1] == "dry run, nothing changed; add --execute"
    assert "does not exist yet" in dry.out
    assert command("group reset-offsets readers --topic bills --to-offset 1 --execute").status == 0
    described = command("group describe readers")
    assert described.rows[-1] == ["bills", "0", "1", "3", "2", "-", "-", "-"]
    assert ["readers", "Classic", "-", "Empty"] in command("group list").rows
    assert command("group delete readers").out == "deleted readers\n"


def test_monitor(command: Any, kafka: QuickKafka) -> None:
    command("topic create watched -p 2")
    produce_all(kafka.bootstrap, "watched", [b"x"] * 5)
    command("group reset-offsets watchers --topic watched --to-offset 2 --execute")
    found = command("monitor --once --json").json
    assert (found["error"], found["brokers_count"]) == (None, 1)
    (topic,) = (each for each in found["topics"] if each["name"] == "watched")
    (group,) = (each for each in found["groups"] if each["name"] == "watchers")
    assert (topic["records"], topic["partitions"], group["state"]) == (5, 2, "Empty")
    assert group["lag"] == topic["lag"] and 0 < group["lag"] <= 5


def test_the_cluster_and_transactions(command: Any, kafka: QuickKafka) -> None:
    described = command("cluster describe --features")
    assert ["1", kafka.bootstrap, "-", "no"] in described.rows
    assert any(row[:1] == ["metadata.version"] for row in described.rows)
    health = command("cluster health")
    assert health.status == 0 and health.out.startswith("healthy: 1 broker, ")
    assert command("transaction list").rows[0] == ["TRANSACTIONAL-ID", "COORDINATOR", "PRODUCER-ID", "STATE"]
    missing = command("transaction describe missing")
    assert missing.status == 1 and missing.err.count("\n") == 1


def test_partitions(command: Any, tmp_path: Path) -> None:
    command("topic create placed -p 2")
    eventually(lambda: command("topic describe placed").status == 0)
    assert command("partition reassign placed:0=1 placed:1=1").out.startswith("began to move 2 partitions")
    done = eventually(lambda: command("partition verify placed:0=1"), lambda done: done.status == 0)
    assert done.rows[1] == ["placed", "0", "done", "1", "1", "-", "-"]
    file = tmp_path / "plan.json"
    file.write_text('{"version": 1, "partitions": [{"topic": "placed", "partition": 1, "replicas": [1, 9]}]}')
    refused = command("partition", "reassign", "--file", str(file))
    assert refused.status == 1 and "placed-1" in refused.err
    different = command("partition", "verify", "--file", str(file), "--json")
    assert different.status == 1 and different.json[0]["state"] == "different"
    assert command("partition verify").out.count("\n") == 1
    assert command("partition cancel placed:0").status == 1
    assert command("partition elect placed:0").rows[1] == ["placed", "0", "not", "needed"]
    assert command("partition elect --all").status == 0
    file.write_text("[]")
    for wrong in ("reassign", "reassign x", "reassign placed:0=a", f"reassign --file {file}", "cancel", "elect"):
        assert command(f"partition {wrong}").status == 2, wrong


@pytest.mark.parametrize("away", [True, False], ids=["from Kafka", "to Kafka"])
def test_mirror(kafka: QuickKafka, broker: Broker, away: bool, command: Any) -> None:
    source, target = (kafka.bootstrap, broker.bootstrap) if away else (broker.bootstrap, kafka.bootstrap)
    topic = f"mirrored-{away}".lower()
    with Admin(source) as admin:
        admin.create_topic(topic, 3)
        admin.alter_group_offsets(f"readers-{away}", {(topic, 0): 2})
    with Producer(source) as producer:
        for number in range(30):
            producer.send(topic, b"%d" % number, partition=number % 3)
    words = f"mirror --from {source} --to {target} --topics {topic} --groups readers.* --stop-at-end --name {topic}"
    assert command(words).status == 0
    assert command(words).out.endswith("0 records copied, 1 topic\n")
    with Consumer(target, isolation_level="read_committed") as consumer:
        places = [TopicPartition(topic, number) for number in range(3)]
        consumer.assign(places)
        consumer.seek_to_beginning()
        ends = consumer.end_offsets(places)
        found = []
        while any(consumer.position(each) < ends[each] for each in places):
            found += consumer.poll(1.0)
    for partition in range(3):
        values = [record.value for record in found if record.partition == partition]
        assert values == [b"%d" % number for number in range(30) if number % 3 == partition]
    third = next(record.offset for record in found if (record.partition, record.value) == (0, b"6"))
    with Admin(target) as admin:
        stored = admin.list_group_offsets(f"readers-{away}")[places[0]]
    assert stored is not None and stored.offset == third
