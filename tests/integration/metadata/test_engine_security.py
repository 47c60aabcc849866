"""Login and TLS of the engines."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from certificates import KEY_PASSWORD, Certificates, why_no_certificates
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

from barnabas.metadata.engine_options import EngineOptions, EngineTls
from barnabas.metadata.registry import store_at
from barnabas.metadata.store import MetadataStoreError, StoreUnavailableError

QUICK = 1500


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    reason = why_no_certificates()
    if reason:
        pytest.skip(reason)
    return Certificates(tmp_path_factory.mktemp("certificates"))


@pytest.fixture(scope="module")
def etcd_with_tls(certificates: Certificates, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdEnsemble]:
    reason = why_no_etcd()
    if reason:
        pytest.skip(reason)
    with EtcdEnsemble(tmp_path_factory.mktemp("etcd"), 1, certificates.server_store) as ensemble:
        yield ensemble


@pytest.fixture(scope="module")
def zookeeper_with_tls(
    certificates: Certificates, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[ZooKeeperEnsemble]:
    reason = why_no_zookeeper()
    if reason:
        pytest.skip(reason)
    settings = {
        "ssl.keyStore.location": str(certificates.server_store),
        "ssl.trustStore.location": str(certificates.authority),
        "ssl.clientAuth": "need",
    }
    with ZooKeeperEnsemble(tmp_path_factory.mktemp("zookeeper"), 1, settings) as ensemble:
        yield ensemble


def round_trip(location: str, options: EngineOptions) -> None:
    store = store_at(location, options)
    store.open()
    try:
        store.create("/e", b"1", ephemeral=True)
        node = store.get("/e")
        assert node is not None and node.data == b"1"
    finally:
        store.close()


def test_etcd_by_tls(etcd_with_tls: EtcdEnsemble, certificates: Certificates) -> None:
    location = f"etcd://127.0.0.1:{etcd_with_tls.nodes[0].secure_port}/tls"
    round_trip(location, EngineOptions(tls=EngineTls(str(certificates.authority))))
    for tls in (EngineTls(str(certificates.other_authority)), None):
        with pytest.raises(MetadataStoreError):
            round_trip(location, EngineOptions(tls=tls, connect_timeout_ms=QUICK))


def test_zookeeper_by_tls_with_a_certificate(zookeeper_with_tls: ZooKeeperEnsemble, certificates: Certificates) -> None:
    location = f"zookeeper://127.0.0.1:{zookeeper_with_tls.nodes[0].secure_port}/tls"
    trusted, mine = str(certificates.authority), str(certificates.client_store)
    encrypted = str(certificates.encrypted_client_store)
    round_trip(location, EngineOptions(tls=EngineTls(trusted, mine, mine)))
    round_trip(location, EngineOptions(tls=EngineTls(trusted, encrypted, encrypted, KEY_PASSWORD)))
    for tls in (EngineTls(str(certificates.other_authority), mine, mine), EngineTls(trusted), None):
        with pytest.raises(StoreUnavailableError):
            round_trip(location, EngineOptions(tls=tls, connect_timeout_ms=QUICK))


@pytest.mark.parametrize("location", ["etcd://127.0.0.1:1/x", "zookeeper://127.0.0.1:1/x"])
def test_files_that_cannot_be_used_are_named(location: str, certificates: Certificates) -> None:
    if location.startswith("zookeeper"):
        pytest.importorskip("kazoo", reason="kazoo is not installed")
    encrypted = str(certificates.encrypted_client_store)
    for tls in (EngineTls("missing.pem"), EngineTls(None, encrypted, encrypted)):
        with pytest.raises(MetadataStoreError, match=r"missing\.pem|encrypted"):
            round_trip(location, EngineOptions(tls=tls))


def test_etcd_with_a_login(tmp_path: Path) -> None:
    reason = why_no_etcd()
    if reason:
        pytest.skip(reason)
    with EtcdEnsemble(tmp_path, 1) as ensemble:
        node = ensemble.nodes[0]
        node.call("auth/user/add", {"name": "root", "password": "r@ot"})
        node.call("auth/user/grant", {"user": "root", "role": "root"})
        node.call("auth/enable", {})
        round_trip(ensemble.location("/login", login="root:r%40ot@"), EngineOptions())
        round_trip(ensemble.location("/login"), EngineOptions(username="root", password="r@ot"))
        for options in (EngineOptions(), EngineOptions(username="root", password="wrong")):
            with pytest.raises(MetadataStoreError):
                round_trip(ensemble.location("/login"), options)


def test_zookeeper_with_a_login_that_others_lack(zookeeper: ZooKeeperEnsemble) -> None:
    mine = EngineOptions(username="me", password="secret", restrict_access=True)
    store = store_at(zookeeper.location("/login"), mine)
    store.open()
    store.create("/a", b"1")
    stranger = store_at(zookeeper.location("/login"))
    stranger.open()
    node = stranger.get("/a")
    assert node is not None and node.data == b"1"
    with pytest.raises(MetadataStoreError):
        stranger.set("/a", b"2")
    again = store_at(zookeeper.location("/login", login="me:secret@"))
    again.open()
    assert again.set("/a", b"3") == 1
    for each in (store, stranger, again):
        each.close()
