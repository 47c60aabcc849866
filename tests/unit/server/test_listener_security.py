"""Listeners with TLS and SASL: who gets in, as whom, and what everybody else gets instead."""

from __future__ import annotations

import logging
import socket
import ssl
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import Certificates, why_no_certificates

from barnabas import Admin, Producer
from barnabas.client.admin.types.cluster import ScramDeletion, ScramMechanism, ScramUpsertion
from barnabas.client.admin.types.configs import ConfigResource
from barnabas.client.errors import AuthenticationError, KafkaError
from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.errors import ErrorCode
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages.metadata import MetadataRequest
from barnabas.protocol.messages.sasl_authenticate import SaslAuthenticateRequest, SaslAuthenticateResponse
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest, SaslHandshakeResponse
from barnabas.server.broker import StartError
from barnabas.testing import Broker

PASSWORD = "alice-secret-7261"
JAAS = f'org.apache.kafka.common.security.plain.PlainLoginModule required user_alice="{PASSWORD}" user_bob="b";'
ALICE = {"sasl_mechanism": "PLAIN", "sasl_username": "alice", "sasl_password": PASSWORD}


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    why = why_no_certificates()
    if why is not None:
        pytest.skip(why)
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture
def sasl_broker() -> Iterator[Broker]:
    with Broker(sasl_settings()) as broker:
        yield broker


def sasl_settings(**more: str) -> dict[str, object]:
    return {
        "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_plaintext.plain.sasl.jaas.config": JAAS,
        "connection.failed.authentication.delay.ms": "10",
        **more,
    }


def ssl_settings(certificates: Certificates, **more: object) -> dict[str, object]:
    return {
        "listeners": "SSL://127.0.0.1:0",
        "ssl.keystore.type": "PEM",
        "ssl.keystore.location": certificates.server_store,
        **more,
    }


def frame(api_key: int, version: int, body: bytes, *, flexible: bool = False) -> bytes:
    content = struct.pack(">hhih", api_key, version, 7, -1) + (b"\0" if flexible else b"") + body
    return struct.pack(">i", len(content)) + content


def read_response(peer: socket.socket) -> bytes:
    """Without size and correlation id; empty where the broker closed the connection."""
    data = b""
    while len(data) < 4 or len(data) < 4 + struct.unpack_from(">i", data)[0]:
        received = peer.recv(65536)
        if not received:
            assert not data, data
            return b""
        data += received
    return data[8:]


def is_closed(peer: socket.socket) -> bool:
    """Waits for the end of the connection; nothing else may come."""
    try:
        return peer.recv(1) == b""
    except ConnectionResetError:
        return True


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=30)


def handshake(peer: socket.socket, mechanism: str = "PLAIN") -> SaslHandshakeResponse:
    peer.sendall(frame(ApiKey.SASL_HANDSHAKE, 1, encode(SaslHandshakeRequest(mechanism=mechanism), 1)))
    return decode(SaslHandshakeResponse, 1, read_response(peer))[0]


def authenticate(peer: socket.socket, message: bytes) -> SaslAuthenticateResponse:
    peer.sendall(frame(ApiKey.SASL_AUTHENTICATE, 1, encode(SaslAuthenticateRequest(auth_bytes=message), 1)))
    return decode(SaslAuthenticateResponse, 1, read_response(peer))[0]


def principals(broker: Broker) -> list[str]:
    thread = broker._thread
    assert thread is not None
    connections = thread.call(lambda: thread.broker._server.connections)
    return [str(each.session.principal) for each in connections if each.session is not None]  # others log in just now


def test_a_client_logs_in_by_plain_and_is_that_user(sasl_broker: Broker) -> None:
    with Producer(sasl_broker.bootstrap, security_protocol="SASL_PLAINTEXT", **ALICE) as producer:
        assert producer.send("orders", b"1").result(30).offset == 0
        assert set(principals(sasl_broker)) == {"User:alice"}


