"""What may be wrong between brokers that log in to each other: passwords, certificates, and both changed meanwhile."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest
from eventually import eventually
from identity_provider import CLIENT_ID, CLIENT_SECRET, IdentityProvider
from secured_cluster import KINDS, USERS, secured_cluster

from barnabas import Admin, Producer
from barnabas.certificates import Authority
from barnabas.client.admin.types import ScramMechanism, ScramUpsertion
from barnabas.server.broker import StartError
from barnabas.testing import Broker, Cluster
from barnabas.testing.security import HOSTS, Security

PATIENCE_S = 60
SCRAM = ScramMechanism.SCRAM_SHA_512
PLAIN_JAAS = "listener.name.sasl_ssl.plain.sasl.jaas.config"
SCRAM_JAAS = "listener.name.sasl_ssl.scram-sha-512.sasl.jaas.config"


def another_broker(cluster: Cluster, settings: dict[str, str], security: Security | None = None) -> Broker:
    own = cluster._security if security is None else security
    return Broker(
        {**cluster.brokers[0]._settings, **settings, "node.id": "7"}, tree=cluster.brokers[0]._tree, security=own
    )


def members(cluster: Cluster) -> set[int]:
    return set(cluster.brokers[0]._running().cluster.image.brokers)


def join(cluster: Cluster, broker: Broker) -> str:
    """Why it does not join."""
    with pytest.raises(StartError) as refused:
        broker.start()
    assert members(cluster) == set(range(len(cluster.brokers)))
    return str(refused.value)


@pytest.mark.parametrize(
    ("settings", "why"),
    [
        ({SCRAM_JAAS: 'ScramLoginModule required username="replica" password="wrong-0815";'}, "is not the one that"),
        ({SCRAM_JAAS: 'ScramLoginModule required username="nobody" password="x-0815";'}, "nobody, who has no password"),
    ],
)
def test_a_broker_whose_password_its_own_listener_would_refuse(settings: dict[str, str], why: str) -> None:
    with secured_cluster("scram", brokers=1) as cluster:
        text = join(cluster, another_broker(cluster, settings))
        assert why in text and "0815" not in text


def test_a_broker_whose_password_the_others_refuse(caplog: pytest.LogCaptureFixture) -> None:
    with secured_cluster("plain", brokers=2) as cluster:
        jaas = 'PlainLoginModule required username="broker" password="wrong-0815" user_broker="wrong-0815";'
        text = join(cluster, another_broker(cluster, {PLAIN_JAAS: jaas}))
        assert "cannot join the cluster" in text and "refused the login by PLAIN" in text and "0815" not in text
        assert "0815" not in caplog.text


def test_a_broker_with_the_certificate_of_a_stranger(tmp_path: Path) -> None:
    stranger = Authority.create("stranger")
    store, trust = tmp_path / "store.pem", tmp_path / "trust.pem"
    store.write_text(stranger.issue("broker", HOSTS).store)
    trust.write_text(stranger.pair.certificate)
    with secured_cluster("certificates", brokers=1) as cluster:
        named = {"inter.broker.listener.name": "SSL"}
        text = join(cluster, another_broker(cluster, {**named, "ssl.keystore.location": str(store)}))
        assert "not accepted by its own listener's authorities" in text
        text = join(
            cluster,
            another_broker(cluster, {"ssl.keystore.location": str(store), "ssl.truststore.location": str(trust)}),
        )
        assert "its certificate is not accepted" in text
        own = cluster._security
        assert own is not None
        both = tmp_path / "both.pem"
        both.write_text(stranger.pair.certificate + Path(own.authority_file).read_text())
        text = join(
            cluster,
            another_broker(cluster, {"ssl.keystore.location": str(store), "ssl.truststore.location": str(both)}),
        )
        # The others refuse it: their alert arrives, or only the end of the connection.
        assert "it ended the TLS connection" in text or "after the TLS handshake" in text


def test_a_host_name_that_is_not_in_the_certificate(tmp_path: Path) -> None:
    security = Security(["SSL"])
    store = tmp_path / "store.pem"
    assert security._authority is not None
    store.write_text(security._authority.issue("broker", ["elsewhere.example"]).store)
    settings = {"ssl.keystore.location": str(store), "inter.broker.listener.name": "SSL"}
    try:
        with Broker(settings, security=security) as broker:
            tree = broker._tree
            strict = Broker({**settings, "node.id": "1"}, tree=tree, security=security)
            with pytest.raises(StartError, match="IP address mismatch"):
                strict.start()
            unchecked = {"listener.name.ssl.ssl.endpoint.identification.algorithm": "", "node.id": "1"}
            with Broker({**settings, **unchecked}, tree=tree, security=security) as lenient:
                assert set(lenient._running().cluster.image.brokers) == {0, 1}
    finally:
        security.close()


def cut_for_a_moment(cluster: Cluster, number: int) -> None:
    """Connections end; those that follow must log in."""
    for other in range(len(cluster.brokers)):
        if other != number:
            cluster.partition(number, other)
    cluster.heal()


def errors(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.name == "barnabas.server.link_security"]


def in_sync(cluster: Cluster, topic: str) -> bool:
    images = [broker._running().cluster.image for broker in cluster.brokers]
    partitions = [image.partition(topic, 0) for image in images]
    return all(each is not None and len(each.in_sync_replicas) == len(images) for each in partitions)


def log_end_offsets(cluster: Cluster, topic: str) -> list[int]:
    return [broker._running().replicas.find(topic, 0).log.log_end_offset for broker in cluster.brokers]


def test_a_certificate_that_expires_and_is_replaced(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with secured_cluster("certificates", brokers=2) as cluster:
        security = cluster._security
        assert security is not None and security._authority is not None
        store = Path(security._settings()["ssl.keystore.location"])
        valid = store.read_text()
        options = cluster.client_options("admin")
        with Admin(cluster.bootstrap, **options) as admin, Producer(cluster.bootstrap, acks=1, **options) as producer:
            admin.create_topic("orders", partitions=1, replication_factor=2)
            eventually(lambda: in_sync(cluster, "orders"), timeout=PATIENCE_S)
            producer.send("orders", b"1").result(PATIENCE_S)
            eventually(lambda: log_end_offsets(cluster, "orders") == [1, 1], timeout=PATIENCE_S)
            store.write_text(security._authority.issue("broker", HOSTS, days=0).store)

            def expired() -> bool:
                cut_for_a_moment(cluster, 0)
                told = [text for text in errors(caplog) if "certificate has expired" in text]
                assert len(told) == len(set(told)), told  # once for each address
                return len(told) == 2

            eventually(expired, timeout=PATIENCE_S)
            cut_for_a_moment(cluster, 0)
            producer.send("orders", b"2").result(PATIENCE_S)  # over the connection that it has
            assert sorted(log_end_offsets(cluster, "orders")) == [1, 2]
            store.write_text(valid)
            eventually(lambda: log_end_offsets(cluster, "orders") == [2, 2], timeout=PATIENCE_S)
            assert any("accept each other again" in text for text in errors(caplog))
        with Producer(cluster.bootstrap, acks="all", **options) as producer:
            assert producer.send("orders", b"3").result(PATIENCE_S).offset == 2


def set_password(admin: Admin, password: str) -> None:
    admin.alter_user_scram_credentials([ScramUpsertion(user="replica", mechanism=SCRAM, password=password)])


def test_a_password_that_changes_while_the_cluster_runs(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with secured_cluster("scram", brokers=2) as cluster:
        options = cluster.client_options("admin", mechanism="PLAIN")
        with Admin(cluster.bootstrap, **options) as admin:
            admin.create_topic("orders", partitions=1, replication_factor=2)
            set_password(admin, "changed-4714")
            cut_for_a_moment(cluster, 0)
            eventually(lambda: any("invalid credentials" in text for text in errors(caplog)), timeout=PATIENCE_S)
            assert admin.list_topics() is not None  # nobody else notices
            set_password(admin, USERS["replica"])
        with Producer(cluster.bootstrap, acks="all", **options) as producer:
            producer.send("orders", b"1").result(PATIENCE_S)
        assert all(secret not in caplog.text for secret in (*USERS.values(), "changed-4714"))


@pytest.mark.parametrize("kind", KINDS)
def test_a_cluster_restarts_one_by_one(kind: str) -> None:
    with secured_cluster(kind, brokers=2) as cluster:
        for number in range(2):
            cluster.restart(number)
        assert members(cluster) == {0, 1}


def test_brokers_log_in_with_tokens_of_an_identity_provider() -> None:
    with IdentityProvider() as provider:
        provider.life_s = 10
        settings = {
            **provider.broker_settings(),
            "sasl.mechanism.inter.broker.protocol": "OAUTHBEARER",
            "sasl.oauthbearer.token.endpoint.url": f"{provider.url}/token",
            "sasl.oauthbearer.client.credentials.client.id": CLIENT_ID,
            "sasl.oauthbearer.client.credentials.client.secret": CLIENT_SECRET,
        }
        with Cluster(2, settings) as cluster:
            options = {
                "security_protocol": "SASL_PLAINTEXT",
                "sasl_mechanism": "OAUTHBEARER",
                "sasl_oauthbearer_token_callback": provider.token,
            }
            with Admin(cluster.bootstrap, **options) as admin:  # type: ignore[arg-type]
                admin.create_topic("orders", partitions=1, replication_factor=2, config={"min.insync.replicas": "2"})
            with Producer(cluster.bootstrap, acks="all", **options) as producer:  # type: ignore[arg-type]
                producer.send("orders", b"1").result(PATIENCE_S)
            assert provider.token_reads <= 4  # one for all links of a broker, as long as it lasts
            sessions = [each.session for broker in cluster.brokers for each in broker._running().connections]
            assert CLIENT_ID in {each.principal.name for each in sessions if each is not None}
            wrong = {**settings, "sasl.oauthbearer.client.credentials.client.secret": "wrong-0815"}
            broker = Broker({**wrong, "node.id": "7"}, tree=cluster.brokers[0]._tree)
            text = join(cluster, broker)
            assert "no token for OAUTHBEARER" in text and "0815" not in text
