"""Holes that Kafka, Redpanda and their clients had, tried on Barnabas where it has the same door.

Each test names the CVE. Those of `ELSEWHERE` are kept shut by a test beside the code that they are about.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import http.server
import logging
import shutil
import socket
import struct
import subprocess
import threading
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from certificates import Certificates, why_no_certificates
from raw_client import batch
from sasl_peer import Peer

from barnabas import Admin
from barnabas.client.admin.types import (
    AclBinding,
    AclOperation,
    AclPermission,
    ConfigChange,
    ConfigResource,
    ResourceType,
)
from barnabas.client.admin.types.cluster import ScramMechanism, ScramUpsertion
from barnabas.client.errors import ConfigError, UnreachableError
from barnabas.client.options.admin import AdminOptions
from barnabas.clock import ManualClock
from barnabas.config.broker import BrokerConfig
from barnabas.config.faults import ConfigFaults
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.acls import AclEntry, Operation, PatternType, Permission, ResourcePattern, SecuredType
from barnabas.machines.sasl.mechanism import SaslError
from barnabas.machines.sasl.oauth import Bearer, OauthClient, OauthServer
from barnabas.machines.sasl.plain import PlainServer
from barnabas.machines.sasl.scram import SALT_BYTES, salted_password, xor
from barnabas.machines.sasl.scram_server import ScramCredential, ScramServer
from barnabas.metadata.image import ClusterImage, Delta
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import encode
from barnabas.protocol.messages import produce as producing
from barnabas.protocol.messages.sasl_handshake import SaslHandshakeRequest
from barnabas.records.compression import CompressionType, decompress
from barnabas.server.authorizer import Authorizer
from barnabas.server.jwks import parse_jwks
from barnabas.testing import Broker
from barnabas.transport.https import HttpError, request
from barnabas.transport.token_source import TokenClient, request_token

ROOT = Path(__file__).resolve().parents[3]
ELSEWHERE = {
    "CVE-2018-1288: a client that fetches as a replica": (
        "tests/integration/test_hostile_replicas.py",
        "test_a_user_without_cluster_rights",
    ),
    "CVE-2019-12399 and CVE-2026-33558: secrets in responses and in logs": (
        "tests/integration/test_secrets.py",
        "test_no_secret_is_shown",
    ),
    "CVE-2023-50976 (Redpanda): requests of transactions without a check": (
        "tests/unit/server/handlers/test_access.py",
        "test_the_whole_table",
    ),
    "CVE-2023-52251 (UI for Apache Kafka): a filter that is code": (
        "tests/unit/console/test_filters.py",
        "test_a_filter_is_never_code",
    ),
    "CVE-2026-33557: tokens whose signature, issuer or audience nobody checks": (
        "tests/unit/server/test_oauthbearer.py",
        "test_any_other_token_is_refused",
    ),
    "CVE-2026-41115: who may describe a KIP-848 group": (
        "tests/unit/server/handlers/test_access.py",
        "test_the_whole_table",
    ),
}
USERS = {"root": "root-secret-5190", "alice": "alice-secret-5190"}
SETTINGS = {
    "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
    "super.users": "User:root",
    "connection.failed.authentication.delay.ms": "1",
}


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    """alice may write to the topic orders, and nothing else."""
    with Broker(SETTINGS, listeners=["SASL_PLAINTEXT"], users=USERS) as started:
        with Admin(started.bootstrap, **started.client_options("root")) as admin:
            admin.create_topic("orders", partitions=2)
            rule = AclBinding(
                resource_type=ResourceType.TOPIC,
                resource_name="orders",
                principal="User:alice",
                operation=AclOperation.WRITE,
                permission=AclPermission.ALLOW,
            )
            admin.create_acls([rule])
        yield started


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    why = why_no_certificates()
    if why is not None:
        pytest.skip(why)
    return Certificates(tmp_path_factory.mktemp("certificates"))


def test_the_others_are_where_they_are_said_to_be() -> None:
    for path, name in ELSEWHERE.values():
        assert f"\ndef {name}(" in (ROOT / path).read_text(encoding="utf-8"), (path, name)


class TestLogins:
    def test_nobody_acts_for_somebody_else(self, broker: Broker) -> None:
        """CVE-2017-12610: a client with a right password of its own named another user as the one to act as."""
        plain = f"root\0alice\0{USERS['alice']}".encode()
        for mechanism, message in (("PLAIN", plain), ("SCRAM-SHA-256", b"n,a=root,n=alice,r=fresh")):
            with Peer(broker.bootstrap) as peer:
                peer._handshake(mechanism)
                assert peer._authenticate(message).error_code == ErrorCode.SASL_AUTHENTICATION_FAILED
                assert peer.is_closed()
        bearer = OauthServer(lambda _: Bearer("alice", 0), lambda _: None)
        with pytest.raises(SaslError, match="not the principal of the token"):
            bearer.respond(b"n,a=root,\x01auth=Bearer abc\x01\x01")

    @pytest.mark.parametrize(("nonce", "is_right"), [("clientserver", True), ("clientother", False), ("client", False)])
    def test_the_last_message_of_scram_repeats_the_nonce(self, nonce: str, is_right: bool) -> None:
        """CVE-2024-56128: the nonce of the last message was not compared with the broker's."""
        server = scram_server(password="secret")
        bare = "n=alice,r=client"
        challenge = server.respond(f"n,,{bare}".encode()).decode()
        without_proof = f"c=biws,r={nonce}"
        salted = salted_password("sha256", b"secret", b"salt", 4096)
        client_key = hmac.digest(salted, b"Client Key", "sha256")
        signed = ",".join((bare, challenge, without_proof)).encode()
        proof = xor(client_key, hmac.digest(hashlib.sha256(client_key).digest(), signed, "sha256"))
        last = f"{without_proof},p={base64.b64encode(proof).decode()}".encode()
        if not is_right:
            with pytest.raises(SaslError):
                server.respond(last)
        else:
            server.respond(last)
        assert server.is_done == is_right

    @pytest.mark.parametrize("user", ["alice", "nobody"])
    def test_secrets_are_compared_in_constant_time(self, monkeypatch: pytest.MonkeyPatch, user: str) -> None:
        """CVE-2021-38153: passwords were compared byte by byte until the first difference."""
        compared: list[bytes] = []
        original = hmac.compare_digest

        def compare(left: bytes, right: bytes) -> bool:
            compared.extend((left, right))
            return original(left, right)

        monkeypatch.setattr(hmac, "compare_digest", compare)
        with pytest.raises(SaslError):
            PlainServer({"alice": "secret"}).respond(f"\0{user}\0wrong".encode())
        assert b"wrong" in compared
        compared.clear()
        server = scram_server(password="secret")
        server.respond(f"n,,n={user},r=client".encode())
        with pytest.raises(SaslError):
            server.respond(b"c=biws,r=clientserver,p=" + base64.b64encode(bytes(32)))
        assert len(compared) == 2

    def test_a_salt_does_not_tell_who_exists(self, broker: Broker) -> None:
        """The kind of CVE-2021-38153: nothing that differs may show which users there are."""
        with Admin(broker.bootstrap, **broker.client_options("root")) as admin:
            upsertion = ScramUpsertion(
                user="carol", password="carol-secret-5190", mechanism=ScramMechanism.SCRAM_SHA_256
            )
            admin.alter_user_scram_credentials([upsertion])
        challenges = []
        for user in ("alice", "carol", "nobody"):
            with Peer(broker.bootstrap) as peer:
                peer._handshake("SCRAM-SHA-256")
                challenges.append(bytes(peer._authenticate(f"n,,n={user},r=x".encode()).auth_bytes).decode())
        shapes = {(len(base64.b64decode(each.split(",")[1][2:])), each.split(",")[2]) for each in challenges}
        assert shapes == {(SALT_BYTES, "i=4096")}


