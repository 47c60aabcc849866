"""TLS and SASL against Apache Kafka: every security protocol, every mechanism, and what goes wrong in words."""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import pytest
from certificates import KEY_PASSWORD, Certificates, why_no_certificates
from kafka_process import QuickKafka
from server_process import free_port

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.errors import AuthenticationError, UnreachableError
from barnabas.client.options import AdminOptions
from barnabas.client.retry import Backoff, Deadline, retrying
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.sasl import scram
from barnabas.machines.sasl.scram import salted_password
from barnabas.protocol.messages.alter_user_scram_credentials import (
    AlterUserScramCredentialsRequest,
    ScramCredentialUpsertion,
)
from barnabas.protocol.messages.list_groups import ListGroupsRequest

pytestmark = [
    pytest.mark.java,
    pytest.mark.skipif(why_no_certificates() is not None, reason=str(why_no_certificates())),
]
PASSWORD = 'pa"ss,wo=rd\u00e9'
SESSION_MS = 1500
SCRAM = {"SCRAM-SHA-256": (1, "sha256"), "SCRAM-SHA-512": (2, "sha512")}


@dataclass(frozen=True)
class SecureKafka:
    process: QuickKafka
    certificates: Certificates
    ports: dict[str, int]

    def address(self, listener: str) -> str:
        return f"localhost:{self.ports[listener]}"


@pytest.fixture(scope="module")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecureKafka]:
    directory = tmp_path_factory.mktemp("kafka")
    certificates = Certificates(tmp_path_factory.mktemp("certificates"))
    ports = {name: free_port() for name in ("TLS", "MUTUAL", "SASL_PLAIN", "SASL_TLS", "MISNAMED")}
    process = QuickKafka(directory, _settings(certificates))
    listeners = [f"{name}://localhost:{port}" for name, port in ports.items()]
    process.settings["listeners"] = ",".join([process.settings["listeners"], *listeners])
    process.start()
    try:
        found = SecureKafka(process, certificates, ports)
        asyncio.run(_add_users(process.bootstrap))
        yield found
    finally:
        process.stop()


def _settings(certificates: Certificates) -> dict[str, str]:
    plain = "org.apache.kafka.common.security.plain.PlainLoginModule"
    scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;"
    escaped = PASSWORD.replace('"', '\\\\"')
    settings = {
        "listener.security.protocol.map": "PLAINTEXT:PLAINTEXT,CONTROLLER:PLAINTEXT,TLS:SSL,MUTUAL:SSL,MISNAMED:SSL,"
        "SASL_PLAIN:SASL_PLAINTEXT,SASL_TLS:SASL_SSL",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": str(certificates.server_store),
        "ssl.truststore.type": "PEM",
        "ssl.truststore.location": str(certificates.authority),
        "listener.name.mutual.ssl.client.auth": "required",
        "listener.name.misnamed.ssl.keystore.location": str(certificates.misnamed_server_store),
        "listener.name.misnamed.ssl.keystore.type": "PEM",
        "connections.max.reauth.ms": str(SESSION_MS),
    }
    for listener in ("sasl_plain", "sasl_tls"):
        prefix = f"listener.name.{listener}"
        settings[f"{prefix}.sasl.enabled.mechanisms"] = "PLAIN,SCRAM-SHA-256,SCRAM-SHA-512"
        settings[f"{prefix}.plain.sasl.jaas.config"] = f'{plain} required user_alice="{_java(escaped)}";'
        settings[f"{prefix}.scram-sha-256.sasl.jaas.config"] = scram
        settings[f"{prefix}.scram-sha-512.sasl.jaas.config"] = scram
    return settings


def _java(text: str) -> str:
    """A properties file is Latin-1: other characters are escapes."""
    return "".join(each if each.isascii() else f"\\u{ord(each):04x}" for each in text)


async def _add_users(bootstrap: str) -> None:
    cluster = ClusterClient(AdminOptions.of(bootstrap))
    try:
        for number, name in SCRAM.values():
            salt = secrets.token_bytes(16)
            credential = ScramCredentialUpsertion(
                name="alice",
                mechanism=number,
                iterations=4096,
                salt=salt,
                salted_password=salted_password(name, PASSWORD.encode(), salt, 4096),
            )
            request = AlterUserScramCredentialsRequest(upsertions=[credential])
            response = await cluster.send(await cluster.controller(), request)
            assert response.results[0].error_code == 0, response
    finally:
        await cluster.close()


