"""What clients measure: every name of the table, right values, pushed to the broker, shown to Prometheus."""

from __future__ import annotations

import asyncio
import gc
import math
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually
from prometheus_client import CollectorRegistry, generate_latest
from prometheus_client.openmetrics.exposition import generate_latest as generate_open_metrics
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from telemetry import series, subscribe_all

from barnabas import Admin, Consumer, MetricName, Metrics, Producer, PrometheusCollector, TopicPartition, aio
from barnabas.client.metrics.table import TABLE
from barnabas.testing import Broker

SIZE = 100


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker({"metrics.listener": "127.0.0.1:0"}) as broker:
        subscribe_all(broker)
        broker.create_topic("orders", partitions=2)
        broker.create_topic("one")
        yield broker


def shapes(metrics: Metrics) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(key.group, key.name, tuple(tag for tag, _ in key.tags)) for key in metrics}


def declared(client: str, *without: str) -> set[tuple[str, str, tuple[str, ...]]]:
    return {(row.group, name, row.tags) for row in TABLE[client] for name in row.names if name not in without}


def send(producer: Producer, count: int, topic: str = "one") -> None:
    for _ in range(count):
        producer.send(topic, b"x" * SIZE)
    producer.flush()


def test_a_producer_has_what_the_table_says(broker: Broker) -> None:
    with Producer(broker.bootstrap, compression_type="gzip", client_id="p") as producer:
        send(producer, 50)
        metrics = producer.metrics()
        assert shapes(metrics) == declared("producer")
        assert metrics.client_id == "p"
        assert metrics["record-send-total"] == 50
        assert metrics[MetricName("record-send-total", "producer-topic-metrics", (("topic", "one"),))] == 50
        assert metrics["request-latency-avg"] > 0
        assert metrics["request-latency-max"] >= metrics["request-latency-avg"]
        assert 0 < metrics["compression-rate-avg"] < 0.5
        assert metrics["records-per-request-avg"] == 50 / metrics["batch-total"]
        assert metrics["record-send-rate"] > 0
        assert metrics["batch-size-max"] > SIZE
        assert metrics["connection-count"] >= 1
        assert metrics["outgoing-byte-total"] > 0 and metrics["incoming-byte-total"] > 0
        nodes = [value for key, value in metrics.items() if key[:2] == ("request-total", "producer-node-metrics")]
        assert sum(nodes) == metrics["request-total"]
        assert math.isnan(metrics["records-per-request-avg"]) is False
        with pytest.raises(KeyError):
            metrics["no-such"]


def test_a_producer_that_waits_for_memory_counts_it(broker: Broker) -> None:
    with Producer(broker.bootstrap, buffer_memory=20_000, batch_size=1000) as producer:
        for _ in range(300):
            producer.send("one", b"x" * 1000)
        producer.flush()
        assert producer.metrics()["bufferpool-wait-time-ns-total"] > 0
        assert producer.metrics()["flush-time-ns-total"] >= 0


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_consumer_has_what_the_table_says(broker: Broker, protocol: str) -> None:
    with Producer(broker.bootstrap) as producer:
        send(producer, 30, "orders")
    options: Any = {"group_id": f"g-{protocol}", "group_protocol": protocol, "auto_offset_reset": "earliest"}
    with Consumer(broker.bootstrap, **options) as consumer:
        consumer.subscribe(["orders"])
        found = 0
        while found < 30:
            found += len(consumer.poll(1.0, max_records=10))
        consumer.commit()
        metrics = consumer.metrics()
        assert shapes(metrics) == declared("consumer", "preferred-read-replica")
        assert metrics["records-consumed-total"] == found
        assert metrics["assigned-partitions"] == 2
        assert metrics["commit-total"] >= 1 and metrics["commit-latency-avg"] > 0
        assert metrics["rebalance-total"] >= 1
        assert metrics["time-between-poll-avg"] >= 0
        assert 0 <= metrics["last-poll-seconds-ago"] < 1000
        assert metrics["fetch-latency-avg"] > 0 and metrics["fetch-size-max"] > 0
        assert (metrics["join-total"] > 0) is (protocol == "classic")
        eventually(lambda: consumer.metrics()["heartbeat-total"], timeout=30)


def test_lag_and_lead_per_partition(broker: Broker) -> None:
    broker.create_topic("lag")
    with Producer(broker.bootstrap) as producer:
        send(producer, 10, "lag")
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign([TopicPartition("lag", 0)])
        consumer.seek(TopicPartition("lag", 0), 4)
        while not consumer.poll(1.0, max_records=1):
            pass
        metrics = consumer.metrics()
        tags = (("topic", "lag"), ("partition", "0"))
        group = "consumer-fetch-manager-metrics"
        assert metrics[MetricName("records-lag", group, tags)] == metrics["records-lag-max"] == 5
        assert metrics[MetricName("records-lead", group, tags)] == metrics["records-lead-min"] == 5


