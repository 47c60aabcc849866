"""What only the SQLite store must do: survive its process, and tell who died."""

import random
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from eventually import eventually

from barnabas.clock import ManualClock
from barnabas.metadata.store import MetadataStoreError, SessionExpiredError
from barnabas.metadata.stores.sqlite import SqliteStore

_HOLD_A_SESSION = """
import sys
from barnabas.metadata.stores.sqlite import SqliteStore
store = SqliteStore(sys.argv[1])
store.open()
store.create("/stays", b"1")
store.create("/dies", ephemeral=True)
print("ready", flush=True)
sys.stdin.read()
"""


def open_store(path: Path, clock: ManualClock | None = None) -> SqliteStore:
    # Polls so rarely that the test alone decides when sessions are looked after.
    store = SqliteStore(path, poll_interval_ms=3_600_000, session_timeout_ms=1000, clock=clock)
    store.open()
    return store


def test_nodes_outlive_the_store_and_ephemeral_ones_do_not(tmp_path: Path) -> None:
    store = open_store(tmp_path / "m.db")
    store.create("/a", b"1")
    store.create("/e", ephemeral=True)
    store.close()
    store = open_store(tmp_path / "m.db")
    assert store.children("/") == ["a"]
    store.close()
    assert [path.name for path in tmp_path.iterdir()] == ["m.db"]


def test_nobody_else_may_read_the_file(tmp_path: Path) -> None:
    """It holds the keys of SCRAM users. What SQLite keeps beside it has the same mode."""
    store = open_store(tmp_path / "metadata")
    modes = {path.name: path.stat().st_mode & 0o777 for path in tmp_path.iterdir()}
    store.close()
    assert modes["metadata"] == 0o600 and set(modes.values()) == {0o600}


def test_opening_waits_for_others_that_open_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    changes: list[str] = []

    class Locked(sqlite3.Connection):
        """SQLite refuses this change at once while another connection makes it, whatever time it was given."""

        def execute(self, sql: str, *rest: Any) -> sqlite3.Cursor:
            if "journal_mode" in sql:
                changes.append(sql)
                if len(changes) == 1:
                    error = sqlite3.OperationalError("database is locked")
                    error.sqlite_errorcode = sqlite3.SQLITE_BUSY
                    raise error
            return super().execute(sql, *rest)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Locked))
    store = open_store(tmp_path / "m.db")
    assert len(changes) == 2
    store.close()


def test_a_killed_process_is_noticed_without_waiting_for_its_lease(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    process = subprocess.Popen(
        [sys.executable, "-c", _HOLD_A_SESSION, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    )
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        witness = open_store(path)
        assert witness.children("/") == ["dies", "stays"], "the other process lives"
        process.kill()
        process.wait()
        witness.close()
    store = open_store(path)
    assert store.children("/") == ["stays"]
    store.close()


def test_a_session_that_does_not_renew_its_lease_is_over(tmp_path: Path) -> None:
    clock = ManualClock()
    frozen, other = open_store(tmp_path / "m.db", clock), open_store(tmp_path / "m.db", clock)
    frozen.create("/e", ephemeral=True)
    clock.advance(1000)
    other.open()
    assert other.get("/e") is not None
    clock.advance(1)
    other.open()
    assert other.get("/e") is None
    with pytest.raises(SessionExpiredError):
        frozen.create("/late")
    frozen.open()
    frozen.create("/back")
    frozen.close()
    other.close()


def test_a_file_that_is_no_database_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    path.write_bytes(b"not a database, but long enough to look like one" * 100)
    with pytest.raises(MetadataStoreError, match=r"m\.db"):
        SqliteStore(path).open()


def everything(store: SqliteStore, path: str = "/") -> dict[str, object]:
    found: dict[str, object] = {path: store.get(path)}
    for child in store.children(path):
        found |= everything(store, f"{path.rstrip('/')}/{child}")
    return found


def test_a_flipped_byte_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = open_store(path)
    store.create("/topics")
    for number in range(40):
        state = b'{"version":1,"leader":0,"leader_epoch":%d,"isr":[0]}' % number
        store.create(f"/topics/orders-{number}", state)
    store.set("/topics/orders-7", b"changed")
    expected = everything(store)
    store.close()
    content = path.read_bytes()
    seed = random.randrange(1 << 32)
    chance = random.Random(seed)
    refused = 0
    used = [number for number in range(len(content)) if content[number]]
    for number in sorted({*range(100), *chance.sample(used, 300), *chance.sample(range(len(content)), 60)}):
        changed = bytearray(content)
        changed[number] ^= 1 << chance.randrange(8)
        path.write_bytes(changed)
        store = SqliteStore(path, poll_interval_ms=3_600_000)
        try:
            store.open()
            assert everything(store) == expected, (seed, number)
        except MetadataStoreError as error:
            refused += 1
            assert str(path) in str(error) and "damaged" in str(error) and "move it away" in str(error), (seed, number)
        finally:
            store.close()
        for each in tmp_path.glob("m.db-*"):
            each.unlink()
    assert refused > 150, seed


def test_a_file_from_before_there_were_checksums(tmp_path: Path) -> None:
    path = tmp_path / "m.db"
    store = open_store(path)
    store.create("/a", b"1")
    store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("ALTER TABLE nodes DROP COLUMN checksum")
    for _ in range(2):
        store = open_store(path)
        node = store.get("/a")
        assert node is not None and node.data == b"1"
        store.set("/a", b"1")
        store.close()
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute("UPDATE nodes SET data = x'32' WHERE path = '/a'")
    with pytest.raises(MetadataStoreError, match="/a does not match its checksum"):
        open_store(path)


def test_a_full_disk_does_not_keep_the_store_from_closing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store = open_store(tmp_path / "m.db")
    store.create("/e", ephemeral=True)

    def full(session_id: int) -> None:
        raise sqlite3.OperationalError("database or disk is full")  # as SQLite says it

    with monkeypatch.context() as patch:
        patch.setattr(store, "_end_session", full)
        store.close()
    store = open_store(tmp_path / "m.db")
    assert store.children("/") == []
    store.close()


@pytest.mark.parametrize("waits", ["a write", "the look after other sessions"])
def test_who_waits_for_the_file_renews_its_lease(tmp_path: Path, waits: str) -> None:
    """Somebody holds the file for long: that is no reason to take those for dead who wait for it."""
    path = tmp_path / "m.db"
    store = SqliteStore(path, poll_interval_ms=10, call_timeout_ms=3_600_000)
    store.open()
    store.create("/n")
    with (
        closing(sqlite3.connect(path, isolation_level=None)) as other,
        ThreadPoolExecutor(1) as pool,
        session_holder(path) as holder,
    ):
        other.execute("BEGIN IMMEDIATE")
        if waits == "the look after other sessions":
            holder.kill()
        writing = pool.submit(store.set, "/n", b"1") if waits == "a write" else None
        lease = path.with_name(f"m.db.session-{store.session_id}")
        for _ in range(3):
            before = lease.read_bytes()
            eventually(lambda before=before: lease.read_bytes() != before)  # type: ignore[misc]
        other.execute("ROLLBACK")
        assert writing is None or writing.result(60) == 1
    store.close()


@contextmanager
def session_holder(path: Path) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(
        [sys.executable, "-c", _HOLD_A_SESSION, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as process:
        assert process.stdout is not None and process.stdout.readline() == b"ready\n"
        yield process
        process.kill()
