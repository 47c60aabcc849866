"""Foreign clients, unmodified, over TLS with a user name and a password."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Certificates, why_no_certificates
from confluent_kafka import Consumer, Producer
from confluent_kafka.admin import (
    AdminClient,
    ScramCredentialInfo,
    ScramMechanism,
    UserScramCredentialUpsertion,
)
from kafka import KafkaConsumer, KafkaProducer

from barnabas.testing import Broker

PASSWORD = "foreign-secret-1185"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}";'


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    why = why_no_certificates()
    if why is not None:
        pytest.skip(why)
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def broker(certificates: Certificates) -> Iterator[Broker]:
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates.server_store,
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
    }
    with Broker(settings) as started:
        yield started


def librdkafka(broker: Broker, authority: Path) -> dict[str, str]:
    return {
        "bootstrap.servers": broker.bootstrap,
        "security.protocol": "SASL_SSL",
        "ssl.ca.location": str(authority),
        "sasl.mechanism": "PLAIN",
        "sasl.username": "alice",
        "sasl.password": PASSWORD,
    }


def test_confluent_kafka(broker: Broker, certificates: Certificates) -> None:
    options = librdkafka(broker, certificates.authority)
    producer = Producer(options)
    producer.produce("confluent", b"one")
    assert producer.flush(60) == 0
    consumer = Consumer({**options, "group.id": "g", "auto.offset.reset": "earliest"})
    consumer.subscribe(["confluent"])
    try:
        message = None
        while message is None:  # the test's own time-out bounds it
            message = consumer.poll(1)
        assert (message.error(), message.value()) == (None, b"one")
    finally:
        consumer.close()


def test_kafka_python(broker: Broker, certificates: Certificates) -> None:
    options = {
        "bootstrap_servers": broker.bootstrap,
        "security_protocol": "SASL_SSL",
        "ssl_cafile": str(certificates.authority),
        "sasl_mechanism": "PLAIN",
        "sasl_plain_username": "alice",
        "sasl_plain_password": PASSWORD,
    }
    producer = KafkaProducer(**options)
    assert producer.send("python", b"one").get(60).offset == 0
    producer.close()
    consumer = KafkaConsumer("python", **options, auto_offset_reset="earliest", group_id=None)
    try:
        assert next(consumer).value == b"one"
    finally:
        consumer.close()


def test_kcat(broker: Broker, certificates: Certificates) -> None:
    if shutil.which("kcat") is None:
        pytest.skip("kcat is not installed")
    options = [item for each in librdkafka(broker, certificates.authority).items() for item in ("-X", "=".join(each))]
    sent = run("kcat", "-P", "-t", "kcat", *options, text="one\n")
    assert sent.returncode == 0, sent.stderr
    read = run("kcat", "-C", "-t", "kcat", "-e", "-q", "-o", "beginning", *options)
    assert (read.returncode, read.stdout) == (0, "one\n"), read.stderr


def test_confluent_kafka_by_scram() -> None:
    settings = {
        "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "SCRAM-SHA-512",
    }
    with Broker(settings) as broker:
        confluent = AdminClient({"bootstrap.servers": broker.bootstrap})
        info = ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 8192)
        change = UserScramCredentialUpsertion("alice", info, PASSWORD.encode())
        confluent.alter_user_scram_credentials([change])["alice"].result(60)
        found = confluent.describe_user_scram_credentials(["alice"])["alice"].result(60)
        assert [each.iterations for each in found.scram_credential_infos] == [8192]
        thread = broker._thread
        assert thread is not None
        port = thread.broker._server.addresses["SASL_PLAINTEXT"][1]
        producer = Producer(
            {
                "bootstrap.servers": f"127.0.0.1:{port}",
                "security.protocol": "SASL_PLAINTEXT",
                "sasl.mechanism": "SCRAM-SHA-512",
                "sasl.username": "alice",
                "sasl.password": PASSWORD,
            }
        )
        producer.produce("scram", b"one")
        assert producer.flush(60) == 0


def run(*command: str, text: str = "") -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, check=False, input=text, text=True, capture_output=True, timeout=120)
