"""Tables as Parquet files: what is in them, and that a replay replaces."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.dataset
import pytest
from table_tasks import table_task as task

from barnabas.pipeline.tables.parquet import FolderError, ParquetTables


def rows(folder: Path, table: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = pyarrow.dataset.dataset(folder / table).to_table().to_pylist()
    return found


def test_columns_have_types_that_never_change(tmp_path: Path) -> None:
    tables = ParquetTables(str(tmp_path))
    tables.write(task("dim_user_info", (b"1", b'{"id":1,"ok":true,"tags":["a"],"x":1.5,"n":null}')), "q", 0)
    tables.write(task("dim_user_info", (b"1", b'{"id":"1","ok":"true","tags":"","x":"1.5","n":"5"}')), "q", 1)
    first, second = sorted((tmp_path / "dim_user_info").iterdir())
    schema = pyarrow.parquet.read_schema(first)
    assert schema == pyarrow.parquet.read_schema(second)
    assert schema.field("id").type == pyarrow.string()
    assert pyarrow.parquet.read_table(first).to_pylist() == [
        {
            "id": "1",
            "ok": "true",
            "tags": '["a"]',
            "x": "1.5",
            "n": None,
            "_key": "1",
            "_partition": 0,
            "_offset": 0,
            "_deleted": False,
        }
    ]


def test_logs_have_figures_and_facts_their_operation(tmp_path: Path) -> None:
    tables = ParquetTables(str(tmp_path))
    tables.write(task("dwd_page_log", (b"m", b'{"mid":"m","during_time":5,"ts":7}'), partition=2), "q", 3)
    assert rows(tmp_path, "dwd_page_log") == [{"mid": "m", "during_time": 5, "ts": 7, "_partition": 2, "_offset": 0}]
    assert [path.name for path in (tmp_path / "dwd_page_log").iterdir()] == ["00000000000000000003-00002.parquet"]
    tables.write(task("dwd_order_info", (b"1", b'{"table":"t","operation":"D","ts":9,"data":{"id":1}}')), "q", 0)
    [fact] = rows(tmp_path, "dwd_order_info")
    assert (fact["id"], fact["_table"], fact["_operation"], fact["_ts"], fact["_key"]) == ("1", "t", "D", 9, "1")


def test_a_replay_replaces_and_other_batches_stay(tmp_path: Path) -> None:
    tables = ParquetTables(str(tmp_path))
    bad = (b"2", b"{")
    tables.write(task("dim_user_info", (b"1", b'{"id":1}'), bad), "q", 0)
    tables.write(task("dim_user_info", (b"1", b'{"id":2}'), bad, first=2), "q", 1)
    tables.write(task("dim_user_info", (b"1", b'{"id":2}'), bad, first=2), "q", 1)
    assert [row["_offset"] for row in rows(tmp_path, "dim_user_info")] == [0, 2]
    assert [row["offset"] for row in rows(tmp_path, "barnabas_rejected")] == [1, 3]
    # As if those records could be understood now, and the others no longer.
    tables.write(task("dim_user_info", (None, b"{}"), (b"2", b'{"id":2}'), first=2), "q", 1)
    assert [row["_offset"] for row in rows(tmp_path, "dim_user_info")] == [0, 3]
    assert [row["offset"] for row in rows(tmp_path, "barnabas_rejected")] == [1, 2]
    tables.write(task("dim_user_info", (b"2", b"{}"), first=2), "q", 1)
    assert [row["offset"] for row in rows(tmp_path, "barnabas_rejected")] == [1]


def test_what_was_rejected_says_all_of_it(tmp_path: Path) -> None:
    ParquetTables(str(tmp_path)).write(task("dwd_page_log", (b"\xff", b"\xfe"), partition=1), "q", 0)
    [found] = rows(tmp_path, "barnabas_rejected")
    reason = found.pop("reason")
    assert reason.startswith("not JSON")
    assert found == {"topic": "dwd_page_log", "partition": 1, "offset": 0, "key": b"\xff", "value": b"\xfe"}
    assert not (tmp_path / "dwd_page_log").exists()


def test_a_write_that_fails_leaves_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tables = ParquetTables(str(tmp_path))
    tables.write(task("dim_user_info", (b"1", b'{"id":1}')), "q", 0)

    def fail(table: Any, sink: Any) -> None:
        sink.write(b"half")
        raise OSError("no space left")

    monkeypatch.setattr("barnabas.pipeline.tables.parquet.parquet.write_table", fail)
    with pytest.raises(OSError, match="no space left"):
        tables.write(task("dim_user_info", (b"1", b'{"id":2}')), "q", 0)
    assert [path.name for path in (tmp_path / "dim_user_info").iterdir()] == ["00000000000000000000-00000.parquet"]
    assert [row["id"] for row in rows(tmp_path, "dim_user_info")] == ["1"]


def test_a_folder_has_one_owner(tmp_path: Path) -> None:
    folder = tmp_path / "a folder #1"
    ParquetTables(str(folder)).prepare("one")
    ParquetTables(str(folder)).prepare("one")
    with pytest.raises(FolderError, match="another checkpoint: use another folder"):
        ParquetTables(str(folder)).prepare("two")


def test_a_folder_that_is_gone_is_not_begun_in_the_middle(tmp_path: Path) -> None:
    with pytest.raises(FolderError, match="delete its progress in the checkpoint"):
        ParquetTables(str(tmp_path)).prepare("one", has_begun=True)
    ParquetTables(str(tmp_path)).prepare("one")
    ParquetTables(str(tmp_path)).prepare("one", has_begun=True)


def test_what_a_killed_attempt_left_is_never_read_and_goes_at_the_next_start(tmp_path: Path) -> None:
    tables = ParquetTables(str(tmp_path))
    tables.write(task("dim_user_info", (b"1", b'{"id":1}')), "q", 0)
    left = tmp_path / "dim_user_info" / ".00000000000000000001-00000.parquet.abc.new"
    left.write_bytes(b"half a file")
    assert len(rows(tmp_path, "dim_user_info")) == 1
    tables.prepare("one")
    assert not left.exists()
    assert len(rows(tmp_path, "dim_user_info")) == 1
