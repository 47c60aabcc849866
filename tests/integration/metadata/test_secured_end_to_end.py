"""Everything secured at once: the engine with a login, TLS and SCRAM between brokers and for clients, access rules."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest
from engine_ensemble import EngineEnsemble
from etcd_ensemble import EtcdEnsemble, why_no_etcd
from secured_cluster import USERS
from secured_processes import SecuredProcesses
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

from barnabas import Admin, Producer
from barnabas.client.admin.types import AclBinding, AclOperation, AclPermission, ResourceType
from barnabas.errors import ErrorCode, KafkaError

pytestmark = pytest.mark.soak
PATIENCE_S = 120
Engine = Callable[[Path], AbstractContextManager[tuple[EngineEnsemble[Any], dict[str, str]]]]
ENGINE = {
    "barnabas.metadata.username": "root",
    "barnabas.metadata.password": "engine-secret-4715",
    "barnabas.metadata.session.timeout.ms": "10000",
}


@contextmanager
def etcd(directory: Path) -> Iterator[tuple[EngineEnsemble[Any], dict[str, str]]]:
    reason = why_no_etcd()
    if reason:
        pytest.skip(reason)
    with EtcdEnsemble(directory, 1) as ensemble:
        node = ensemble.nodes[0]
        node.call("auth/user/add", {"name": "root", "password": ENGINE["barnabas.metadata.password"]})
        node.call("auth/user/grant", {"user": "root", "role": "root"})
        node.call("auth/enable", {})
        yield ensemble, ENGINE


@contextmanager
def zookeeper(directory: Path) -> Iterator[tuple[EngineEnsemble[Any], dict[str, str]]]:
    reason = why_no_zookeeper()
    if reason:
        pytest.skip(reason)
    with ZooKeeperEnsemble(directory, 1) as ensemble:
        yield ensemble, {**ENGINE, "zookeeper.set.acl": "true"}


@pytest.mark.parametrize("engine", [etcd, zookeeper])
def test_a_fully_secured_cluster(engine: Engine, tmp_path: Path) -> None:
    with (
        engine(tmp_path / "engine") as (ensemble, settings),
        SecuredProcesses(tmp_path / "cluster", "scram", ensemble.location("/secured"), settings) as cluster,
    ):
        use(cluster, ensemble)
        printed = "".join(broker.output.read_text() for broker in cluster.brokers.values())
    assert all(secret not in printed for secret in (*USERS.values(), ENGINE["barnabas.metadata.password"]))


def use(cluster: SecuredProcesses, ensemble: EngineEnsemble[Any]) -> None:
    alice = cluster.security.client_options("alice", "SCRAM-SHA-512", None)
    cluster.admin.create_topic("orders", partitions=1, replication_factor=3)
    cluster.known_topics.add("orders")
    cluster.wait_until_in_sync()
    with Producer(cluster.bootstrap, acks="all", **alice) as producer:
        with pytest.raises(KafkaError) as refused:
            producer.send("orders", b"0").result(PATIENCE_S)
        assert refused.value.code is ErrorCode.TOPIC_AUTHORIZATION_FAILED
    cluster.admin.create_acls([allow(AclOperation.WRITE)])
    cluster.wait_until(lambda: write(cluster, alice, b"1"), "a write that is allowed")
    killed = cluster.who_is("leader", "orders")
    cluster.kill(killed)
    cluster.wait_until(lambda: write(cluster, alice, b"2"), "a write after a failover")
    cluster.restart(killed)
    cluster.wait_until_in_sync()
    ensemble.nodes[0].freeze()
    try:
        assert write(cluster, alice, b"3")  # a new login: the users are in every broker's memory
    finally:
        ensemble.nodes[0].thaw()
    with Admin(cluster.bootstrap, **cluster.options) as admin:
        cluster.wait_until(lambda: creates(admin), "a new topic once the engine is back")


def allow(operation: AclOperation) -> AclBinding:
    return AclBinding(
        resource_type=ResourceType.TOPIC,
        resource_name="orders",
        principal="User:alice",
        operation=operation,
        permission=AclPermission.ALLOW,
    )


def write(cluster: SecuredProcesses, options: dict[str, str], value: bytes) -> bool:
    with Producer(cluster.bootstrap, acks="all", enable_idempotence=False, **options) as producer:  # type: ignore[arg-type]
        producer.send("orders", value).result(PATIENCE_S)
    return True


def creates(admin: Admin) -> bool:
    admin.create_topic("later", partitions=1, replication_factor=3)
    return True
