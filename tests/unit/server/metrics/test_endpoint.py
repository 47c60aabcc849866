"""A real broker with /metrics, judged by prometheus_client's two parsers."""

import http.client
import socket
import time
from collections.abc import Iterator
from typing import Any

import pytest
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from telemetry import Pusher

from barnabas import Admin, Consumer, Producer, TopicPartition
from barnabas.errors import KafkaError
from barnabas.server.metrics.table import TABLE
from barnabas.testing import Broker

OPEN_METRICS = "application/openmetrics-text;version=1.0.0,text/plain;q=0.5"
OLD_MS = 1_600_000_000_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    listeners = "PLAINTEXT://127.0.0.1:0,MQTT://127.0.0.1:0"
    with Broker({"metrics.listener": "127.0.0.1:0", "listeners": listeners}) as broker:
        broker.create_topic("orders", partitions=2)
        broker.create_topic("orders.delayed", config={"delay.target.topic": "orders"})
        with Producer(broker.bootstrap) as producer:
            for number in range(10):
                producer.send("orders", b"x" * 100, partition=0, timestamp=OLD_MS + number * 1000).result(30)
        with Consumer(broker.bootstrap, group_id="readers", enable_auto_commit=False) as consumer:
            consumer.assign([TopicPartition("orders", 0)])
            consumer.commit({TopicPartition("orders", 0): 4})
        with Pusher(broker.bootstrap) as pusher:
            pusher.subscribe()
            assert pusher.push() == 0
            yield broker


