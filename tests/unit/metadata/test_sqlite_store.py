"""What only the SQLite store must do: survive its process, and tell who died."""

import subprocess
import sys
from pathlib import Path

import pytest

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
