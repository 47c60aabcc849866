"""`faulty_broker.py SWITCH server ...` is `barnabas server ...` on a disk that fails as the file SWITCH says.

The file is one byte, mapped by the broker, so that a fault begins and ends at once: `DiskSwitch` sets it. Reads go on,
and what was written before a fault is there after it.
"""

from __future__ import annotations

import errno
import mmap
import os
import sys
import time
from enum import IntEnum
from pathlib import Path

from barnabas.storage.files import Buffer, Files, OpenFile

SLOW_WRITE_S, SLOW_FLUSH_S = 0.02, 0.3


class DiskFault(IntEnum):
    NONE = 0
    SLOW = 1
    FULL = 2
    """Half of each write gets through."""
    FAILING_WRITES = 3
    FAILING_FLUSHES = 4


class DiskSwitch:
    """The test's side."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.set(DiskFault.NONE)

    def set(self, fault: DiskFault) -> None:
        """In place: the broker has the file mapped."""
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(descriptor, bytes([fault]), 0)
        os.close(descriptor)


class _SwitchedFile(OpenFile):
    __slots__ = ("_switch",)

    def __init__(self, path: str, fd: int, switch: mmap.mmap) -> None:
        super().__init__(path, fd)
        self._switch = switch

    def pwrite(self, data: Buffer, position: int) -> None:
        fault = self._switch[0]
        if fault == DiskFault.SLOW:
            time.sleep(SLOW_WRITE_S)
        elif fault == DiskFault.FULL:
            super().pwrite(bytes(data[: len(data) // 2]), position)
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        elif fault == DiskFault.FAILING_WRITES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().pwrite(data, position)

    def fsync(self) -> None:
        fault = self._switch[0]
        if fault == DiskFault.SLOW:
            time.sleep(SLOW_FLUSH_S)
        elif fault == DiskFault.FAILING_FLUSHES:
            raise OSError(errno.EIO, os.strerror(errno.EIO))
        super().fsync()


class _SwitchedFiles(Files):
    def __init__(self, path: Path) -> None:
        descriptor = os.open(path, os.O_RDONLY)
        self._switch = mmap.mmap(descriptor, 1, prot=mmap.PROT_READ)
        os.close(descriptor)

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return _SwitchedFile(path, os.open(path, flags, 0o644), self._switch)


def serve(switch: Path, arguments: list[str]) -> int:
    import barnabas.server.broker_parts as parts
    from barnabas.cli.main import main

    vars(parts)["Files"] = lambda: _SwitchedFiles(switch)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
