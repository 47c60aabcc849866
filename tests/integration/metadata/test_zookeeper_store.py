"""What only the ZooKeeper store must do: parents that nobody sees, and servers older than 3.6."""

from __future__ import annotations

import threading
import uuid
from collections.abc import Iterator

import pytest
from zookeeper_ensemble import ZooKeeperEnsemble

from barnabas.metadata.store import Create, Delete, NodeExistsError, Set

WAIT_SECONDS = 120.0
kazoo_client = pytest.importorskip("kazoo.client", reason="kazoo is not installed")
zookeeper_store = pytest.importorskip("barnabas.metadata.stores.zookeeper")


@pytest.fixture
def chroot() -> str:
    return f"/{uuid.uuid4().hex}/kafka"


@pytest.fixture
def store(zookeeper: ZooKeeperEnsemble, chroot: str) -> Iterator[zookeeper_store.ZooKeeperStore]:
    store = open_store(zookeeper, chroot)
    yield store
    store.close()


@pytest.fixture
def raw(zookeeper: ZooKeeperEnsemble) -> Iterator[kazoo_client.KazooClient]:
    client = kazoo_client.KazooClient(one_node(zookeeper))
    client.start()
    yield client
    client.stop()
    client.close()


def one_node(zookeeper: ZooKeeperEnsemble) -> str:
    """The same for everybody: another node may not have what was written through the first one yet."""
    return zookeeper.addresses.split(",")[0]


def open_store(zookeeper: ZooKeeperEnsemble, chroot: str) -> zookeeper_store.ZooKeeperStore:
    host, _, port = one_node(zookeeper).partition(":")
    store = zookeeper_store.ZooKeeperStore([(host, int(port))], chroot)
    store.open()
    return store


def test_parents_come_and_go_with_their_children(
    store: zookeeper_store.ZooKeeperStore, raw: kazoo_client.KazooClient, chroot: str
) -> None:
    store.multi([Create("/t", b"1"), Create("/t/p/0/state"), Create("/t/p/1/state")])
    assert raw.get_children(f"{chroot}/t/p") == ["0", "1"] and raw.get(f"{chroot}/t/p")[0] is None
    assert store.children("/t") == [] and store.children("/t/p/1") == ["state"]
    store.delete("/t/p/0/state")
    assert raw.get_children(f"{chroot}/t/p") == ["1"]
    store.multi([Delete("/t/p/1/state"), Delete("/t")])
    assert raw.exists(f"{chroot}/t") is None and raw.exists(chroot) is not None


def test_a_parent_that_vanished_is_made_again(
    store: zookeeper_store.ZooKeeperStore, raw: kazoo_client.KazooClient, chroot: str
) -> None:
    store.create("/a/b/c")
    raw.delete(f"{chroot}/a", recursive=True)
    store.create("/a/b/d")
    assert store.children("/a/b") == ["d"]
    raw.create(f"{chroot}/a/x", makepath=True)
    store.multi([Delete("/a/b/d")])
    assert raw.get_children(f"{chroot}/a") == ["x"]


def test_nodes_that_kafka_made_without_data_are_parents(
    store: zookeeper_store.ZooKeeperStore, raw: kazoo_client.KazooClient, chroot: str
) -> None:
    raw.ensure_path(chroot)
    raw.create(f"{chroot}/brokers", None)
    store.create("/brokers/ids/1", b"1")
    with pytest.raises(NodeExistsError):
        store.create("/brokers")
    assert store.get("/brokers") is None and sorted(store.scan("/").nodes) == ["/brokers/ids/1"]


def test_servers_without_recursive_watches_and_reads_in_one_request(
    zookeeper: ZooKeeperEnsemble, store: zookeeper_store.ZooKeeperStore, chroot: str
) -> None:
    """As before ZooKeeper 3.6, which tells so when it is asked."""
    other = open_store(zookeeper, chroot)
    other._connection.has_recursive_watches = False
    other._connection._has_multi_read = False
    paths = [f"/ids/{number}" for number in range(30)]
    store.multi([Create("/head", b"0"), Create("/ids"), *(Create(path, path.encode()) for path in paths)])
    assert sorted(other.scan("/ids").nodes) == sorted(["/ids", *paths])
    assert [node and node.data for node in other.get_many(["/head", "/none"])] == [b"0", None]
    woken = threading.Event()
    for path in ("/head", "/ids", "/controller"):
        other.watch(path, woken.set)
    assert woken.wait(WAIT_SECONDS)
    changes = (
        *((Set("/head", b"%d" % number),) for number in range(3)),
        *((Create(f"/ids/9{number}"),) for number in range(3)),
        (Delete("/ids/0"),),
        (Create("/controller", b"1"),),
        (Set("/controller", b"2"),),
        (Delete("/controller"),),
    )
    for change in changes:
        woken.clear()
        store.multi(change)
        assert woken.wait(WAIT_SECONDS), change
    other.close()
