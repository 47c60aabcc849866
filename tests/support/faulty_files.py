"""A file layer that fails on purpose: crashes at a chosen write, errors, full disks, and a power loss.

A crash stops the process in the middle of a write: what reached the kernel stays. A power loss also takes pages that
were never flushed; which of them is drawn from a seed. Renames and creations count as durable in the order they were
made, as a journalling file system has them.
"""

import os
import random

from barnabas.storage.files import Buffer, Files, OpenFile

PAGE = 512


class CrashError(BaseException):
    """Not an Exception: no handler in the code under test may survive the crash of its process."""


class FaultyFile(OpenFile):
    __slots__ = ("_layer",)

    def __init__(self, path: str, fd: int, layer: "FaultyFiles") -> None:
        super().__init__(path, fd)
        self._layer = layer

    def pwrite(self, data: Buffer, position: int) -> None:
        self._layer.keep_durable(self)
        keep = self._layer.step("write", self.path, len(data))
        if keep is not None:
            super().pwrite(bytes(data[:keep]), position)
            raise self._layer.fault()
        super().pwrite(data, position)

    def truncate(self, size: int) -> None:
        self._layer.keep_durable(self)
        if self._layer.step("truncate", self.path, 0) is not None:
            raise self._layer.fault()
        super().truncate(size)

    def fsync(self) -> None:
        if self._layer.step("fsync", self.path, 0) is not None:
            raise self._layer.fault()
        self._layer.durable.pop(os.fstat(self.fileno()).st_ino, None)


class FaultyFiles(Files):
    file_type = FaultyFile

    def __init__(self) -> None:
        self.steps = 0
        self.crash_at: int | None = None
        self.keep_fraction = 0.5
        self.error: tuple[str, str, int] | None = None
        """(operation, part of the path, errno) of operations that fail until it is taken away."""
        self.crashed = False
        self.durable: dict[int, bytes] = {}
        """Content as of the last flush, by inode, of files that were changed since."""
        self._raised: int | None = None
        self.boots = 1

    def boot_id(self) -> str:
        return f"boot {self.boots}"

    def step(self, operation: str, path: str, size: int) -> int | None:
        """None to go on; else the number of bytes that still reach the file before `fault()`."""
        if self.crashed:
            raise CrashError
        self.steps += 1
        if self.crash_at is not None and self.steps >= self.crash_at:
            self.crashed = True
            return int(size * self.keep_fraction)
        if self.error is not None and operation == self.error[0] and self.error[1] in path:
            self._raised = self.error[2]
            return int(size * self.keep_fraction)
        return None

    def fault(self) -> BaseException:
        if self.crashed:
            return CrashError()
        assert self._raised is not None
        return OSError(self._raised, os.strerror(self._raised))

    def keep_durable(self, file: OpenFile) -> None:
        inode = os.fstat(file.fileno()).st_ino
        if inode not in self.durable:
            self.durable[inode] = os.pread(file.fileno(), 1 << 30, 0)

    def _check(self, operation: str, path: str) -> None:
        if self.step(operation, path, 0) is not None:
            raise self.fault()

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        if create and not os.path.exists(path):
            self._check("create", path)
        fd = os.open(path, os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0), 0o644)
        return self.file_type(path, fd, self)

    def rename(self, old: str, new: str) -> None:
        self._check("rename", old)
        super().rename(old, new)

    def remove(self, path: str) -> None:
        self._check("remove", path)
        super().remove(path)

    def sync_directory(self, path: str) -> None:
        self._check("fsync", path)

    def lose_power(self, root: str, seed: int) -> None:
        """Puts files back to a mix of what was flushed and what was written after, page by page."""
        self.boots += 1
        chance = random.Random(seed)
        for folder, _, names in os.walk(root):
            for name in names:
                path = os.path.join(folder, name)
                durable = self.durable.get(os.stat(path).st_ino)
                if durable is not None:
                    with open(path, "rb") as file:
                        current = file.read()
                    with open(path, "wb") as file:
                        file.write(_mix(durable, current, chance))


def _mix(durable: bytes, current: bytes, chance: random.Random) -> bytes:
    length = chance.choice((len(durable), len(current), max(len(durable), len(current))))
    pages = []
    for start in range(0, length, PAGE):
        source = durable if chance.random() < 0.5 else current
        page = source[start : min(start + PAGE, length)]
        pages.append(page + bytes(min(PAGE, length - start) - len(page)))
    # What was flushed and not written over since stays, whatever the pages around it do.
    mixed = bytearray(b"".join(pages))
    kept = next((at for at, (old, new) in enumerate(zip(durable, current)) if old != new), len(durable))
    kept = min(kept, len(current), length)
    mixed[:kept] = durable[:kept]
    return bytes(mixed)
