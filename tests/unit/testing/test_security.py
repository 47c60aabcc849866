"""Secured listeners for tests in one line: throw-away certificates, users, and the options of a client."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from barnabas import Admin, Producer
from barnabas.certificates import Authority, KeyPair
from barnabas.client.errors import AuthenticationError
from barnabas.config.jaas import parse_entry, quoted
from barnabas.testing import Broker, Cluster

USERS = {"alice": 'se"cr\\et, ü', "bob": "other"}


@pytest.mark.parametrize("mechanism", ["PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512"])
def test_users_log_in_by_every_mechanism_over_tls(mechanism: str) -> None:
    with Broker(listeners=["SASL_SSL"], users=USERS) as broker:
        options = broker.client_options("alice", mechanism=mechanism)
        with Producer(broker.bootstrap, **options) as producer:
            assert producer.send("orders", b"1").result(30).offset == 0
        assert [record.value for record in broker.records("orders")] == [b"1"]
        with pytest.raises(AuthenticationError), Admin(broker.bootstrap, **{**options, "sasl_password": "no"}) as admin:
            admin.list_topics()


def test_listeners_keep_their_ports_and_users_over_a_restart() -> None:
    with Broker(listeners=["PLAINTEXT", "SASL_PLAINTEXT", "SSL"], users=USERS) as broker:
        before = [broker.address_of(each) for each in ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")]
        assert len(set(before)) == 3
        broker.stop()
        broker.start()
        assert [broker.address_of(each) for each in ("PLAINTEXT", "SASL_PLAINTEXT", "SSL")] == before
        options = broker.client_options("bob", listener="SASL_PLAINTEXT")
        with Admin(broker.address_of("SASL_PLAINTEXT"), **options) as admin:
            assert set(admin.describe_user_scram_credentials()) == set(USERS)
        with Admin(broker.address_of("SSL"), **broker.client_options(listener="SSL")) as admin:
            assert admin.list_topics() is not None


def test_a_user_of_an_ssl_listener_is_a_client_certificate() -> None:
    with Broker({"ssl.client.auth": "required"}, listeners=["SSL"]) as broker:
        with Admin(broker.bootstrap, **broker.client_options("alice")) as admin:
            assert admin.list_topics() is not None
            thread = broker._thread
            assert thread is not None
            names = {str(each.session.principal) for each in thread.call(lambda: thread.broker.connections)}
        assert names == {"User:CN=alice"}


def test_files_are_gone_with_the_broker() -> None:
    with Broker(listeners=["SSL"]) as broker:
        path = Path(broker.authority_file)
        assert path.exists()
    assert not path.parent.exists()


@pytest.mark.parametrize(
    ("listeners", "users", "fault"),
    [(["TLS"], None, "TLS"), ([], None, "none"), (["SASL_SSL"], None, "nobody could log in")],
)
def test_what_makes_no_sense_is_refused(listeners: list[str], users: dict[str, str] | None, fault: str) -> None:
    with pytest.raises(ValueError, match=fault):
        Broker(listeners=listeners, users=users)


@pytest.mark.parametrize("text", ["plain", 'a"b', "back\\slash", 'both\\"', "semi;colon = x", "ü"])
def test_quoted_words_are_read_back(text: str) -> None:
    entry = parse_entry(f"Module required {quoted('user_' + text)}={quoted(text)};")
    assert entry.users == {text: text}


def test_a_certificate_is_for_its_hosts_alone(tmp_path: Path) -> None:
    authority = Authority(Authority.create().pair)
    store = tmp_path / "store.pem"
    store.write_text(authority.issue("broker", ["kafka.example", "127.0.0.1"]).store)
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(store)
    client = ssl.create_default_context(cadata=authority.pair.certificate)
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    assert handshake(client, server, "kafka.example") and handshake(client, server, "127.0.0.1")
    with pytest.raises(ssl.SSLCertVerificationError, match="Hostname mismatch"):
        handshake(client, server, "other.example")
    stranger = ssl.create_default_context(cadata=Authority.create().pair.certificate)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(stranger, server, "kafka.example")


def test_a_key_never_shows_in_a_repr() -> None:
    assert repr(KeyPair("secret", "certificate")) == "KeyPair()"


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, host: str) -> bool:
    """In memory, turn by turn."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    ends = [
        client.wrap_bio(to_client, to_server, server_hostname=host),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    for _ in range(4):
        for end in list(ends):
            try:
                end.do_handshake()
            except ssl.SSLWantReadError:
                continue
            ends.remove(end)
    return not ends


def test_brokers_of_a_secured_cluster_log_in_to_each_other() -> None:
    with Cluster(2, listeners=["SASL_SSL"], users=USERS) as cluster:
        cluster.create_topic("orders")
        with Producer(cluster.bootstrap, acks="all", **cluster.client_options("bob")) as producer:
            producer.send("orders", b"1").result(30)
        assert [record.value for record in cluster.records("orders")] == [b"1"]
        sessions = [each.session for broker in cluster.brokers for each in broker._running().connections]
        assert "User:broker" in {str(each.principal) for each in sessions if each is not None}