def get(broker: Broker, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    host, port = broker.metrics_address
    connection = http.client.HTTPConnection(host, port, timeout=30)
    try:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.getheader("Content-Type", ""), response.read().decode()
    finally:
        connection.close()


def samples_of(broker: Broker) -> dict[str, dict[tuple[tuple[str, str], ...], float]]:
    found: dict[str, dict[Any, float]] = {}
    for family in parse_text(get(broker, "/metrics")[2]):
        for sample in family.samples:
            found.setdefault(sample.name, {})[tuple(sorted(sample.labels.items()))] = sample.value
    return found


def test_every_metric_of_the_table_is_there(broker: Broker) -> None:
    found = samples_of(broker)
    assert sorted(name for name in TABLE if name not in found and f"{name}_count" not in found) == []


def test_both_formats_are_readable_and_say_the_same(broker: Broker) -> None:
    status, kind, text = get(broker, "/metrics")
    assert (status, kind) == (200, "text/plain; version=0.0.4; charset=utf-8")
    status, kind, opened = get(broker, "/metrics", accept=OPEN_METRICS)
    assert (status, kind) == (200, "application/openmetrics-text; version=1.0.0; charset=utf-8")
    assert opened.endswith("# EOF\n")
    names = {sample.name for family in parse_text(text) for sample in family.samples}
    assert names == {sample.name for family in parse_open_metrics(opened) for sample in family.samples}


def test_labels_are_those_of_the_table(broker: Broker) -> None:
    for name, rows in samples_of(broker).items():
        row = TABLE.get(name) or TABLE[name.removesuffix("_count").removesuffix("_sum")]
        for labels in rows:
            assert {label for label, _ in labels} <= {*row.labels, "quantile"}, name


def test_traffic_requests_and_offsets_are_right(broker: Broker) -> None:
    found = samples_of(broker)
    topic = (("topic", "orders"),)
    assert found["kafka_server_brokertopicmetrics_messagesin_total"][topic] == 10
    assert found["kafka_server_brokertopicmetrics_messagesinpersec"][topic] == 10
    assert found["kafka_server_brokertopicmetrics_bytesin_total"][topic] > 1000
    assert found["kafka_topic_partitions"][topic] == 2
    partition = (("partition", "0"), ("topic", "orders"))
    assert found["kafka_topic_partition_current_offset"][partition] == 10
    assert found["kafka_network_requestmetrics_requests_total"][(("request", "Produce"),)] == 10
    assert found["kafka_server_kafkaserver_brokerstate"][()] == 3


def test_lag_in_records_and_in_time(broker: Broker) -> None:
    before_ms = time.time_ns() // 1_000_000
    found = samples_of(broker)
    after_ms = time.time_ns() // 1_000_000
    key = (("consumergroup", "readers"), ("partition", "0"), ("topic", "orders"))
    assert found["kafka_consumergroup_current_offset"][key] == 4
    assert found["kafka_consumergroup_lag"][key] == 6
    assert found["kafka_consumergroup_lag_sum"][(("consumergroup", "readers"), ("topic", "orders"))] == 6
    first_uncommitted_ms = OLD_MS + 4000
    assert before_ms <= found["kafka_consumer_lag_millis"][key] + first_uncommitted_ms <= after_ms


def test_errors_are_counted_by_code(broker: Broker) -> None:
    with Admin(broker.bootstrap) as admin, pytest.raises(KafkaError):
        admin.delete_topics(["nowhere"])
    found = samples_of(broker)["kafka_network_requestmetrics_errors_total"]
    assert found[(("error", "UNKNOWN_TOPIC_OR_PARTITION"), ("request", "DeleteTopics"))] == 1
    assert found[(("error", "NONE"), ("request", "DeleteTopics"))] == 0
    assert found[(("error", "NONE"), ("request", "Produce"))] == 10


def test_health(broker: Broker) -> None:
    assert get(broker, "/health/live")[0] == 200
    assert get(broker, "/health/ready")[::2] == (200, "ok\n")
    assert get(broker, "/")[0] == 404
    assert get(broker, "/metrics", "HEAD")[::2] == (200, "")
    assert get(broker, "/metrics", "POST")[0] == 405


def test_hostile_names_do_not_break_the_text(broker: Broker) -> None:
    name = 'a"b\\c\n{x}'
    with Consumer(broker.bootstrap, group_id=name, enable_auto_commit=False) as consumer:
        consumer.assign([TopicPartition("orders", 1)])
        consumer.commit({TopicPartition("orders", 1): 0})
    found = samples_of(broker)["kafka_consumergroup_current_offset"]
    assert (("consumergroup", name), ("partition", "1"), ("topic", "orders")) in found


@pytest.mark.parametrize(
    ("sent", "status"),
    [
        (b"\x00\x01\x02 garbage\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/2.0\r\n\r\n", b"505"),
        (b"GET /metrics HTTP/1.1\r\nno colon\r\n\r\n", b"400"),
        (b"GET /metrics HTTP/1.1\r\nContent-Length: 5\r\n\r\nhello", b"400"),
        (b"DELETE /metrics HTTP/1.1\r\n\r\n", b"405"),
        (b"GET /metrics HTTP/1.1\r\n" + b"a: b\r\n" * 5000, b"431"),
    ],
)
def test_bad_requests_are_refused_and_the_connection_closed(broker: Broker, sent: bytes, status: bytes) -> None:
    with socket.create_connection(broker.metrics_address, timeout=30) as raw:
        raw.sendall(sent)
        raw.shutdown(socket.SHUT_WR)
        received = b""
        while chunk := raw.recv(4096):
            received += chunk
    assert received.split(b" ", 2)[1] == status
    assert get(broker, "/health/live")[0] == 200


def test_connections_that_say_nothing_make_room_for_others(broker: Broker) -> None:
    silent = [socket.create_connection(broker.metrics_address, timeout=30) for _ in range(80)]
    try:
        assert get(broker, "/health/live")[0] == 200
    finally:
        for each in silent:
            each.close()


def test_a_connection_is_used_again_and_requests_may_be_pipelined(broker: Broker) -> None:
    with socket.create_connection(broker.metrics_address, timeout=30) as raw:
        raw.sendall(b"GET /health/live HTTP/1.1\r\n\r\n" * 3 + b"GET /nothing HTTP/1.0\r\n\r\n")
        received = b""
        while chunk := raw.recv(4096):
            received += chunk
    assert received.count(b"HTTP/1.1 200 OK") == 3
    assert received.count(b"HTTP/1.1 404") == 1


def test_a_test_broker_has_no_metrics_unless_asked() -> None:
    with Broker() as broker, pytest.raises(RuntimeError):
        _ = broker.metrics_address


def test_a_taken_port_is_one_warning(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    host, port = broker.metrics_address
    with caplog.at_level("WARNING"), Broker({"metrics.listener": f"{host}:{port}"}) as other:
        with pytest.raises(RuntimeError, match="has no"):
            _ = other.metrics_address
        with Producer(other.bootstrap) as producer:
            assert producer.send("t", b"x").result(30).offset == 0
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["no metrics"]


def test_another_port_than_the_wanted_one_is_told(broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    host, port = broker.metrics_address
    with caplog.at_level("WARNING"), Broker({"metrics.listener": f"{host}:{port}+"}) as other:
        found = other.metrics_address[1]
    assert port < found <= port + 31
    assert [record.getMessage() for record in caplog.records] == [
        f"port {port} is taken: metrics on http://{host}:{found}/metrics"
    ]