@pytest.mark.parametrize(
    "message",
    [b"\0alice\0wrong", b"\0nobody\0wrong", b"\0alice", b"\xff\0\xff\0\xff", b"bob\0alice\0" + PASSWORD.encode()],
)
def test_every_failed_login_gets_the_same_answer_and_ends_the_connection(sasl_broker: Broker, message: bytes) -> None:
    with connect(sasl_broker) as peer:
        assert handshake(peer).error_code == ErrorCode.NONE
        response = authenticate(peer, message)
        assert response.error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
        assert response.error_message == "Authentication failed: Invalid username or password"
        assert is_closed(peer)


def test_an_unknown_mechanism_gets_the_list(sasl_broker: Broker) -> None:
    with connect(sasl_broker) as peer:
        response = handshake(peer, "GSSAPI")
        assert (response.error_code, response.mechanisms) == (ErrorCode.UNSUPPORTED_SASL_MECHANISM, ["PLAIN"])
        assert is_closed(peer)


def test_authenticating_without_a_handshake_is_refused(sasl_broker: Broker) -> None:
    with connect(sasl_broker) as peer:
        assert authenticate(peer, b"\0alice\0" + PASSWORD.encode()).error_code == ErrorCode.ILLEGAL_SASL_STATE
        assert is_closed(peer)


def test_other_requests_before_the_login_close_the_connection(sasl_broker: Broker) -> None:
    with connect(sasl_broker) as peer:
        peer.sendall(frame(ApiKey.METADATA, 1, encode(MetadataRequest(topics=None), 1)))
        assert read_response(peer) == b""


def test_the_first_version_of_the_handshake_takes_messages_without_headers(sasl_broker: Broker) -> None:
    with connect(sasl_broker) as peer:
        peer.sendall(frame(ApiKey.SASL_HANDSHAKE, 0, encode(SaslHandshakeRequest(mechanism="PLAIN"), 0)))
        assert decode(SaslHandshakeResponse, 0, read_response(peer))[0].error_code == ErrorCode.NONE
        message = b"\0alice\0" + PASSWORD.encode()
        peer.sendall(struct.pack(">i", len(message)) + message)
        assert peer.recv(4) == struct.pack(">i", 0)
        peer.sendall(frame(ApiKey.METADATA, 1, encode(MetadataRequest(topics=None), 1)))
        assert read_response(peer)


def test_a_large_frame_before_the_login_closes_the_connection(sasl_broker: Broker) -> None:
    with connect(sasl_broker) as peer:
        peer.sendall(struct.pack(">i", 524_289))
        assert is_closed(peer)


def test_half_an_exchange_ends_after_the_time_limit() -> None:
    settings = sasl_settings(**{"socket.connection.setup.timeout.max.ms": "50"})
    with Broker(settings) as broker, connect(broker) as peer:
        peer.sendall(b"\0\0\0\x10ab")
        assert is_closed(peer)


def test_no_password_is_in_logs_settings_or_errors(sasl_broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    wrong = {**ALICE, "sasl_password": PASSWORD + "x"}
    wrong_login = Admin(sasl_broker.bootstrap, security_protocol="SASL_PLAINTEXT", **wrong)
    with pytest.raises(AuthenticationError) as refused, wrong_login as admin:
        admin.list_topics()
    with Admin(sasl_broker.bootstrap, security_protocol="SASL_PLAINTEXT", **ALICE) as admin:
        described = repr(admin.describe_configs([ConfigResource.broker(0)]))
        assert "plain.sasl.jaas.config" in described
    thread = sasl_broker._thread
    assert thread is not None
    for text in (caplog.text, str(refused.value), described, repr(thread.broker.config)):
        assert PASSWORD not in text


def test_a_client_is_served_over_tls(certificates: Certificates) -> None:
    trust = {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority)}
    with Broker(ssl_settings(certificates)) as broker:
        with Producer(broker.bootstrap, **trust) as producer:
            assert producer.send("orders", b"x" * 400_000).result(30).offset == 0
        with pytest.raises(AuthenticationError, match="certificate is not accepted"):
            other = {**trust, "ssl_truststore_location": str(certificates.other_authority)}
            with Admin(broker.bootstrap, **other) as admin:
                admin.list_topics()


