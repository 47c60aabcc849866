"""Users, access rules, TLS and quotas on MQTT listeners."""

import dataclasses
import ssl
import time
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from mqtt_client import MqttClient

from barnabas import Admin, Producer
from barnabas.client.admin.types import (
    AclBinding,
    AclOperation,
    AclPermission,
    PatternType,
    QuotaEntity,
    ResourceType,
)
from barnabas.errors import ErrorCode, KafkaError
from barnabas.mqtt.login import is_loopback
from barnabas.mqtt.packets import V5, V311, Disconnect, Publish
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = {"ann": "ann-secret", "bob": "bob-secret"}


def allow(operation: AclOperation, principal: str) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name="ours.",
        pattern_type=PatternType.PREFIXED,
        principal=principal,
        operation=operation,
        permission=AclPermission.ALLOW,
    )


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with secured_broker() as running:
        yield running


@contextmanager
def secured_broker() -> Iterator[Broker]:
    settings = {
        "authorizer.class.name": AUTHORIZER,
        "super.users": "User:ANONYMOUS",
        "mqtt.allow.anonymous": "false",
        "ssl.client.auth": "requested",
        "ssl.principal.mapping.rules": "RULE:^CN=([^,]+).*$/$1/,DEFAULT",
        "listener.name.mqtt.plain.sasl.jaas.config": 'PlainLoginModule required user_carl="carl-secret";',
        "connection.failed.authentication.delay.ms": 1,
    }
    with Broker(settings, listeners=["PLAINTEXT", "MQTT", "MQTTS", "SSL"], users=USERS) as running:
        with Admin(running.bootstrap) as admin:
            writer, reader = (AclOperation.WRITE, AclOperation.CREATE), (AclOperation.READ,)
            admin.create_acls(
                [allow(each, "User:ann") for each in writer] + [allow(each, "User:bob") for each in reader]
            )
            for name in ("ours.a", "theirs.a"):
                admin.create_topic(name)
        yield running


def logged_in(broker: Broker, user: str, version: int = V5) -> MqttClient:
    client = MqttClient(broker.mqtt_port, version)
    answer = client.connect(f"of-{user}", username=user, password=f"{user}-secret".encode())
    assert answer.code == 0
    return client


@pytest.mark.parametrize("user", ["ann", "carl"])
@pytest.mark.parametrize("version", [V311, V5])
def test_users_of_scram_and_of_plain_log_in(broker: Broker, user: str, version: int) -> None:
    client = logged_in(broker, user, version)
    client.nothing_more()
    client.close()


@pytest.mark.parametrize(
    ("username", "password"),
    [("ann", b"wrong"), ("nobody", b"ann-secret"), ("ann", b""), ("ann", None), ("carl", b"ann-secret"), ("", b"x")],
)
def test_a_wrong_password_is_refused(broker: Broker, username: str, password: bytes | None) -> None:
    for version, code in ((V5, ReasonCode.BAD_USER_NAME_OR_PASSWORD), (V311, 4)):
        client = MqttClient(broker.mqtt_port, version)
        assert client.connect("x", username=username, password=password).code == code
        assert client.receive() is None
        client.close()


def test_nobody_without_a_name_where_the_listener_says_so(broker: Broker) -> None:
    for version, code in ((V5, ReasonCode.NOT_AUTHORIZED), (V311, 5)):
        client = MqttClient(broker.mqtt_port, version)
        assert client.connect("x").code == code
        client.close()


@pytest.mark.parametrize(("host", "expected"), [("127.0.0.1", True), ("::1", True), ("0.0.0.0", False), ("", False)])
def test_anonymous_clients_are_for_loopback_unless_it_is_said(host: str, expected: bool) -> None:
    assert is_loopback(host) is expected


def test_publishing_needs_write_and_subscribing_read(broker: Broker) -> None:
    ann, bob = logged_in(broker, "ann"), logged_in(broker, "bob")
    assert bob.subscribe("ours/a", "theirs/a", "theirs/+", qos=1) == [1, ReasonCode.NOT_AUTHORIZED, 1]
    assert ann.subscribe("ours/a", "#") == [ReasonCode.NOT_AUTHORIZED] * 2
    topics = (("ours/a", 0), ("theirs/a", ReasonCode.NOT_AUTHORIZED), ("ours/new", 0))
    for number, (topic, code) in enumerate(topics, 1):
        for qos in (1, 2):
            ack = ann.publish(topic, b"from ann", qos=qos, packet_id=number)
            assert ack is not None and ack.code == code
    assert [bob.expect(Publish).payload for _ in (1, 2)] == [b"from ann"] * 2
    ack = bob.publish("ours/a", b"from bob")
    assert ack is not None and ack.code == ReasonCode.NOT_AUTHORIZED
    ann.publish("theirs/a", b"x", qos=0)
    assert ann.expect(Disconnect).code == ReasonCode.NOT_AUTHORIZED
    for client in (ann, bob):
        client.close()


