"""Apache Kafka's clients and librdkafka push their own metrics (KIP-714), and `/metrics` of the broker shows them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer, Producer
from eventually import eventually
from kafka_commands import KafkaTools
from prometheus_client.openmetrics.parser import text_string_to_metric_families
from telemetry import scraped, series, subscribe_all

from barnabas.testing import Broker

RECORDS = 2000
SENT = "org_apache_kafka_producer_record_send_total"
CONSUMED = "org_apache_kafka_consumer_fetch_manager_records_consumed_total"


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"metrics.listener": "127.0.0.1:0"}) as broker:
        subscribe_all(broker)
        broker.create_topic("pushed", partitions=2)
        yield broker


def of(broker: Broker, name: str, client_id: str) -> dict[str, float]:
    """Value by topic; "" for series without one."""
    rows = series(broker, name)
    return {labels.get("topic", ""): value for labels, value in rows if labels["client_id"] == client_id}


@pytest.mark.java
def test_java_clients_push(broker: Broker, kafka_tools: KafkaTools) -> None:
    """A client that ends pushes for the last time, if it is not just pushing."""
    kafka_tools.run_class(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "java-topic", "--num-records", str(RECORDS)),
        *(
            "--record-size",
            "100",
            "--throughput",
            "2000",
            "--producer-props",
            f"bootstrap.servers={broker.bootstrap}",
            "client.id=java-producer",
        ),
    )
    assert 0 < of(broker, SENT, "java-producer")[""] <= RECORDS
    assert 0 < of(broker, "org_apache_kafka_producer_topic_record_send_total", "java-producer")["java-topic"] <= RECORDS
    assert of(broker, "org_apache_kafka_producer_request_latency_avg", "java-producer")[""] > 0
    kafka_tools.run_class(
        "org.apache.kafka.tools.consumer.ConsoleConsumer",
        *("--bootstrap-server", broker.bootstrap, "--topic", "java-topic", "--from-beginning", "--group", "java-group"),
        *("--timeout-ms", "5000", "--consumer-property", "client.id=java-consumer"),
    )
    assert 0 < of(broker, CONSUMED, "java-consumer")["java-topic"] <= RECORDS
    ((info, _),) = (row for row in series(broker, "kafka_client_info") if row[0]["client_id"] == "java-consumer")
    assert (info["software_name"], info["group_id"]) == ("apache-kafka-java", "java-group")
    families = text_string_to_metric_families(scraped(broker, "application/openmetrics-text"))
    assert any(family.name.startswith("org_apache_kafka_consumer_coordinator") for family in families)


def test_librdkafka_pushes(broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap, "client.id": "rd-producer"})
    consumer = Consumer(
        {
            "bootstrap.servers": broker.bootstrap,
            "client.id": "rd-consumer",
            "group.id": "rd-group",
            "auto.offset.reset": "earliest",
        }
    )
    try:
        consumer.subscribe(["pushed"])

        def go_on() -> bool:
            producer.produce("pushed", b"x")
            producer.flush(30)
            consumer.poll(0.01)
            return all(
                (
                    of(broker, "org_apache_kafka_producer_connection_creation_total", "rd-producer"),
                    of(broker, "org_apache_kafka_producer_node_request_latency_avg", "rd-producer"),
                    of(broker, "org_apache_kafka_consumer_connection_creation_total", "rd-consumer"),
                    of(broker, "org_apache_kafka_consumer_coordinator_assigned_partitions", "rd-consumer") == {"": 2},
                )
            )

        eventually(go_on, timeout=60)
    finally:
        consumer.close()
    info = {labels["client_id"]: labels for labels, _ in series(broker, "kafka_client_info")}
    assert "librdkafka" in info["rd-producer"]["software_name"] or "confluent" in info["rd-producer"]["software_name"]