def ask(address: str, use: Callable[[ClusterClient], Any] | None = None, **options: object) -> None:
    """Ask the broker something, or let `use` do so."""

    async def main() -> None:
        cluster = ClusterClient(AdminOptions.of(address, **options))
        try:
            if use is not None:
                await use(cluster)
                return
            assert (await cluster.send(await cluster.any_node(), ListGroupsRequest())).error_code == 0
        finally:
            await cluster.close()

    asyncio.run(main())


def sasl(mechanism: str, protocol: str = "SASL_PLAINTEXT", **options: object) -> dict[str, object]:
    return {
        "security_protocol": protocol,
        "sasl_mechanism": mechanism,
        "sasl_username": "alice",
        "sasl_password": PASSWORD,
        **options,
    }


def tls(kafka: SecureKafka, protocol: str = "SSL", **options: object) -> dict[str, object]:
    return {"security_protocol": protocol, "ssl_truststore_location": str(kafka.certificates.authority), **options}


# --- what works ---


@pytest.mark.parametrize("versions", ["TLSv1.2", "TLSv1.3", "TLSv1.2,TLSv1.3"])
def test_tls(kafka: SecureKafka, versions: str) -> None:
    ask(kafka.address("TLS"), **tls(kafka, ssl_enabled_protocols=versions))


def test_tls_with_certificates_as_text_and_one_cipher(kafka: SecureKafka) -> None:
    options = {"ssl_truststore_certificates": kafka.certificates.authority.read_text()}
    ask(kafka.address("TLS"), security_protocol="SSL", **options)
    ask(
        kafka.address("TLS"),
        **tls(
            kafka,
            ssl_enabled_protocols="TLSv1.2",
            ssl_protocol="TLSv1.2",
            ssl_cipher_suites="ECDHE-ECDSA-AES256-GCM-SHA384",
        ),
    )


def test_mutual_tls(kafka: SecureKafka) -> None:
    stores = kafka.certificates
    ask(kafka.address("MUTUAL"), **tls(kafka, ssl_keystore_location=str(stores.client_store)))
    encrypted = {"ssl_keystore_location": str(stores.encrypted_client_store), "ssl_key_password": KEY_PASSWORD}
    ask(kafka.address("MUTUAL"), **tls(kafka, **encrypted))
    key, start, chain = stores.client_store.read_text().partition("-----BEGIN CERTIFICATE-----")
    ask(kafka.address("MUTUAL"), **tls(kafka, ssl_keystore_key=key, ssl_keystore_certificate_chain=start + chain))


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_sasl(kafka: SecureKafka, mechanism: str) -> None:
    ask(kafka.address("SASL_PLAIN"), **sasl(mechanism))
    ask(kafka.address("SASL_TLS"), **{**tls(kafka), **sasl(mechanism, "SASL_SSL")})


def test_sasl_with_a_jaas_entry(kafka: SecureKafka) -> None:
    quoted = PASSWORD.replace('"', '\\"')
    entry = f'org.apache.kafka.common.security.scram.ScramLoginModule required username="alice" password="{quoted}";'
    ask(
        kafka.address("SASL_PLAIN"),
        security_protocol="SASL_PLAINTEXT",
        sasl_mechanism="SCRAM-SHA-512",
        sasl_jaas_config=entry,
    )


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256"])
def test_a_session_is_renewed_on_the_same_connection(kafka: SecureKafka, mechanism: str) -> None:
    """KIP-368: the broker would close a connection that goes on after its session."""

    async def use(cluster: ClusterClient) -> None:
        loop = asyncio.get_running_loop()
        node_id = await cluster.any_node()
        before = [connection for _, connection in cluster._connections.connected()]
        first_end = before[0].reauthenticate_at
        assert first_end is not None
        end = loop.time() + 2.5 * SESSION_MS / 1000
        while loop.time() < end:
            responses = await asyncio.gather(*(cluster.send(node_id, ListGroupsRequest()) for _ in range(5)))
            assert [response.error_code for response in responses] == [0] * 5
            await asyncio.sleep(0.05)
        assert [connection for _, connection in cluster._connections.connected()] == before
        assert before[0].reauthenticate_at is not None and before[0].reauthenticate_at > first_end

    ask(kafka.address("SASL_PLAIN"), use, **sasl(mechanism))


