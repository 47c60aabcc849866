"""A store in one SQLite file, shared by the broker processes of one host.

Each change is one durable transaction (WAL, synchronous=FULL). Other processes notice it by SQLite's own change counter
(`PRAGMA data_version`), polled a few times a second by one thread per store, which costs nothing measurable; changes
made through this very store are reported at once. Who lives and who died is `session.py`'s matter.

SQLite's pages have no checksums, so every node has one, and the whole file is checked when it is opened: a damaged one
is refused, because the cluster's metadata would go wrong in places that nobody connects with it.
"""

import logging
import os
import sqlite3
import threading
import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from barnabas.clock import Clock, SystemClock
from barnabas.metadata.store import (
    ANY_VERSION,
    Create,
    Delete,
    MetadataStoreError,
    Node,
    Operation,
    Scan,
    SessionExpiredError,
    SessionListener,
    SessionState,
    Set,
    StoreUnavailableError,
    ignore_session_state,
    parent_of,
)
from barnabas.metadata.stores.session import DEFAULT_SESSION_TIMEOUT_MS, SessionFile, session_is_alive
from barnabas.metadata.stores.transaction import Transaction
from barnabas.metadata.stores.watches import Watches

logger = logging.getLogger(__name__)

_SCHEMA = """
BEGIN IMMEDIATE;
CREATE TABLE IF NOT EXISTS nodes (
    path TEXT PRIMARY KEY, parent TEXT NOT NULL, data BLOB NOT NULL, version INTEGER NOT NULL,
    created INTEGER NOT NULL, modified INTEGER NOT NULL, owner INTEGER NOT NULL, checksum INTEGER NOT NULL
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS nodes_by_parent ON nodes (parent);
CREATE INDEX IF NOT EXISTS nodes_by_owner ON nodes (owner) WHERE owner <> 0;
CREATE TABLE IF NOT EXISTS counters (name TEXT PRIMARY KEY, value INTEGER NOT NULL) WITHOUT ROWID;
CREATE TABLE IF NOT EXISTS sessions (id INTEGER PRIMARY KEY AUTOINCREMENT, timeout_ms INTEGER NOT NULL);
INSERT OR IGNORE INTO counters VALUES ('transaction', 0);
"""
_TABLES = {"nodes", "counters", "sessions"}
_ADD_CHECKSUMS = "ALTER TABLE nodes ADD COLUMN checksum INTEGER NOT NULL DEFAULT -1"
_PUT = "INSERT OR REPLACE INTO nodes VALUES (?, ?, ?, ?, ?, ?, ?, ?)"
_NOT_DAMAGE = {
    sqlite3.SQLITE_BUSY,
    sqlite3.SQLITE_LOCKED,
    sqlite3.SQLITE_FULL,
    sqlite3.SQLITE_IOERR,
    sqlite3.SQLITE_CANTOPEN,
    sqlite3.SQLITE_NOMEM,
    sqlite3.SQLITE_PERM,
    sqlite3.SQLITE_AUTH,
    sqlite3.SQLITE_READONLY,
    sqlite3.SQLITE_INTERRUPT,
    sqlite3.SQLITE_PROTOCOL,
}
_SELECT = "SELECT data, version, created, modified, owner FROM nodes WHERE path = ?"
_SCAN = "SELECT path, data, version, created, modified, owner FROM nodes WHERE path = ? OR (path > ? AND path < ?)"
_AFTER_SLASH = chr(ord("/") + 1)
_LOCK_WAIT_MS = 30_000
_LOOK_WAIT_MS = 200


class DamagedMetadataError(MetadataStoreError):
    """The file is not as it was written; the text says what to do."""

    def __init__(self, path: Path, reason: object) -> None:
        super().__init__(
            f"the metadata file {path} is damaged ({reason}). Put it back from a copy. Without one, move it away, with "
            f"its -wal and -shm files: the next start takes in the topics that it finds in the log directories, but "
            f"without their settings"
        )