class TestSettingsFromStrangers:
    @pytest.mark.parametrize("module", ["JndiLoginModule", "LdapLoginModule"])
    def test_no_login_module_is_loaded(self, module: str, broker: Broker) -> None:
        """CVE-2023-25194, CVE-2025-27818, CVE-2025-27819: sasl.jaas.config named a class that called home."""
        jaas = (
            f'com.sun.security.auth.module.{module} required user.provider.url="ldap://127.0.0.1:1/x"'
            ' username="u" password="p" user_alice="p";'
        )
        for mechanism in ("PLAIN", "SCRAM-SHA-256"):
            with pytest.raises(ConfigError, match="sasl_jaas_config"):
                AdminOptions.of(
                    "h:1", security_protocol="SASL_PLAINTEXT", sasl_mechanism=mechanism, sasl_jaas_config=jaas
                )
        name = "listener.name.sasl_plaintext.plain.sasl.jaas.config"
        given = {"listeners": "SASL_PLAINTEXT://:1", "log.dirs": "/x", "sasl.enabled.mechanisms": "PLAIN", name: jaas}
        with pytest.raises(ConfigFaults, match="must name PlainLoginModule"):
            BrokerConfig.parse(given)
        with Admin(broker.bootstrap, **broker.client_options("root")) as admin, pytest.raises(KafkaError):
            admin.alter_configs({ConfigResource.broker(0): ConfigChange(set={name: jaas})})

    def test_no_setting_reads_a_file_or_the_environment(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """CVE-2024-31141: ${file:...} and ${env:...} in settings of a client were replaced by what they named."""
        monkeypatch.setenv("KNOWN_HOLE", "leaked")
        for value in ("${env:KNOWN_HOLE}", "${file:/etc/passwd:root}", "$KNOWN_HOLE"):
            assert AdminOptions.from_config({"bootstrap.servers": "h:1", "client.id": value}).client_id == value
            given = {
                "listeners": "PLAINTEXT://:1",
                "log.dirs": "/x",
                "config.providers": "env",
                "ssl.key.password": value,
            }
            assert BrokerConfig.parse(given).ssl_key_password == value

    def test_a_misspelled_setting_of_tls_does_not_leave_the_door_open(self, tmp_path: Path) -> None:
        """CVE-2023-30450 (Redpanda): a setting of TLS that was not understood left the port without TLS."""
        given = {"listeners": "INSIDE://127.0.0.1:0", "log.dirs": str(tmp_path), "node.id": "0"}
        for wrong in ({"listener.security.protocol.map": "INSIDE:SLL"}, {"security.inter.broker.protocol": "SLL"}):
            with pytest.raises(ConfigFaults):
                BrokerConfig.parse({**given, **wrong})
        named = {**given, "listener.security.protocol.map": "INSIDE:SSL", "inter.broker.listener.name": "INSIDE"}
        with pytest.raises(ConfigFaults, match=r"ssl\.keystore\.location"):
            BrokerConfig.parse({**named, "ssl.keystore.loaction": "/x"})


class TestAddressesOfIdentityProviders:
    """CVE-2025-27817: addresses in the settings of OAUTHBEARER read files into error texts, and called other hosts."""

    SECRET = "root:x:0:0:known-hole"

    def test_what_is_in_a_file_is_in_no_error(self, tmp_path: Path) -> None:
        path = tmp_path / "passwd"
        path.write_text(self.SECRET)
        token = request_token(f"file://{path}", TokenClient("id", "secret", "", None))
        with pytest.raises(SaslError) as refused:
            OauthClient(token)
        with pytest.raises(ValueError, match="no JSON") as unreadable:
            parse_jwks(path.read_bytes())
        assert "known-hole" not in f"{refused.value!r}{unreadable.value!r}"

    def test_a_redirect_is_not_followed(self) -> None:
        class Handler(http.server.BaseHTTPRequestHandler):
            asked: ClassVar[list[str]] = []

            def do_GET(self) -> None:
                self.asked.append(self.path)
                self.send_response(302)
                self.send_header("Location", f"http://{self.headers['Host']}/elsewhere")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        with http.server.HTTPServer(("127.0.0.1", 0), Handler) as server:
            thread = threading.Thread(target=server.serve_forever)
            thread.start()
            try:
                with pytest.raises(HttpError, match="HTTP status 302"):
                    request(f"http://127.0.0.1:{server.server_port}/token", timeout_s=60, form=None)
            finally:
                server.shutdown()
                thread.join()
        assert Handler.asked == ["/token"]


class TestRights:
    def test_a_rule_that_goes_leaves_the_others(self) -> None:
        """CVE-2024-27309: after one rule of a resource was removed, only one of the others was obeyed."""
        pattern = ResourcePattern(SecuredType.TOPIC, "orders", PatternType.LITERAL)
        allow, deny, gone = (
            AclEntry(principal, "*", Operation.READ, permission)
            for principal, permission in (
                ("User:alice", Permission.ALLOW),
                ("User:bob", Permission.DENY),
                ("User:carol", Permission.ALLOW),
            )
        )
        everybody = AclEntry("User:*", "*", Operation.READ, Permission.ALLOW)
        before = ClusterImage(acls={pattern: (gone, everybody, deny, allow)})
        after = ClusterImage(acls={pattern: (everybody, deny, allow)})
        authorizer = Authorizer(ManualClock())
        authorizer.on_image(before)
        authorizer.on_delta(Delta.between(before, after))
        may = {
            user: authorizer.authorize(f"User:{user}", "h", Operation.READ, SecuredType.TOPIC, "orders", "Fetch")
            for user in ("alice", "bob", "dave")
        }
        assert may == {"alice": True, "bob": False, "dave": True}

    @pytest.mark.parametrize("transactional_id", [None, "of-somebody-else"])
    def test_every_batch_of_a_request_is_looked_at_for_transactions(
        self, broker: Broker, transactional_id: str | None
    ) -> None:
        """CVE-2018-17196: a request could be made so that the right to its transactional id was not checked."""
        parts = [
            producing.PartitionProduceData(index=0, records=bytes(batch(b"plain"))),
            producing.PartitionProduceData(
                index=1,
                records=bytes(batch(b"in", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True)),
            ),
        ]
        asked = producing.ProduceRequest(
            transactional_id=transactional_id,
            acks=-1,
            timeout_ms=30_000,
            topic_data=[producing.TopicProduceData(name="orders", partition_data=parts)],
        )
        with Peer(broker.bootstrap) as peer:
            assert peer.log_in("alice", USERS["alice"]).error_code == ErrorCode.NONE
            (topic,) = peer.ask(asked, 12).responses
        codes = [each.error_code for each in topic.partition_responses]
        assert codes == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED] * 2
        assert broker.records("orders") == []


