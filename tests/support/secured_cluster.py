"""Three brokers that reach each other only in one of the secured ways, with access rules on; and a hostile client."""

from __future__ import annotations

import ssl
from collections.abc import Mapping
from typing import NamedTuple

from raw_client import RawClient

from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.testing import Cluster

AUTHORIZER = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
USERS = {"admin": "admin-secret-4711", "alice": "alice-secret-4712", "replica": "replica-secret-4713"}
SETTINGS = {
    "authorizer.class.name": AUTHORIZER,
    "super.users": "User:admin;User:CN=admin;User:replica",
    "offsets.topic.num.partitions": "4",
    "transaction.state.log.num.partitions": "4",
}


class Kind(NamedTuple):
    """A way in which brokers, and clients, reach a broker."""

    listener: str
    settings: Mapping[str, str]


KINDS = {
    "certificates": Kind("SSL", {"ssl.client.auth": "required"}),
    "scram": Kind(
        "SASL_SSL",
        {
            "inter.broker.listener.name": "SASL_SSL",
            "sasl.mechanism.inter.broker.protocol": "SCRAM-SHA-512",
            "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config": (
                f'ScramLoginModule required username="replica" password="{USERS["replica"]}";'
            ),
        },
    ),
    "plain": Kind("SASL_SSL", {"security.inter.broker.protocol": "SASL_SSL"}),
}


def secured_cluster(kind: str, settings: Mapping[str, object] | None = None, brokers: int = 3) -> Cluster:
    chosen = KINDS[kind]
    given = {**SETTINGS, **chosen.settings, **(settings or {})}
    return Cluster(brokers, given, listeners=[chosen.listener], users=USERS)


def librdkafka(options: Mapping[str, str], bootstrap: str) -> dict[str, str]:
    """The same options, as librdkafka calls them."""
    found = {"bootstrap.servers": bootstrap, "security.protocol": options["security_protocol"]}
    for name, own in (
        ("ssl.ca.location", "ssl_truststore_location"),
        ("ssl.certificate.location", "ssl_keystore_location"),
        ("ssl.key.location", "ssl_keystore_location"),
        ("sasl.mechanism", "sasl_mechanism"),
        ("sasl.username", "sasl_username"),
        ("sasl.password", "sasl_password"),
    ):
        if own in options:
            found[name] = options[own]
    return found


class LoggedInClient(RawClient):
    """A raw client that has authenticated as somebody, with the options of our own clients."""

    def __init__(self, bootstrap: str, options: Mapping[str, str]) -> None:
        super().__init__(bootstrap)
        protocol = options.get("security_protocol", "PLAINTEXT")
        if protocol.endswith("SSL"):
            context = ssl.create_default_context(cafile=options["ssl_truststore_location"])
            if "ssl_keystore_location" in options:
                context.load_cert_chain(options["ssl_keystore_location"])
            self.socket = context.wrap_socket(self.socket, server_hostname="127.0.0.1")
        if protocol.startswith("SASL_"):
            assert not self.ask(SaslHandshakeRequest(mechanism="PLAIN"), 1).error_code
            message = f"\0{options['sasl_username']}\0{options['sasl_password']}".encode()
            assert not self.ask(SaslAuthenticateRequest(auth_bytes=message), 2).error_code
