"""`faulty_broker.py SWITCH server ...` is `barnabas server ...` whose disk and clock do what the file SWITCH says.

The file is mapped by the broker, so that a fault begins and ends at once: `FaultSwitch` sets it. Its first byte is the
disk's fault: reads go on, and what was written before is there after it. The next eight are how far the wall clock is
off, in ms; the monotonic clock is nobody's to set.
"""

from __future__ import annotations

import errno
import mmap
import os
import struct
import sys
import time
from enum import IntEnum
from pathlib import Path

from barnabas.clock import SystemClock
from barnabas.storage.files import Buffer, Files, OpenFile

SLOW_WRITE_S, SLOW_FLUSH_S = 0.02, 0.3
_OFFSET = struct.Struct("<q")


class DiskFault(IntEnum):
    NONE = 0
    SLOW = 1
    FULL = 2
    """Half of each write gets through."""
    FAILING_WRITES = 3
    FAILING_FLUSHES = 4


class FaultSwitch:
    """The test's side. Everything is written in place: the broker has the file mapped."""

    def __init__(self, path: Path) -> None:
        self.path = path
        path.parent.mkdir(parents=True, exist_ok=True)
        self.set_disk(DiskFault.NONE)
        self.set_clock(0)

    def set_disk(self, fault: DiskFault) -> None:
        self._write(bytes([fault]), 0)

    def set_clock(self, offset_ms: int) -> None:
        self._write(_OFFSET.pack(offset_ms), 1)

    def _write(self, data: bytes, position: int) -> None:
        descriptor = os.open(self.path, os.O_WRONLY | os.O_CREAT, 0o644)
        os.pwrite(descriptor, data, position)
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
    def __init__(self, switch: mmap.mmap) -> None:
        self._switch = switch

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return _SwitchedFile(path, os.open(path, flags, 0o644), self._switch)


class _SwitchedClock(SystemClock):
    def __init__(self, switch: mmap.mmap) -> None:
        self._switch = switch

    def now_ms(self) -> int:
        (offset_ms,) = _OFFSET.unpack_from(self._switch, 1)
        return super().now_ms() + int(offset_ms)


def serve(switch: Path, arguments: list[str]) -> int:
    import barnabas.server.broker_parts as parts
    from barnabas.cli.main import main

    descriptor = os.open(switch, os.O_RDONLY)
    mapped = mmap.mmap(descriptor, 1 + _OFFSET.size, prot=mmap.PROT_READ)
    os.close(descriptor)
    vars(parts)["Files"] = lambda: _SwitchedFiles(mapped)
    vars(parts)["SystemClock"] = lambda: _SwitchedClock(mapped)
    return main(arguments)


if __name__ == "__main__":
    sys.exit(serve(Path(sys.argv[1]), sys.argv[2:]))