class SqliteStore:
    multi_limit = 1_000_000
    max_bytes = 256 << 20

    def __init__(
        self,
        path: str | Path,
        *,
        session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS,
        poll_interval_ms: int = 250,
        call_timeout_ms: int = _LOCK_WAIT_MS,
        clock: Clock | None = None,
    ) -> None:
        self.call_timeout_ms = call_timeout_ms
        self.on_session_state: SessionListener = ignore_session_state
        self._path = Path(path)
        self._session_timeout_ms = session_timeout_ms
        self._poll_interval_ms = poll_interval_ms
        self._clock = clock or SystemClock()
        self._lock = threading.RLock()
        self._watches = Watches()
        self._connection: sqlite3.Connection | None = None
        self._session: SessionFile | None = None
        self._lost_session_id = 0
        self._closing = threading.Event()
        self._poller: threading.Thread | None = None

    @property
    def session_id(self) -> int:
        return 0 if self._session is None else self._session.session_id

    def open(self) -> None:
        with self._lock, self._sqlite_errors():
            if self._connection is None:
                self._connection = self._connect()
            self._expire_sessions()
            if self._session is not None:
                self._end_session(self._session.session_id)
                self._session.release()
            self._session = self._begin_session()
        if self._poller is None:
            self._closing.clear()
            self._poller = threading.Thread(target=self._poll, name="metadata-store", daemon=True)
            self._poller.start()
        self.on_session_state(SessionState.CONNECTED)

    def close(self) -> None:
        self._closing.set()
        if self._poller is not None:
            self._poller.join()
            self._poller = None
        with self._lock:
            if self._session is not None and self._connection is not None:
                self._end_last_session(self._session)
                self._session = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def _end_last_session(self, session: SessionFile) -> None:
        """On a full disk the session stays in the file; its lock ends here, so that the next start ends it."""
        try:
            self._end_session(session.session_id)
        except sqlite3.Error as error:
            logger.error("%s: session %d is not ended: %s", self._path, session.session_id, error)
        finally:
            session.release()

    def get(self, path: str) -> Node | None:
        return self.get_many([path])[0]

    def get_many(self, paths: Sequence[str]) -> list[Node | None]:
        with self._lock, self._sqlite_errors():
            execute = self._opened().execute
            rows = [execute(_SELECT, (path,)).fetchone() for path in paths]
        return [None if row is None else Node._make(row) for row in rows]

    def children(self, path: str) -> list[str]:
        with self._lock, self._sqlite_errors():
            rows = self._opened().execute("SELECT path FROM nodes WHERE parent = ? ORDER BY path", (path,)).fetchall()
        return [child.rpartition("/")[2] for (child,) in rows]

    def scan(self, prefix: str) -> Scan:
        folder = "/" if prefix == "/" else f"{prefix}/"
        with self._lock, self._sqlite_errors(), self._transaction("DEFERRED") as connection:
            revision = _transaction_number(connection)
            rows = connection.execute(_SCAN, (prefix, folder, folder[:-1] + _AFTER_SLASH)).fetchall()
        return Scan(revision, {path: Node._make(rest) for path, *rest in rows if path != "/"})

    def sync(self) -> None:
        with self._lock:
            self._opened()

    def create(self, path: str, data: bytes = b"", *, ephemeral: bool = False) -> int:
        return self.multi([Create(path, data, ephemeral)])

    def set(self, path: str, data: bytes, version: int = ANY_VERSION) -> int:
        return self._commit([Set(path, data, version)])[1]

    def delete(self, path: str, version: int = ANY_VERSION) -> None:
        self.multi([Delete(path, version)])

    def multi(self, operations: Sequence[Operation]) -> int:
        return self._commit(operations)[0]

    def watch(self, path: str, callback: Callable[[], None]) -> Callable[[], None]:
        return self._watches.add(path, callback)

    def _connect(self) -> sqlite3.Connection:
        self._path.parent.mkdir(parents=True, exist_ok=True)
        self._check_header()
        # It holds SCRAM keys, so nobody else reads it; SQLite reports what cannot be opened.
        with suppress(OSError):
            os.close(os.open(self._path, os.O_CREAT | os.O_RDONLY, 0o600))
        # Statements outside `_transaction` commit by themselves; the lock keeps caller and poller apart.
        connection = sqlite3.connect(
            self._path, timeout=self.call_timeout_ms / 1000, isolation_level=None, check_same_thread=False
        )
        try:
            self._prepare(connection)
        except BaseException as error:
            connection.close()
            # SQLite's message may quote what it found, which then need not be text.
            if isinstance(error, UnicodeDecodeError) or (isinstance(error, sqlite3.Error) and _is_damage(error)):
                raise DamagedMetadataError(self._path, error) from error
            raise
        return connection

    def _check_header(self) -> None:
        """SQLite takes a file of a later version for one that must not be written to, which nobody would understand."""
        with suppress(FileNotFoundError), self._path.open("rb") as file:
            header = file.read(20)
            if header and header[18:20] not in (b"\1\1", b"\2\2"):
                raise DamagedMetadataError(self._path, "its header is not one of SQLite's")

    def _prepare(self, connection: sqlite3.Connection) -> None:
        self._use_write_ahead_log(connection)
        connection.execute("PRAGMA synchronous = FULL")
        tables = {name for (name,) in connection.execute("SELECT name FROM sqlite_schema WHERE type = 'table'")}
        if not tables:
            checksum = _checksum("/", "", *Node(b"", 0, 0, 0))
            connection.executescript(
                f"{_SCHEMA} INSERT OR IGNORE INTO nodes VALUES ('/', '', x'', 0, 0, 0, 0, {checksum}); COMMIT;"
            )
        elif not tables >= _TABLES:
            raise DamagedMetadataError(self._path, f"it has the tables {', '.join(sorted(tables))}")
        else:
            self._check_whole(connection)

    def _use_write_ahead_log(self, connection: sqlite3.Connection) -> None:
        """SQLite does not wait for its lock here: of several brokers that start at once, one makes the change."""
        deadline_ms = self._clock.monotonic_ms() + self.call_timeout_ms
        while True:
            try:
                connection.execute("PRAGMA journal_mode = WAL")
                return
            except sqlite3.OperationalError as error:
                is_busy = error.sqlite_errorcode & 0xFF == sqlite3.SQLITE_BUSY
                if not is_busy or self._clock.monotonic_ms() >= deadline_ms:
                    raise
            self._closing.wait(0.01)

    def _check_whole(self, connection: sqlite3.Connection) -> None:
        (found,) = connection.execute("PRAGMA integrity_check(1)").fetchone()
        if found != "ok":
            raise DamagedMetadataError(self._path, found)
        columns = [row[1] for row in connection.execute("PRAGMA table_info(nodes)")]
        if "checksum" not in columns:
            self._add_checksums(connection)
            return
        newest = 0
        for *fields, checksum in connection.execute("SELECT * FROM nodes"):
            if checksum != _checksum(*fields):
                raise DamagedMetadataError(self._path, f"node {fields[0]} does not match its checksum")
            newest = max(newest, fields[5])
        row = connection.execute("SELECT value FROM counters WHERE name = 'transaction'").fetchone()
        if row is None or not isinstance(row[0], int) or row[0] < newest:
            raise DamagedMetadataError(self._path, f"its transaction counter is behind transaction {newest}")

    def _add_checksums(self, connection: sqlite3.Connection) -> None:
        """For a file from before there were any."""
        connection.execute("BEGIN IMMEDIATE")
        connection.execute(_ADD_CHECKSUMS)
        rows = connection.execute("SELECT path, parent, data, version, created, modified, owner FROM nodes").fetchall()
        connection.executemany(_PUT, [(*row, _checksum(*row)) for row in rows])
        connection.execute("COMMIT")

    @contextmanager
    def _sqlite_errors(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise DamagedMetadataError(self._path, error) from error
        except sqlite3.Error as error:
            if _is_damage(error):
                raise DamagedMetadataError(self._path, error) from error
            raise StoreUnavailableError(f"{self._path}: {error}") from error

    def _opened(self) -> sqlite3.Connection:
        if self._connection is None:
            raise SessionExpiredError("the store is closed")
        return self._connection

    @contextmanager
    def _transaction(self, kind: Literal["IMMEDIATE", "DEFERRED"] = "IMMEDIATE") -> Iterator[sqlite3.Connection]:
        """All of it durable, or nothing of it. The write lock is taken at once, so that what is read stays true.

        DEFERRED is for reading alone, all of it at one moment.
        """
        connection = self._opened()
        connection.execute(f"BEGIN {kind}")
        try:
            yield connection
            connection.execute("COMMIT")
        except BaseException:
            if connection.in_transaction:
                connection.execute("ROLLBACK")
            raise

    def _begin_session(self) -> SessionFile:
        with self._transaction() as connection:
            row = connection.execute("INSERT INTO sessions (timeout_ms) VALUES (?)", (self._session_timeout_ms,))
            # Locked before the row is visible: nobody can find the session and not its lock.
            return SessionFile(self._path, int(row.lastrowid or 0), self._clock.monotonic_ms())

    def _commit(self, operations: Sequence[Operation]) -> tuple[int, int]:
        """The transaction's number, and the new version if the last operation was a Set."""
        with self._lock, self._sqlite_errors(), self._transaction() as connection:
            self._check_session(connection)
            transaction = _SqliteTransaction(connection, self.session_id)
            transaction.apply_all(operations)
            transaction.finish()
        self._watches.fire(transaction.changed)
        return transaction.number, transaction.last_version

    def _has_session(self, connection: sqlite3.Connection) -> bool:
        row = connection.execute("SELECT 1 FROM sessions WHERE id = ?", (self.session_id,)).fetchone()
        return row is not None

    def _check_session(self, connection: sqlite3.Connection) -> None:
        if not self._has_session(connection):
            raise SessionExpiredError(f"session {self.session_id} is over")

    def _expire_sessions(self) -> bool:
        """Ends sessions whose process is gone or has not renewed its lease; returns whether there were any."""
        rows = (
            self._opened().execute("SELECT id, timeout_ms FROM sessions WHERE id <> ?", (self.session_id,)).fetchall()
        )
        now_ms = self._clock.monotonic_ms()
        dead = [
            session_id for session_id, timeout in rows if not session_is_alive(self._path, session_id, timeout, now_ms)
        ]
        for session_id in dead:
            self._end_session(session_id)
        return bool(dead)

    def _end_session(self, session_id: int) -> None:
        with self._transaction() as connection:
            connection.execute("DELETE FROM nodes WHERE owner = ? AND owner <> 0", (session_id,))
            connection.execute("DELETE FROM sessions WHERE id = ?", (session_id,))
        SessionFile.unlink(self._path, session_id)

    def _poll(self) -> None:
        """Watch for other processes' changes, renew the lease, look after the other sessions."""
        rounds_a_second = max(1, 1000 // self._poll_interval_ms)
        round_number = 0
        seen_version: int | None = None
        while not self._closing.wait(self._poll_interval_ms / 1000):
            round_number += 1
            is_a_new_second = round_number % rounds_a_second == 0
            if is_a_new_second:
                self._renew_lease()
            # Another thread may wait for the file, for longer than a lease lasts.
            if not self._lock.acquire(timeout=self._poll_interval_ms / 1000):
                continue
            try:
                if self._connection is None or self._session is None:
                    return
                ended = is_a_new_second and self._try_to_expire_sessions(self._connection)
                version = self._connection.execute("PRAGMA data_version").fetchone()[0]
                changed = version != seen_version
                lost = changed and self._notice_loss(self._connection)
            except (sqlite3.Error, OSError) as error:
                logger.warning("%s cannot be polled for now: %s", self._path, error)
                continue
            finally:
                self._lock.release()
            seen_version = version
            if lost:
                self.on_session_state(SessionState.LOST)
            if ended or changed:
                self._watches.fire_all()

    def _notice_loss(self, connection: sqlite3.Connection) -> bool:
        """Whether another process has ended this session since the last look: it took this one for dead."""
        if self._lost_session_id == self.session_id or self._has_session(connection):
            return False
        self._lost_session_id = self.session_id
        return True

    def _renew_lease(self) -> None:
        session = self._session
        try:
            if session is not None:
                session.renew(self._clock.monotonic_ms())
        except OSError as error:
            logger.warning("%s: the lease of session %d is not renewed: %s", self._path, self.session_id, error)

    def _try_to_expire_sessions(self, connection: sqlite3.Connection) -> bool:
        """Waits for the file a moment only: the next lease is due."""
        connection.execute(f"PRAGMA busy_timeout = {min(_LOOK_WAIT_MS, self.call_timeout_ms)}")
        try:
            return self._expire_sessions()
        except sqlite3.Error:
            return False  # locked or out of space: the next round tries again
        finally:
            connection.execute(f"PRAGMA busy_timeout = {self.call_timeout_ms}")


class _SqliteTransaction(Transaction):
    def __init__(self, connection: sqlite3.Connection, session_id: int) -> None:
        super().__init__(_transaction_number(connection) + 1, session_id)
        self.last_version = 0
        self._execute = connection.execute

    def find(self, path: str) -> Node | None:
        row = self._execute(_SELECT, (path,)).fetchone()
        return None if row is None else Node._make(row)

    def put(self, path: str, node: Node) -> None:
        row = (path, parent_of(path), *node)
        self.last_version = node.version
        self._execute(_PUT, (*row, _checksum(*row)))

    def remove(self, path: str) -> None:
        self._execute("DELETE FROM nodes WHERE path = ?", (path,))

    def finish(self) -> None:
        self._execute("UPDATE counters SET value = ? WHERE name = 'transaction'", (self.number,))


def _transaction_number(connection: sqlite3.Connection) -> int:
    (number,) = connection.execute("SELECT value FROM counters WHERE name = 'transaction'").fetchone()
    return int(number)


def _checksum(*row: str | bytes | int) -> int:
    """Of the fields of a node. By their repr: it keeps them apart and costs little for thousands of nodes."""
    return zlib.crc32(repr(row).encode())


def _is_damage(error: sqlite3.Error) -> bool:
    """Whatever is not about the machine: the statements are always the same, so the file cannot be as they left it.

    An error without SQLite's code is Python's, about content that it could not decode, or about a closed connection.
    """
    if isinstance(error, sqlite3.ProgrammingError):
        return False
    code: int | None = getattr(error, "sqlite_errorcode", None)
    return code is None or code & 0xFF not in _NOT_DAMAGE