class TestBytesFromStrangers:
    @pytest.mark.parametrize("length", [0x7FFF_FFFF, 0xFFFF_FFFF, 17])
    def test_a_length_in_snappy_takes_no_memory(self, length: int) -> None:
        """CVE-2023-34455, CVE-2023-43642: memory was taken for whatever length a chunk claimed."""
        stream = b"\x82SNAPPY\0" + struct.pack(">iiI", 1, 1, length) + bytes(16)
        with pytest.raises(KafkaError, match="longer than its stream"):
            decompress(CompressionType.SNAPPY, stream)
        with pytest.raises(KafkaError, match="announces more than it can hold"):
            decompress(CompressionType.SNAPPY, b"\xff\xff\xff\xff\x07" + bytes(16))

    def test_before_a_login_a_size_takes_no_memory(self, broker: Broker, caplog: pytest.LogCaptureFixture) -> None:
        """CVE-2022-34917: clients that had not logged in made the broker take as much memory as they named."""
        caplog.set_level(logging.INFO)
        tracemalloc.start()
        peers: list[socket.socket] = []
        try:
            for number in range(400):
                peer = connect(broker)
                peers.append(peer)
                if number % 2:
                    body = encode(SaslHandshakeRequest(mechanism="PLAIN"), 0)
                    handshake = struct.pack(">hhih", ApiKey.SASL_HANDSHAKE, 0, 7, -1) + body
                    peer.sendall(struct.pack(">i", len(handshake)) + handshake)
                peer.sendall(struct.pack(">i", 524_288) + bytes(500))
            with Admin(broker.bootstrap, **broker.client_options("root")) as admin:
                assert "orders" in admin.list_topics()
            assert tracemalloc.get_traced_memory()[1] < 40 << 20, "they named 200 MB"
            for size in (524_289, 0x7FFF_FFFF):
                with connect(broker) as peer:
                    peer.sendall(struct.pack(">i", size))
                    assert peer.recv(1) == b""
                assert f"frame of {size} bytes, at most 524288 are taken" in caplog.text
        finally:
            tracemalloc.stop()
            for peer in peers:
                peer.close()

    def test_a_client_cannot_renegotiate(self, certificates: Certificates) -> None:
        """CVE-2011-1473: a client that began one handshake after the other kept the server busy."""
        if shutil.which("openssl") is None:
            pytest.skip("openssl is not installed")
        with tls_broker(certificates) as broker:
            done = subprocess.run(
                ["openssl", "s_client", "-connect", broker.bootstrap, "-tls1_2", "-legacy_renegotiation"],
                input="R\n",
                capture_output=True,
                text=True,
                timeout=60,
                check=False,
            )
        assert "RENEGOTIATING" in done.stdout + done.stderr
        assert "no renegotiation" in done.stdout + done.stderr


