"""Users, access rules, TLS and quotas on MQTT listeners."""

import ssl
from collections.abc import Iterator

import pytest
from mqtt_client import MqttClient

from barnabas import Admin
from barnabas.mqtt.packets import V5, V311, Ack, Connack, Disconnect, PacketType, Ping, Publish
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.testing import Broker

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = {"ann": "ann-secret", "bob": "bob-secret"}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
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
            allow(admin, "User:ann", "WRITE", "ours.", prefixed=True)
            allow(admin, "User:ann", "CREATE", "ours.", prefixed=True)
            allow(admin, "User:bob", "READ", "ours.", prefixed=True)
            for name in ("ours.a", "theirs.a"):
                admin.create_topic(name)
        yield running


def allow(admin: Admin, principal: str, operation: str, topic: str, *, prefixed: bool = False) -> None:
    raise NotImplementedError


def logged_in(broker: Broker, user: str, version: int = V5, **fields: object) -> MqttClient:
    client = MqttClient(broker.mqtt_port, version)
    answer = client.connect(f"of-{user}", username=user, password=f"{user}-secret".encode(), **fields)
    assert answer.code == 0
    return client