def test_large_fetches_come_over_tls_as_they_were_written(certificates: Certificates) -> None:
    from barnabas import Consumer

    trust = {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority)}
    values = [bytes([number]) * 300_000 for number in range(20)]
    with Broker(ssl_settings(certificates)) as broker:
        with Producer(broker.bootstrap, **trust) as producer:
            for value in values:
                producer.send("large", value)
            producer.flush()
        with Consumer(broker.bootstrap, **trust) as consumer:
            consumer.assign([("large", 0)])
            consumer.seek_to_beginning()
            found: list[bytes | None] = []
            while len(found) < len(values):
                found += [record.value for record in consumer.poll(30)]
        assert found == values


def test_tls_with_a_login_and_keys_in_the_settings(certificates: Certificates) -> None:
    key, begin, chain = certificates.server_store.read_text().partition("-----BEGIN CERTIFICATE-----")
    settings = {
        "listeners": "SASL_SSL://127.0.0.1:0",
        "sasl.enabled.mechanisms": "PLAIN",
        "listener.name.sasl_ssl.plain.sasl.jaas.config": JAAS,
        "listener.name.sasl_ssl.ssl.keystore.type": "PEM",
        "listener.name.sasl_ssl.ssl.keystore.key": " ".join(key.split("\n")),
        "listener.name.sasl_ssl.ssl.keystore.certificate.chain": begin + chain,
    }
    options = {"security_protocol": "SASL_SSL", "ssl_truststore_location": str(certificates.authority), **ALICE}
    with Broker(settings) as broker, Producer(broker.bootstrap, **options) as producer:
        assert producer.send("orders", b"1").result(30).offset == 0
        assert set(principals(broker)) == {"User:alice"}


@pytest.mark.parametrize(
    ("rules", "principal"),
    [("DEFAULT", "User:CN=client"), (r"RULE:^CN=(.*)$/$1/U,DEFAULT", "User:CLIENT")],
)
def test_a_client_certificate_names_the_user(certificates: Certificates, rules: str, principal: str) -> None:
    settings = ssl_settings(
        certificates,
        **{
            "ssl.client.auth": "required",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": certificates.authority,
            "ssl.principal.mapping.rules": rules,
        },
    )
    trust = {"security_protocol": "SSL", "ssl_truststore_location": str(certificates.authority)}
    with Broker(settings) as broker:
        with Producer(broker.bootstrap, **trust, ssl_keystore_location=str(certificates.client_store)) as producer:
            assert producer.send("orders", b"1").result(30).offset == 0
            assert set(principals(broker)) == {principal}
        with (
            pytest.raises(KafkaError),
            Admin(broker.bootstrap, **trust, default_api_timeout_ms=2000, request_timeout_ms=1000) as admin,
        ):
            admin.list_topics()


def test_a_replaced_file_is_in_use_for_the_next_connection(certificates: Certificates, tmp_path: Path) -> None:
    store = tmp_path / "store.pem"
    store.write_bytes(certificates.misnamed_server_store.read_bytes())
    context = ssl.create_default_context(cafile=str(certificates.authority))
    with Broker(ssl_settings(certificates, **{"ssl.keystore.location": store})) as broker:
        with pytest.raises(ssl.SSLCertVerificationError), connect(broker) as peer:
            context.wrap_socket(peer, server_hostname="localhost")
        store.write_bytes(certificates.server_store.read_bytes())
        thread = broker._thread
        assert thread is not None
        security = thread.broker._security["SSL"]
        security._tls._next_check_ms = 0
        with connect(broker) as peer, context.wrap_socket(peer, server_hostname="localhost") as encrypted:
            assert encrypted.version() == "TLSv1.3"
        store.write_bytes(b"damaged")
        security._tls._next_check_ms = 0
        with connect(broker) as peer, context.wrap_socket(peer, server_hostname="localhost") as encrypted:
            assert encrypted.version() == "TLSv1.3"