class TestTheWrongPort:
    """TLS to a port of plain text and the other way round: both sides say what is wrong."""

    def test_plain_text_to_tls(self, certificates: Certificates, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        with (
            tls_broker(certificates) as broker,
            pytest.raises(UnreachableError, match=r"may expect TLS \(security_pro"),
        ):
            list_topics(broker, security_protocol="PLAINTEXT")
        assert "it sent plain text, but this listener takes TLS" in caplog.text

    @pytest.mark.parametrize("listener", ["PLAINTEXT", "SASL_PLAINTEXT"])
    def test_tls_to_plain_text(self, listener: str, caplog: pytest.LogCaptureFixture) -> None:
        caplog.set_level(logging.INFO)
        with (
            Broker(listeners=[listener], users=USERS) as broker,
            pytest.raises(UnreachableError, match="does this port speak TLS, or plain text"),
        ):
            list_topics(broker, security_protocol="SSL")
        assert "it sent TLS, but this listener takes plain text" in caplog.text


def list_topics(broker: Broker, **options: str) -> None:
    with Admin(broker.bootstrap, default_api_timeout_ms=60_000, **options) as admin:
        admin.list_topics()


def tls_broker(certificates: Certificates) -> Broker:
    return Broker(
        {
            "listeners": "SSL://127.0.0.1:0",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": certificates.server_store,
        }
    )


def scram_server(password: str) -> ScramServer:
    salted = salted_password("sha256", password.encode(), b"salt", 4096)
    known = {"alice": ScramCredential.of("SCRAM-SHA-256", b"salt", salted, 4096)}
    return ScramServer("SCRAM-SHA-256", known.get, lambda _: None, "server", b"fake")


def connect(broker: Broker) -> socket.socket:
    return socket.create_connection(("127.0.0.1", broker.port), timeout=60)
