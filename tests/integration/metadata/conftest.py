"""Real ensembles of the metadata engines, started once for all tests that use them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper


@pytest.fixture(scope="session")
def etcd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EtcdEnsemble]:
    reason = why_no_etcd()
    if reason:
        pytest.skip(reason)
    with EtcdEnsemble(tmp_path_factory.mktemp("etcd")) as ensemble:
        yield ensemble


@pytest.fixture(scope="session")
def zookeeper(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    reason = why_no_zookeeper()
    if reason:
        pytest.skip(reason)
    with ZooKeeperEnsemble(tmp_path_factory.mktemp("zookeeper")) as ensemble:
        yield ensemble