def test_wildcards_bring_only_what_may_be_read(broker: Broker) -> None:
    bob = logged_in(broker, "bob")
    assert bob.subscribe("#", qos=0) == [0]
    with Producer(broker.bootstrap) as producer:
        for name in ("theirs.a", "ours.a"):
            producer.send(name, b"to " + name.encode()).result(60)
    assert bob.expect(Publish).payload == b"to ours.a"
    bob.close()


def test_mqtt_3_1_1_has_no_reason_but_the_end(broker: Broker) -> None:
    ann = logged_in(broker, "ann", V311)
    ann.send(Publish(topic="theirs/a", payload=b"x", qos=1, packet_id=1))
    assert ann.receive() is None
    bob = logged_in(broker, "bob", V311)
    assert bob.subscribe("theirs/a") == [0x80]
    for client in (ann, bob):
        client.close()


def test_a_certificate_is_a_user(broker: Broker) -> None:
    options = broker.client_options("ann", listener="SSL")
    context = ssl.create_default_context(cafile=broker.authority_file)
    context.load_cert_chain(options["ssl_keystore_location"])
    port = int(broker.address_of("MQTTS").rpartition(":")[2])
    client = MqttClient(port, V5, context)
    assert client.connect("by-certificate").code == 0
    ack = client.publish("ours/a", b"x")
    assert ack is not None and ack.code == 0
    ack = client.publish("theirs/a", b"x")
    assert ack is not None and ack.code == ReasonCode.NOT_AUTHORIZED
    client.close()
    client = MqttClient(port, V5, ssl.create_default_context(cafile=broker.authority_file))
    assert client.connect("without").code == ReasonCode.NOT_AUTHORIZED
    client.close()
    client = MqttClient(port, V5, ssl.create_default_context(cafile=broker.authority_file))
    assert client.connect("with-password", username="bob", password=b"bob-secret").code == 0
    client.close()


def test_a_producer_quota_slows_the_publisher_down(broker: Broker) -> None:
    clock = time.monotonic()
    with Admin(broker.bootstrap) as admin:
        admin.alter_client_quotas({QuotaEntity(user="ann"): {"producer_byte_rate": 10_000}})
        try:
            ann = logged_in(broker, "ann")
            for number in range(3):
                ann.publish("ours/a", bytes(60_000), packet_id=number + 1)
            assert time.monotonic() - clock > 1
            ann.close()
        finally:
            admin.alter_client_quotas({QuotaEntity(user="ann"): {"producer_byte_rate": None}})


def test_nobody_forges_a_session_or_a_retained_message() -> None:
    """Whose session it is, and with whose rights its will is published, is what its record says."""
    # A broker of its own: what is retained and allowed here would reach other tests.
    with secured_broker() as broker:
        device = MqttClient(broker.mqtt_port)
        device.connect("device", username="ann", password=b"ann-secret", expiry=60)
        device.publish("ours/kept", b"kept", retain=True)
        everything = dataclasses.replace(allow(AclOperation.ALL, "User:bob"), resource_name="__mqtt_")
        with Admin(broker.bootstrap) as admin:
            admin.create_acls([everything])
        options = broker.client_options("bob", listener="SSL")
        for topic in ("__mqtt_sessions", "__mqtt_retained"):
            with Producer(broker.address_of("SSL"), **options) as producer:  # type: ignore[arg-type]
                with pytest.raises(KafkaError) as refused:
                    producer.send(topic, b"{}", key=b"device", partition=0).result()
                assert refused.value.code is ErrorCode.INVALID_TOPIC_EXCEPTION
        device.close()


def test_who_may_not_read_takes_nothing_from_the_others_of_a_shared_subscription(broker: Broker) -> None:
    shared = "$share/both/+/a"
    group = AclBinding(
        resource_type=ResourceType.GROUP,
        resource_name=shared,
        principal="User:*",
        operation=AclOperation.READ,
        permission=AclPermission.ALLOW,
    )
    theirs = dataclasses.replace(allow(AclOperation.READ, "User:carl"), resource_name="theirs.")
    with Admin(broker.bootstrap) as admin:
        admin.create_acls([group, theirs])
    carl, bob = logged_in(broker, "carl"), logged_in(broker, "bob")
    for client in (carl, bob):
        assert client.subscribe(shared, qos=0) == [0]
    wanted = [str(number).encode() for number in range(20)]
    with Producer(broker.bootstrap) as producer:
        for value in wanted:
            producer.send("ours.a", value, partition=0)
    assert [bob.expect(Publish).payload for _ in wanted] == wanted
    carl.nothing_more()
    for client in (carl, bob):
        client.close()
