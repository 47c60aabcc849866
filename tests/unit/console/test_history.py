"""History on disk: tiers, gaps, restarts, and files that cannot be used."""

import math
import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from barnabas.console.database import Database, DatabaseError
from barnabas.console.history_store import DAY, FLUSH_SECONDS, HistoryStore

START = 1_000_000 * 36_000
"""A time at which a chunk of both tiers begins."""


@pytest.fixture
def database(tmp_path: Path) -> Iterator[Database]:
    opened = Database(tmp_path / "history.sqlite")
    yield opened
    opened.close()


def rows(database: Database, step: int) -> int:
    with database.transaction() as connection:
        (count,) = connection.execute("SELECT count(*) FROM chunk WHERE step = ?", (step,)).fetchone()
    return int(count)


def test_a_minute_is_the_mean_of_its_looks(database: Database) -> None:
    store = HistoryStore(database)
    for second, value in ((0, 10.0), (30, 20.0), (60, 7.0)):
        store.add(START + second, {"a": value} if value else {})
    store.add(START + 180, {})
    expected = [15.0, 7.0, math.nan, 0.0]
    for _ in range(2):  # from memory, then from the file
        times, values = store.read("a", START, START + 180)
        assert times == [START + 60 * at for at in range(4)]
        assert [math.isnan(value) for value in values] == [math.isnan(value) for value in expected]
        assert [value for value in values if value == value] == [15.0, 7.0, 0.0]
        store.flush(START + 180)
    assert store.read("unknown", START, START)[1] == [0.0]


def test_series_of_zeros_take_no_rows(database: Database) -> None:
    store = HistoryStore(database)
    store.add(START, {"a": 1.0, "b": 0.0})
    store.flush(START)
    assert rows(database, 60) == 2  # "a", and at which steps somebody looked


def test_longer_ranges_come_from_the_coarser_tier(database: Database) -> None:
    store = HistoryStore(database)
    for minute in range(20):
        store.add(START + 60 * minute, {"a": 10.0 if minute < 10 else 30.0})
    now = START + 19 * 60
    times, values = store.read("a", now - 3 * DAY, now)
    assert times[1] - times[0] == 600
    assert values[-2:] == [10.0, 30.0]
    assert all(math.isnan(value) for value in values[:-2])


def test_a_restart_keeps_what_was_written(tmp_path: Path) -> None:
    first = Database(tmp_path / "history.sqlite")
    store = HistoryStore(first)
    store.add(START, {"a": 1.0, "gone": 4.0})
    store.flush(START)
    first.close()
    second = Database(tmp_path / "history.sqlite")
    store = HistoryStore(second)
    store.add(START + 120, {"a": 3.0})
    store.flush(START + 120)
    values = store.read("a", START, START + 120)[1]
    assert (values[0], math.isnan(values[1]), values[2]) == (1.0, True, 3.0)
    values = store.read("gone", START, START + 120)[1]
    assert (values[0], values[2]) == (4.0, 0.0)
    second.close()


def test_old_chunks_are_deleted(database: Database) -> None:
    store = HistoryStore(database)
    store.add(START, {"a": 1.0})
    store.flush(START)
    assert (rows(database, 60), rows(database, 600)) == (2, 2)
    store.flush(START + 3 * DAY)  # writes again what is in memory, and deletes it
    assert (rows(database, 60), rows(database, 600)) == (0, 2)
    store.flush(START + 91 * DAY)
    assert rows(database, 600) == 0


def test_it_asks_to_be_flushed(database: Database) -> None:
    store = HistoryStore(database)
    assert not store.add(START, {"a": 1.0})
    assert not store.add(START + FLUSH_SECONDS - 1, {"a": 1.0})
    assert store.add(START + FLUSH_SECONDS, {"a": 1.0})
    assert not store.add(START + FLUSH_SECONDS + 1, {"a": 1.0})
    assert store.add(START + 3600, {"a": 1.0})  # a chunk is full


def test_what_cannot_be_written_is_kept(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    store = HistoryStore(database)
    store.add(START, {"a": 5.0})
    store.add(START + 3600, {"a": 6.0})
    with monkeypatch.context() as patched:
        patched.setattr(HistoryStore, "_write", lambda *_: (_ for _ in ()).throw(sqlite3.OperationalError("disk full")))
        with pytest.raises(sqlite3.OperationalError):
            store.flush(START + 3600)
    store.flush(START + 3600)
    assert HistoryStore(database).read("a", START, START)[1] == [5.0]


def test_one_console_per_file(database: Database, tmp_path: Path) -> None:
    with pytest.raises(DatabaseError, match="another console uses it"):
        Database(tmp_path / "history.sqlite")


def test_files_that_are_something_else(tmp_path: Path) -> None:
    damaged = tmp_path / "damaged.sqlite"
    damaged.write_bytes(b"no database at all, " * 100)
    with pytest.raises(DatabaseError, match=r"damaged\.sqlite: file is not a database"):
        Database(damaged)
    with pytest.raises(DatabaseError, match="unable to open"):
        Database(tmp_path / "missing" / "history.sqlite")
    newer = tmp_path / "newer.sqlite"
    connection = sqlite3.connect(newer)
    connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DatabaseError, match="another version"):
        Database(newer)