def test_columns_are_counted_by_topic(broker: Broker) -> None:
    pytest.importorskip("pyarrow")
    for topic in ("arrow-1", "arrow-2"):
        broker.create_topic(topic)
        with Producer(broker.bootstrap) as producer:
            send(producer, 7, topic)
    with Consumer(broker.bootstrap) as consumer:
        consumer.assign([TopicPartition("arrow-1", 0), TopicPartition("arrow-2", 0)])
        consumer.seek_to_beginning()
        found = 0
        while found < 14:
            found += consumer.poll_arrow(1.0).num_rows
        group = "consumer-fetch-manager-metrics"
        metrics = consumer.metrics()
        for topic in ("arrow-1", "arrow-2"):
            assert metrics[MetricName("records-consumed-total", group, (("topic", topic),))] == 7


def test_an_admin_client_counts_its_requests(broker: Broker) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.list_topics()
        metrics = admin.metrics()
        assert shapes(metrics) == declared("admin-client")
        assert metrics["request-total"] >= 2


def pushed(broker: Broker, name: str, client_id: str) -> dict[str, float]:
    rows = series(broker, name)
    return {labels.get("topic", ""): value for labels, value in rows if labels["client_id"] == client_id}


def test_clients_push_what_they_measure(broker: Broker) -> None:
    sent, consumed = "org_apache_kafka_producer_record_send_total", "org_apache_kafka_consumer_fetch_manager_records_"
    with Producer(broker.bootstrap, client_id="pushing") as producer, Admin(broker.bootstrap, client_id="a") as admin:
        send(producer, 5)
        eventually(lambda: pushed(broker, sent, "pushing") == {"": 5}, timeout=60)
        send(producer, 5)
        eventually(lambda: pushed(broker, sent, "pushing") == {"": 10}, timeout=60)
        admin.list_topics()
        eventually(lambda: pushed(broker, "org_apache_kafka_admin_client_request_total", "a"), timeout=60)
        with Consumer(broker.bootstrap, client_id="reading", group_id="r", auto_offset_reset="earliest") as consumer:
            consumer.subscribe(["one"])
            read = 0
            while read < 10:
                read += len(consumer.poll(1.0))
            eventually(lambda: pushed(broker, consumed + "consumed_total", "reading").get("one") == read, timeout=60)
            assert "one" in pushed(broker, consumed + "lag", "reading")
        info = {labels["client_id"]: labels for labels, _ in series(broker, "kafka_client_info")}
        assert info["reading"]["group_id"] == "r"
        assert info["reading"]["software_name"] == "barnabas"
        send(producer, 5)
    # The last push comes with the end; what it brought stays for a minute.
    eventually(lambda: pushed(broker, sent, "pushing") == {"": 15}, timeout=30)


def test_nothing_is_pushed_if_that_is_switched_off(broker: Broker) -> None:
    with (
        Producer(broker.bootstrap, client_id="silent", enable_metrics_push=False) as silent,
        Producer(broker.bootstrap, client_id="loud") as loud,
    ):
        send(silent, 5)
        send(loud, 5)
        eventually(lambda: pushed(broker, "kafka_client_info", "loud"), timeout=60)
        assert not pushed(broker, "kafka_client_info", "silent")


def test_prometheus_sees_blocking_and_asyncio_clients(broker: Broker) -> None:
    async def use() -> bytes:
        registry = CollectorRegistry()
        async with aio.Producer(broker.bootstrap, client_id="app") as producer:
            await (await producer.send("one", b"x"))
            with Producer(broker.bootstrap, client_id="app") as blocking:
                send(blocking, 2)
                PrometheusCollector(producer, blocking, registry=registry)
                families = {family.name for family in parse_open_metrics(generate_open_metrics(registry).decode())}
                assert "org_apache_kafka_producer_node_request_latency_avg" in families
                return generate_latest(registry)

    families = list(parse_text(asyncio.run(use()).decode()))
    assert len({family.name for family in families}) == len(families)
    values = {
        sample.labels["client_id"]: sample.value
        for family in families
        for sample in family.samples
        if sample.name == "org_apache_kafka_producer_record_send_total"
    }
    assert values == {"app": 1, "app-2": 2}


def test_a_collector_keeps_no_client_alive(broker: Broker) -> None:
    collector = PrometheusCollector()
    producer = Producer(broker.bootstrap)
    collector.add(producer)
    assert list(collector.collect())
    producer.close()
    del producer
    gc.collect()
    assert list(collector.collect()) == []
