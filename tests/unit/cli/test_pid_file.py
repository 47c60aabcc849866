"""The pid file: held by a running broker, left behind by a killed one, never taken for somebody else's process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from barnabas.cli.pid_file import Found, PidFile, PidFileHeldError, look_at

HOLD = """
import sys
from pathlib import Path
from barnabas.cli.pid_file import PidFile
held = PidFile(Path(sys.argv[1]))
held.acquire()
print("held", flush=True)
sys.stdin.read()
"""


def test_from_nothing_to_running_to_nothing(tmp_path: Path) -> None:
    path = tmp_path / "barnabas.pid"
    assert look_at(path) == Found(path)
    pid_file = PidFile(path)
    pid_file.acquire()
    assert path.read_text() == f"{os.getpid()}\n"
    assert look_at(path) == Found(path, exists=True, running=True, pid=os.getpid())
    pid_file.remove()
    assert look_at(path) == Found(path)
    pid_file.close()


def test_a_second_broker_is_refused(tmp_path: Path) -> None:
    first, second = PidFile(tmp_path / "x.pid"), PidFile(tmp_path / "x.pid")
    first.acquire()
    with pytest.raises(PidFileHeldError, match=rf"x\.pid is in use by a running broker \(pid {os.getpid()}\)"):
        second.acquire()
    first.close()
    second.acquire()
    second.close()


def test_the_file_of_a_killed_broker_is_stale_though_its_pid_is_in_use_again(tmp_path: Path) -> None:
    path = tmp_path / "barnabas.pid"
    with subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as broker:
        assert broker.stdout is not None and broker.stdout.readline() == b"held\n"
        assert look_at(path) == Found(path, exists=True, running=True, pid=broker.pid)
        broker.kill()
        broker.wait()
    assert look_at(path) == Found(path, exists=True, running=False, pid=broker.pid)
    path.write_text("1\n")  # a process that is there for sure
    assert not look_at(path).running
    taken = PidFile(path)
    taken.acquire()
    assert look_at(path).pid == os.getpid()
    taken.close()


def test_a_file_that_was_removed_in_between_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Between the open and the lock of a starting broker another one stops and removes the file."""
    import fcntl

    path = tmp_path / "barnabas.pid"
    path.touch()
    real = fcntl.flock

    def removed_first(file: int, operation: int) -> None:
        monkeypatch.setattr(fcntl, "flock", real)
        path.unlink()
        real(file, operation)

    monkeypatch.setattr(fcntl, "flock", removed_first)
    pid_file = PidFile(path)
    pid_file.acquire()
    assert look_at(path).running
    pid_file.close()


@pytest.mark.parametrize("content", ["", "\n", "barnabas\n"])
def test_content_that_is_no_number(tmp_path: Path, content: str) -> None:
    path = tmp_path / "barnabas.pid"
    path.write_text(content)
    assert look_at(path) == Found(path, exists=True)
