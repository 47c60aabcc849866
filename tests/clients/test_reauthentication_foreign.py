"""Foreign clients whose sessions end every two seconds: they log in again on the same connection (KIP-368)."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from confluent_kafka import Producer
from kafka_process import run_tool

from barnabas.testing import Broker

pytestmark = pytest.mark.soak

PASSWORD = "foreign-secret-2210"
SESSION_MS = 2_000
RECORDS = 60
SECONDS = 6.0
"""Over which the records are spread, as a slow application would send them."""


def by_confluent_kafka(broker: Broker, folder: Path) -> None:
    producer = Producer(
        {
            "bootstrap.servers": broker.bootstrap,
            "security.protocol": "SASL_PLAINTEXT",
            "sasl.mechanism": "SCRAM-SHA-512",
            "sasl.username": "alice",
            "sasl.password": PASSWORD,
        }
    )
    for number in range(RECORDS):
        producer.produce("renewed", b"%d" % number)
        producer.flush(60)
        time.sleep(SECONDS / RECORDS)
    assert producer.flush(60) == 0


def by_java(broker: Broker, folder: Path) -> None:
    properties = folder / "client.properties"
    properties.write_text(
        f"bootstrap.servers={broker.bootstrap}\nsecurity.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\n"
        "sasl.jaas.config=org.apache.kafka.common.security.scram.ScramLoginModule required"
        f' username="alice" password="{PASSWORD}";\n'
    )
    done = run_tool(
        "org.apache.kafka.tools.ProducerPerformance",
        *("--topic", "renewed", "--num-records", str(RECORDS), "--record-size", "10"),
        *("--throughput", str(int(RECORDS / SECONDS)), "--producer.config", str(properties)),
    )
    assert done.returncode == 0, done.stdout + done.stderr


def by_ours(broker: Broker, folder: Path) -> None:
    from barnabas import Producer as OurProducer

    with OurProducer(broker.bootstrap, **broker.client_options("alice")) as producer:
        for number in range(RECORDS):
            producer.send("renewed", b"%d" % number).result(60)
            time.sleep(SECONDS / RECORDS)


@pytest.mark.parametrize("produce", [by_ours, by_confluent_kafka, pytest.param(by_java, marks=pytest.mark.java)])
def test_sessions_are_renewed(
    produce: Callable[[Broker, Path], None], tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG, "barnabas.server.sasl_gate")
    settings = {"connections.max.reauth.ms": SESSION_MS}
    with Broker(settings, listeners=["SASL_PLAINTEXT"], users={"alice": PASSWORD}) as broker:
        produce(broker, tmp_path)
        assert len(broker.records("renewed")) == RECORDS
    assert caplog.text.count("has authenticated again") >= 2
    assert PASSWORD not in caplog.text