def test_a_session_that_ended_while_nothing_was_sent(kafka: SecureKafka) -> None:
    async def use(cluster: ClusterClient) -> None:
        node_id = await cluster.any_node()
        await asyncio.sleep(1.2 * SESSION_MS / 1000)
        assert (await cluster.send(node_id, ListGroupsRequest())).error_code == 0

    ask(kafka.address("SASL_PLAIN"), use, **sasl("PLAIN"))


# --- what does not, and how it is said ---


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
@pytest.mark.parametrize("wrong", [{"sasl_password": "wrong"}, {"sasl_username": "nobody"}])
def test_a_wrong_password_or_user(kafka: SecureKafka, mechanism: str, wrong: dict[str, str]) -> None:
    with pytest.raises(AuthenticationError, match=rf"mechanism {mechanism}.*check sasl_username") as raised:
        ask(kafka.address("SASL_PLAIN"), **{**sasl(mechanism), **wrong})
    assert raised.value.code == ErrorCode.SASL_AUTHENTICATION_FAILED
    assert not raised.value.retriable
    assert PASSWORD not in str(raised.value)


def test_a_mechanism_that_is_not_offered(kafka: SecureKafka, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(scram.HASHES, "SCRAM-SHA-1", "sha1")
    options = AdminOptions.of(kafka.address("SASL_PLAIN"), **sasl("PLAIN")).replace(sasl_mechanism="SCRAM-SHA-1")

    async def main() -> None:
        cluster = ClusterClient(options)
        with pytest.raises(AuthenticationError, match=r"it does not offer.*one of its own: .*PLAIN"):
            await cluster.start()
        await cluster.close()

    asyncio.run(main())


def test_a_certificate_of_an_unknown_authority(kafka: SecureKafka) -> None:
    options = {"security_protocol": "SSL", "ssl_truststore_location": str(kafka.certificates.other_authority)}
    with pytest.raises(AuthenticationError, match=r"its certificate is not accepted.*check ssl_truststore_location"):
        ask(kafka.address("TLS"), **options)
    with pytest.raises(AuthenticationError, match="its certificate is not accepted"):
        ask(kafka.address("TLS"), security_protocol="SSL")


def test_a_certificate_for_another_name(kafka: SecureKafka) -> None:
    with pytest.raises(AuthenticationError, match="Hostname mismatch"):
        ask(kafka.address("MISNAMED"), **tls(kafka))
    ask(kafka.address("MISNAMED"), **tls(kafka, ssl_endpoint_identification_algorithm=""))


def test_a_broker_that_wants_a_certificate(kafka: SecureKafka) -> None:
    with pytest.raises(KafkaError) as raised:
        ask(kafka.address("MUTUAL"), **tls(kafka))
    assert "certificate" in str(raised.value).lower(), str(raised.value)


def test_plain_words_to_a_tls_port(kafka: SecureKafka) -> None:
    with pytest.raises(UnreachableError, match="TLS"):
        ask(kafka.address("TLS"), request_timeout_ms=5000)


def test_plain_words_to_a_sasl_port(kafka: SecureKafka) -> None:
    with pytest.raises(UnreachableError, match="SASL"):
        ask(kafka.address("SASL_PLAIN"), request_timeout_ms=5000)


def test_tls_to_a_plain_port(kafka: SecureKafka) -> None:
    with pytest.raises(KafkaError, match="does this port speak TLS"):
        ask(kafka.process.bootstrap, **tls(kafka), socket_connection_setup_timeout_ms=3000)


def test_sasl_to_a_plain_port(kafka: SecureKafka) -> None:
    with pytest.raises(AuthenticationError, match="this listener does not use SASL"):
        ask(kafka.process.bootstrap, **sasl("PLAIN"))


def test_a_broker_that_is_restarted_is_found_again(kafka: SecureKafka) -> None:
    async def use(cluster: ClusterClient) -> None:
        node_id = await cluster.any_node()
        await asyncio.to_thread(kafka.process.stop)
        with pytest.raises(KafkaError):
            await cluster.send(node_id, ListGroupsRequest())
        await asyncio.to_thread(kafka.process.start)
        response = await retrying(
            lambda: cluster.send(node_id, ListGroupsRequest()), deadline=Deadline(30_000), backoff=Backoff(50, 500)
        )
        assert response.error_code == 0

    ask(kafka.address("SASL_TLS"), use, **{**tls(kafka), **sasl("SCRAM-SHA-512", "SASL_SSL")})
