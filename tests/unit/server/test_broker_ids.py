"""The id of a broker that was given none."""

from pathlib import Path

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.errors import StorageError
from barnabas.server.broker_ids import NoBrokerIdError, kept_id, with_broker_id
from barnabas.storage.files import Files
from barnabas.storage.meta_properties import MetaProperties, write_meta_properties


def owned(path: Path, node_id: int) -> str:
    path.mkdir()
    write_meta_properties(Files(), str(path), MetaProperties(node_id, "cluster", path.name))
    return str(path)


def test_new_directories_belong_to_nobody(tmp_path: Path) -> None:
    assert kept_id((str(tmp_path), str(tmp_path / "missing"))) is None


def test_one_directory_is_enough_to_know(tmp_path: Path) -> None:
    (tmp_path / "file").write_bytes(b"")
    unreadable = str(tmp_path / "file" / "below")
    assert kept_id((unreadable, str(tmp_path), owned(tmp_path / "a", 1004))) == 1004
    with pytest.raises(StorageError, match="below"):
        kept_id((unreadable, str(tmp_path)))


def test_directories_of_different_nodes(tmp_path: Path) -> None:
    with pytest.raises(StorageError, match=r"a to node 1, .*b to node 2"):
        kept_id((owned(tmp_path / "a", 1), owned(tmp_path / "b", 2)))


def test_damaged_properties_are_not_replaced_by_a_new_id(tmp_path: Path) -> None:
    (tmp_path / "meta.properties").write_text("version=1\n")
    with pytest.raises(StorageError, match="missing"):
        kept_id((str(tmp_path),))


def test_the_store_is_not_needed_for_an_id_that_is_kept(tmp_path: Path) -> None:
    config = BrokerConfig.parse({"log.dirs": owned(tmp_path / "a", 1004), "listeners": "PLAINTEXT://127.0.0.1:0"})
    found = with_broker_id(config, "etcd://127.0.0.1:1")
    assert (found.node_id, found.broker_id, found.given["node.id"]) == (1004, 1004, "1004")


def test_a_new_one_comes_from_the_store(tmp_path: Path) -> None:
    given = {"log.dirs": str(tmp_path), "listeners": "PLAINTEXT://127.0.0.1:0", "reserved.broker.max.id": "20"}
    store = f"sqlite:{tmp_path / 'store'}"
    assert [with_broker_id(BrokerConfig.parse(given), store).node_id for _ in range(2)] == [21, 22]


def test_an_engine_that_is_away(tmp_path: Path) -> None:
    given = {
        "log.dirs": str(tmp_path),
        "listeners": "PLAINTEXT://127.0.0.1:0",
        "barnabas.metadata.connection.timeout.ms": "100",
        "barnabas.metadata.request.timeout.ms": "100",
    }
    with pytest.raises(NoBrokerIdError, match=r"127\.0\.0\.1:1"):
        with_broker_id(BrokerConfig.parse(given), "etcd://127.0.0.1:1")
