"""A metadata store is chosen by the text of its location."""

from pathlib import Path

import pytest

from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import UnknownStoreError, file_at, parse_engine, store_at
from barnabas.metadata.stores.etcd import EtcdStore
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.metadata.stores.sqlite import SqliteStore


@pytest.mark.parametrize("kind", ["", "sqlite:"])
def test_a_path_is_an_sqlite_file(kind: str, tmp_path: Path) -> None:
    location = f"{kind}{tmp_path}/metadata.db"
    store = store_at(location)
    assert isinstance(store, SqliteStore)
    store.open()
    store.create("/node")
    store.close()
    assert file_at(location) == tmp_path / "metadata.db"
    assert (tmp_path / "metadata.db").exists()


def test_a_path_object_is_never_a_kind() -> None:
    assert file_at(Path("etcd:here")) == Path("etcd:here")


def test_memory() -> None:
    assert isinstance(store_at("memory:"), MemoryStore)
    assert file_at("memory:") is None


def test_an_engine_has_hosts_a_prefix_and_a_login() -> None:
    addresses, prefix, options = parse_engine("etcd", "//me:p%40ss@a:1,[::1]:2,c/kafka/", 2379, EngineOptions())
    assert addresses == (("a", 1), ("::1", 2), ("c", 2379)) and prefix == "/kafka"
    assert (options.username, options.password) == ("me", "p@ss")
    assert "p@ss" not in repr(options)
    addresses, prefix, options = parse_engine("etcd", "//a", 2379, EngineOptions(username="set"))
    assert (addresses, prefix, options.username) == ((("a", 2379),), "", "set")
    assert isinstance(store_at("etcd://a,b/p"), EtcdStore) and file_at("etcd://a/p") is None


@pytest.mark.parametrize(
    "location", ["consul:host", "memory:here", "sqlite:", "etcd:h:1", "etcd://", "zookeeper://h:x/p"]
)
def test_what_names_no_store_is_rejected(location: str) -> None:
    with pytest.raises(UnknownStoreError, match="metadata store"):
        store_at(location)
