"""The SQLite file of a console: opened by one process at a time, used from threads."""

import sqlite3
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

VERSION = 1
SCHEMA = """
CREATE TABLE IF NOT EXISTS series (id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE);
CREATE TABLE IF NOT EXISTS chunk (
    step INTEGER, start INTEGER, series INTEGER, points BLOB NOT NULL, PRIMARY KEY (step, start, series)
) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS alarm_event (at REAL, rule TEXT, subject TEXT, event TEXT, text TEXT);
CREATE INDEX IF NOT EXISTS alarm_event_at ON alarm_event (at);
"""


class DatabaseError(Exception):
    """The file cannot be used; the text says why."""


class Database:
    def __init__(self, path: Path) -> None:
        """Raises DatabaseError: another console has it, it is damaged, or it is not one of ours."""
        self._lock = threading.Lock()
        self._connection = None
        try:
            self._connection = sqlite3.connect(path, timeout=1.0, isolation_level=None, check_same_thread=False)
            # Two consoles in one file would write over each other's values.
            self._connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            self._connection.execute("PRAGMA journal_mode = WAL")
            self._connection.execute("PRAGMA synchronous = NORMAL")
            self._connection.execute("BEGIN EXCLUSIVE")
            (version,) = self._connection.execute("PRAGMA user_version").fetchone()
            if version not in (0, VERSION):
                raise DatabaseError(f"{path} was written by another version of the console")
            self._connection.execute("COMMIT")
            self._connection.executescript(SCHEMA)
            self._connection.execute(f"PRAGMA user_version = {VERSION}")
        except (sqlite3.Error, DatabaseError) as error:
            if self._connection is not None:
                self._connection.close()
            if isinstance(error, DatabaseError):
                raise
            reason = "another console uses it" if "locked" in str(error) else str(error)
            raise DatabaseError(f"cannot use {path}: {reason}") from error

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """One thread at a time; undone if the block raises."""
        assert self._connection is not None
        with self._lock:
            self._connection.execute("BEGIN")
            try:
                yield self._connection
            except BaseException:
                self._connection.execute("ROLLBACK")
                raise
            self._connection.execute("COMMIT")

    def close(self) -> None:
        with self._lock:
            if self._connection is not None:
                self._connection.close()