def test_plain_text_on_a_tls_port_is_named_in_the_log(
    certificates: Certificates, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    with Broker(ssl_settings(certificates)) as broker, connect(broker) as peer:
        peer.sendall(frame(ApiKey.API_VERSIONS, 0, b""))
        while not is_closed(peer):
            pass  # an alert of TLS may come first
    assert "it sent plain text, but this listener takes TLS" in caplog.text


def test_a_slow_handshake_ends_after_the_time_limit(certificates: Certificates) -> None:
    settings = ssl_settings(certificates, **{"socket.connection.setup.timeout.max.ms": "50"})
    with Broker(settings) as broker, connect(broker) as peer:
        peer.sendall(b"\x16\x03\x01")
        assert is_closed(peer)


def test_missing_keys_and_users_stop_the_start_with_every_fault() -> None:
    with pytest.raises(ConfigFaults) as refused:
        BrokerConfig.parse({"listeners": "SSL://:1,SASL_SSL://:2", "log.dirs": "/x", "ssl.keystore.password": PASSWORD})
    text = str(refused.value)
    assert text.count("ssl.keystore.location: listener") == 2
    assert "sasl.enabled.mechanisms: listener SASL_SSL: GSSAPI cannot be offered" in text
    assert PASSWORD not in text


def test_a_java_key_store_is_refused_with_the_way_out() -> None:
    with pytest.raises(ConfigFaults, match="openssl pkcs12"):
        BrokerConfig.parse({"listeners": "SSL://:1", "log.dirs": "/x", "ssl.keystore.location": "broker.jks"})


def test_a_file_that_cannot_be_read_stops_the_start(certificates: Certificates, tmp_path: Path) -> None:
    settings = ssl_settings(certificates, **{"ssl.keystore.location": tmp_path / "missing.pem"})
    with pytest.raises(StartError, match=r"ssl\.keystore\.location: listener SSL: .*No such file"), Broker(settings):
        pass


SCRAM = {"SCRAM-SHA-256": ScramMechanism.SCRAM_SHA_256, "SCRAM-SHA-512": ScramMechanism.SCRAM_SHA_512}
SCRAM_SETTINGS = {
    "listeners": "PLAINTEXT://127.0.0.1:0,SASL_PLAINTEXT://127.0.0.1:0",
    "sasl.enabled.mechanisms": "SCRAM-SHA-256,SCRAM-SHA-512",
    "connection.failed.authentication.delay.ms": "10",
}


def scram_port(broker: Broker) -> str:
    thread = broker._thread
    assert thread is not None
    return f"127.0.0.1:{thread.broker._server.addresses['SASL_PLAINTEXT'][1]}"


def create_user(broker: Broker, name: str, mechanism: str) -> None:
    with Admin(broker.bootstrap) as admin:
        admin.alter_user_scram_credentials([ScramUpsertion(user=name, mechanism=SCRAM[mechanism], password=PASSWORD)])


@pytest.mark.parametrize("mechanism", ["SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_a_user_of_the_metadata_logs_in_by_scram(mechanism: str) -> None:
    name = "alice,=/ü"
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": mechanism, "sasl_username": name}
    with Broker(SCRAM_SETTINGS) as broker:
        create_user(broker, name, mechanism)
        with Admin(broker.bootstrap) as admin:
            assert list(admin.describe_user_scram_credentials()) == [name]
        with Admin(scram_port(broker), **options, sasl_password=PASSWORD) as admin:
            assert admin.list_topics() is not None
            assert f"User:{name}" in principals(broker)
        with pytest.raises(AuthenticationError), Admin(scram_port(broker), **options, sasl_password="no") as admin:
            admin.list_topics()
        broker.stop()
        broker.start()
        with Admin(scram_port(broker), **options, sasl_password=PASSWORD) as admin:
            assert admin.list_topics() is not None


def test_a_deleted_user_cannot_log_in_any_more() -> None:
    options = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256", "sasl_username": "bob"}
    with Broker(SCRAM_SETTINGS) as broker:
        create_user(broker, "bob", "SCRAM-SHA-256")
        with Admin(broker.bootstrap) as admin:
            admin.alter_user_scram_credentials([ScramDeletion(user="bob", mechanism=SCRAM["SCRAM-SHA-256"])])
            assert not admin.describe_user_scram_credentials()
        with pytest.raises(AuthenticationError), Admin(scram_port(broker), **options, sasl_password=PASSWORD) as admin:
            admin.list_topics()


def test_a_broker_that_nobody_could_log_in_to_does_not_start() -> None:
    settings = {"listeners": "SASL_PLAINTEXT://127.0.0.1:0", "sasl.enabled.mechanisms": "SCRAM-SHA-512"}
    with pytest.raises(StartError, match="nobody could log in"), Broker(settings):
        pass
