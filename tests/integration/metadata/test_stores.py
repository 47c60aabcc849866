"""One suite for every metadata store: what a tree with versions, sessions and watches must do."""

import threading
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from uncertain_store import UncertainStore

from barnabas.metadata.registry import store_at
from barnabas.metadata.store import (
    BadVersionError,
    Check,
    Create,
    Delete,
    MetadataStore,
    NodeExistsError,
    NoNodeError,
    SessionExpiredError,
    Set,
)
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.metadata.stores.sqlite import SqliteStore

WAIT_SECONDS = 120
MakeStore = Callable[[], MetadataStore]


@pytest.fixture(params=["memory", "uncertain", "sqlite", "etcd", "zookeeper"])
def make_store(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[MakeStore]:
    """Each call opens another session with the same nodes."""
    opened: list[MetadataStore] = []
    kind = request.param
    tree = MemoryTree()
    location = ""
    if kind in ("etcd", "zookeeper"):
        location = request.getfixturevalue(kind).location(f"/{uuid.uuid4().hex}")

    def make() -> MetadataStore:
        store: MetadataStore
        if kind == "memory":
            store = MemoryStore(tree)
        elif kind == "uncertain":
            store = UncertainStore(tree)
        elif kind == "sqlite":
            store = SqliteStore(tmp_path / "metadata.db", poll_interval_ms=10)
        else:
            store = store_at(location)
        store.open()
        opened.append(store)
        return store

    yield make
    for store in opened:
        store.close()


@pytest.fixture
def store(make_store: MakeStore) -> MetadataStore:
    return make_store()


def test_a_new_node_has_its_data_and_version_0(store: MetadataStore) -> None:
    store.create("/a", b"one")
    node = store.get("/a")
    assert node is not None
    assert (node.data, node.version, node.owner) == (b"one", 0, 0)
    assert store.get("/b") is None


def test_a_node_needs_no_parent(store: MetadataStore) -> None:
    created = store.create("/a/b")
    node = store.get("/a/b")
    assert node is not None and node.created == node.modified == created
    assert store.get("/a") is None and store.children("/") == []
    with pytest.raises(NodeExistsError):
        store.create("/a/b")


def test_set_if_version(store: MetadataStore) -> None:
    store.create("/a", b"0")
    assert store.set("/a", b"1", 0) == 1
    with pytest.raises(BadVersionError):
        store.set("/a", b"2", 0)
    assert store.set("/a", b"3") == 2
    with pytest.raises(NoNodeError):
        store.set("/b", b"")


def test_delete_if_version(store: MetadataStore) -> None:
    store.create("/a")
    with pytest.raises(BadVersionError):
        store.delete("/a", 5)
    store.delete("/a", 0)
    assert store.get("/a") is None
    with pytest.raises(NoNodeError):
        store.delete("/a")


def test_children_are_sorted_and_direct(store: MetadataStore) -> None:
    for path in ("/t", "/t/b", "/t/a", "/t/a/x", "/tt"):
        store.create(path)
    assert store.children("/t") == ["a", "b"]
    assert store.children("/t/b") == []
    assert store.children("/nowhere") == []
    assert store.children("/") == ["t", "tt"]


def test_a_scan_has_the_node_and_all_below(store: MetadataStore) -> None:
    for path in ("/t", "/t-", "/t/b", "/t/a", "/t/a/x/y", "/t0", "/u"):
        store.create(path, path.encode())
    found = store.scan("/t")
    assert sorted(found.nodes) == ["/t", "/t/a", "/t/a/x/y", "/t/b"]
    assert found.nodes["/t/a/x/y"] == store.get("/t/a/x/y")
    assert store.scan("/none").nodes == {}
    assert len(store.scan("/").nodes) == 7
    assert store.create("/later") > found.revision >= max(node.modified for node in found.nodes.values())


def test_get_many_keeps_the_order(store: MetadataStore) -> None:
    store.create("/a", b"1")
    store.create("/b", b"2")
    found = store.get_many(["/b", "/none", "/a"])
    assert [node and node.data for node in found] == [b"2", None, b"1"]


def test_transaction_numbers_grow(store: MetadataStore) -> None:
    store.create("/a")
    store.create("/b")
    store.set("/a", b"x")
    a, b = store.get_many(["/a", "/b"])
    assert a is not None and b is not None
    assert a.created < b.created == b.modified < a.modified


def test_data_may_be_any_bytes_and_empty(store: MetadataStore) -> None:
    everything = bytes(range(256))
    store.multi([Create("/e", b""), Create("/all", everything), Create("/Übergröße-主題", b"1")])
    assert [node and node.data for node in store.get_many(["/e", "/all", "/Übergröße-主題"])] == [b"", everything, b"1"]
    assert store.children("/") == ["all", "e", "Übergröße-主題"]
    store.set("/all", b"")
    node = store.get("/all")
    assert node is not None and node.data == b""


def test_large_multis_and_scans(store: MetadataStore) -> None:
    """As many operations as the store says, and more nodes than one page or request has."""
    paths = [f"/many/{number // 100}/{number}" for number in range(3000)]
    count = min(store.multi_limit, 1000)
    for start in range(0, len(paths), count):
        store.multi([Create(path, path.encode()) for path in paths[start : start + count]])
    found = store.scan("/many").nodes
    assert {path: node.data for path, node in found.items()} == {path: path.encode() for path in paths}
    assert [node and node.data for node in store.get_many(paths)] == [path.encode() for path in paths]
    for start in range(0, len(paths), count):
        store.multi([Delete(path, 0) for path in paths[start : start + count]])
    assert store.scan("/").nodes == {}


def test_multi_is_all_or_nothing(store: MetadataStore) -> None:
    for path in ("/a", "/d", "/e"):
        store.create(path, b"old")
    with pytest.raises(BadVersionError) as caught:
        store.multi([Create("/b"), Set("/a", b"new"), Create("/b/c"), Delete("/e"), Check("/d", 7)])
    assert caught.value.path == "/d"
    node = store.get("/a")
    assert node is not None and (node.data, node.version) == (b"old", 0)
    assert store.get("/b") is None and store.children("/") == ["a", "d", "e"]
    revision = store.multi([Check("/d", 0), Create("/b"), Set("/a", b"new", 0), Create("/b/c"), Delete("/e", 0)])
    assert store.children("/b") == ["c"] and store.children("/") == ["a", "b", "d"]
    changed, untouched = store.get_many(["/a", "/d"])
    assert changed is not None and untouched is not None
    assert changed.modified == revision > untouched.modified
    with pytest.raises(NodeExistsError):
        store.multi([Set("/a", b"newer"), Create("/b")])


def test_a_multi_has_each_path_once(store: MetadataStore) -> None:
    with pytest.raises(ValueError, match="twice"):
        store.multi([Create("/a"), Set("/a", b"1")])
    assert store.get("/a") is None


def test_ephemeral_nodes_die_with_their_session(make_store: MakeStore) -> None:
    one, two = make_store(), make_store()
    one.create("/lives")
    one.create("/dies", ephemeral=True)
    node = two.get("/dies")
    assert node is not None and node.owner == one.session_id != two.session_id
    one.close()
    assert two.children("/") == ["lives"]


def test_sessions_see_each_others_writes_and_conflicts(make_store: MakeStore) -> None:
    one, two = make_store(), make_store()
    one.create("/a")
    two.set("/a", b"two", 0)
    with pytest.raises(BadVersionError):
        one.set("/a", b"one", 0)


def test_a_watch_hears_of_changes_at_and_below_its_path(make_store: MakeStore) -> None:
    one, two = make_store(), make_store()
    one.create("/a")
    heard = threading.Event()
    end = one.watch("/a", heard.set)
    two.create("/a/b")
    assert heard.wait(WAIT_SECONDS)
    heard.clear()
    one.set("/a", b"mine")
    assert heard.wait(WAIT_SECONDS)
    end()
    end()


def test_a_watch_hears_that_another_session_ended(make_store: MakeStore) -> None:
    one, two = make_store(), make_store()
    two.create("/b", ephemeral=True)
    heard = threading.Event()
    one.watch("/b", heard.set)
    two.close()
    assert heard.wait(WAIT_SECONDS)


def test_an_ended_session_can_write_nothing(make_store: MakeStore) -> None:
    store = make_store()
    store.close()
    with pytest.raises(SessionExpiredError):
        store.create("/a")


def test_concurrent_writers_lose_nothing(make_store: MakeStore) -> None:
    first = make_store()
    first.create("/n", b"0")

    def add_ten(store: MetadataStore) -> None:
        done = 0
        while done < 10:
            node = store.get("/n")
            assert node is not None
            try:
                store.set("/n", str(int(node.data) + 1).encode(), node.version)
                done += 1
            except BadVersionError:
                pass

    threads = [threading.Thread(target=add_ten, args=(make_store(),)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    node = first.get("/n")
    assert node is not None and (node.data, node.version) == (b"30", 30)
