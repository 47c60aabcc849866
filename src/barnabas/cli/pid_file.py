"""The file that names the process of a broker, and shows whether that broker is still running.

The broker writes its process id and keeps the file locked (flock) until its process ends. So a file that a killed
broker has left behind is recognized, even when the system has given its process id to another program in the meantime.
A clean stop removes the file; the lock stays until the process is gone. Used by `barnabas server`, its stop and status.
"""

import fcntl
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from barnabas.config.broker import BrokerConfig

NAME = "barnabas.pid"
_ATTEMPTS, _PAUSE_S = 10, 0.02
"""Somebody who asks for the status holds the lock for a moment: that is no other broker."""


def default_paths(config: "BrokerConfig") -> list[Path]:
    """In the log directories; the first that can be written has it."""
    return [Path(directory) / NAME for directory in config.log_directories]


class PidFileHeldError(Exception):
    """Another broker that is running has this file."""


class PidFile:
    """Of this process."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def acquire(self) -> None:
        """Raises PidFileHeldError, or OSError if there can be no such file."""
        for attempt in range(_ATTEMPTS):
            self._file = _lock(self.path)
            if self._file is not None:
                return self._write(self._file)
            if attempt + 1 < _ATTEMPTS:
                time.sleep(_PAUSE_S)
        found = look_at(self.path)
        raise PidFileHeldError(
            f"{self.path.absolute()} is in use by a running broker (pid {found.pid}): stop that one first"
        )

    def _write(self, file: int) -> None:
        try:
            os.ftruncate(file, 0)
            os.write(file, b"%d\n" % os.getpid())
        except OSError:  # a full disk
            self.close()
            raise

    def remove(self) -> None:
        """The broker has stopped cleanly. The lock ends with the process."""
        if self._file is not None:
            with suppress(OSError):
                self.path.unlink()

    def close(self) -> None:
        if self._file is not None:
            os.close(self._file)
            self._file = None


class Found(NamedTuple):
    """What a look at a pid file says."""

    path: Path
    exists: bool = False
    running: bool = False
    pid: int | None = None


def look_at(path: Path) -> Found:
    """Raises OSError other than that there is no such file."""
    try:
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        return Found(path)
    try:
        return Found(path, exists=True, running=is_held(file), pid=_pid(file))
    finally:
        os.close(file)


def is_held(file: int) -> bool:
    """Whether a running broker holds the open file."""
    try:
        fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    fcntl.flock(file, fcntl.LOCK_UN)
    return False


def _lock(path: Path) -> int | None:
    """The open and locked file; None if somebody else has the lock."""
    while True:
        file = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.fstat(file).st_nlink:
                return file
            os.close(file)  # removed by a broker that stopped between our two calls: the next one is a new file
        except BlockingIOError:
            os.close(file)
            return None
        except OSError:
            os.close(file)
            raise


def _pid(file: int) -> int | None:
    """None if there is no number in it, such as in the moment in which a broker writes it."""
    text = os.pread(file, 32, 0)
    first = text.split(b"\n", 1)[0].strip()
    return int(first) if first.isdigit() else None
