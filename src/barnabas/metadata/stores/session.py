"""Proof of life of a broker process towards the others on its host: a locked file with a lease in it.

`<database>.session-<id>` is locked (flock) while its process lives, so a killed process is noticed at once and its
restart need not wait for a time-out. The eight bytes in it are the monotonic millisecond of the last renewal: a frozen
process keeps the lock but not the lease. Renewing touches no database page and needs no flush, and it does not wait for
the database: whoever has it locked for long ends nobody's session.
"""

import fcntl
import os
import threading
from pathlib import Path

DEFAULT_SESSION_TIMEOUT_MS = 18_000


def _path_of(database: Path, session_id: int) -> Path:
    return database.with_name(f"{database.name}.session-{session_id}")


class SessionFile:
    def __init__(self, database: Path, session_id: int, now_ms: int) -> None:
        self.session_id = session_id
        self._lock = threading.Lock()
        self._file = os.open(_path_of(database, session_id), os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        self.renew(now_ms)

    def renew(self, now_ms: int) -> None:
        with self._lock:  # the number of a file that was closed may be another file's by now
            if self._file >= 0:
                os.pwrite(self._file, now_ms.to_bytes(8, "big"), 0)

    def release(self) -> None:
        with self._lock:
            if self._file >= 0:
                os.close(self._file)
                self._file = -1

    @staticmethod
    def unlink(database: Path, session_id: int) -> None:
        _path_of(database, session_id).unlink(missing_ok=True)


def session_is_alive(database: Path, session_id: int, timeout_ms: int, now_ms: int) -> bool:
    try:
        file = os.open(_path_of(database, session_id), os.O_RDWR | os.O_CLOEXEC)
    except FileNotFoundError:
        return False
    try:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            renewed_ms = int.from_bytes(os.pread(file, 8, 0), "big")
            return now_ms - renewed_ms <= timeout_ms
        return False  # the lock was free: its process is gone
    finally:
        os.close(file)
