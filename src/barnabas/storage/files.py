"""The only access from storage to the operating system, so that tests can simulate a failing disk.

Segments, indexes, checkpoints and log directories take a `Files` and never call `os` themselves. Errors come out as
plain `OSError`: what one means (disk full, directory offline) is decided by the log, which knows what was being done.
"""

import fcntl
import mmap
import os
from typing import NamedTuple

Buffer = bytes | bytearray | memoryview
READ_BYTES = 1 << 16
BOOT_ID = "/proc/sys/kernel/random/boot_id"


class OpenFile:
    """An open file shared by a segment and by pending fetch responses; it is closed with the last reference.

    There is no close(): a reader in the middle of a sendfile must keep its descriptor although the segment was deleted.
    """

    __slots__ = ("_fd", "path")

    def __init__(self, path: str, fd: int) -> None:
        self.path = path
        self._fd = fd

    def __del__(self) -> None:
        os.close(self._fd)

    def fileno(self) -> int:
        return self._fd

    def size(self) -> int:
        return os.fstat(self._fd).st_size

    def pread(self, length: int, position: int) -> bytes:
        return os.pread(self._fd, length, position)

    def pwrite(self, data: Buffer, position: int) -> None:
        """Writes all of `data`; a short write is continued, because only an error says why it was short."""
        size = len(data)
        written = os.pwrite(self._fd, data, position)
        while written < size:
            written += os.pwrite(self._fd, memoryview(data)[written:], position + written)

    def fsync(self) -> None:
        os.fsync(self._fd)

    def truncate(self, size: int) -> None:
        os.ftruncate(self._fd, size)

    def try_lock(self) -> bool:
        """An exclusive lock that ends with the process or with this object."""
        try:
            fcntl.flock(self._fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        return True


class FileStatus(NamedTuple):
    size: int
    modified_ms: int


class Files:
    """The real file system."""

    def open(self, path: str, *, create: bool = False) -> OpenFile:
        flags = os.O_RDWR | os.O_CLOEXEC | (os.O_CREAT if create else 0)
        return OpenFile(path, os.open(path, flags, 0o644))

    def read(self, path: str) -> bytes:
        """A whole small file; by system calls, since thousands are read when a broker starts."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            content = os.read(fd, READ_BYTES)
            while len(content) % READ_BYTES == 0 and (more := os.read(fd, READ_BYTES)):
                content += more
            return content
        finally:
            os.close(fd)

    def map_readable(self, path: str) -> mmap.mmap | bytes:
        """The whole file, mapped; an empty one cannot be mapped and is returned as empty bytes."""
        fd = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
        try:
            size = os.fstat(fd).st_size
            return mmap.mmap(fd, size, prot=mmap.PROT_READ) if size else b""
        finally:
            os.close(fd)

    def boot_id(self) -> str:
        """Differs after each start of the machine; empty where the system does not say."""
        try:
            return self.read(BOOT_ID).decode().strip()
        except OSError:
            return ""

    def write_whole(self, path: str, data: Buffer, *, sync: bool) -> None:
        """Replaces `path` in one step: readers see the old content or the new, whatever happens in between."""
        temporary = path + ".tmp"
        file = self.open(temporary, create=True)
        try:
            file.truncate(0)
            file.pwrite(data, 0)
        except OSError:
            self.remove(temporary)  # on a full disk it would take space from others
            raise
        if sync:
            file.fsync()
        self.rename(temporary, path)
        if sync:
            self.sync_directory(os.path.dirname(path))

    def allocate(self, path: str, size: int) -> None:
        """A file of that size with all its blocks on the disk. A failure leaves what was there."""
        file = self.open(path, create=True)
        os.posix_fallocate(file.fileno(), 0, size)

    def free_bytes(self, directory: str) -> int:
        """The space available to us: blocks that only root may use do not count."""
        status = os.statvfs(directory)
        return status.f_bavail * status.f_frsize

    def exists(self, path: str) -> bool:
        return os.path.exists(path)

    def names(self, directory: str) -> list[str]:
        return os.listdir(directory)

    def status(self, path: str) -> FileStatus:
        status = os.stat(path)
        return FileStatus(status.st_size, status.st_mtime_ns // 1_000_000)

    def directory_names(self, directory: str) -> list[str]:
        with os.scandir(directory) as scan:
            return sorted(entry.name for entry in scan if entry.is_dir())

    def make_directory(self, path: str) -> None:
        try:
            os.mkdir(path)
        except FileNotFoundError:
            os.makedirs(path, exist_ok=True)
        except FileExistsError:
            if not os.path.isdir(path):
                raise

    def rename(self, old: str, new: str) -> None:
        os.replace(old, new)

    def remove(self, path: str) -> None:
        """Removes a file; a missing one is not an error."""
        try:
            os.unlink(path)
        except FileNotFoundError:
            pass

    def remove_directory(self, path: str) -> None:
        for name in self.names(path):
            self.remove(os.path.join(path, name))
        os.rmdir(path)

    def sync_directory(self, path: str) -> None:
        """Makes creations, renames and removals in a directory survive a power loss."""
        fd = os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            os.fsync(fd)
        finally:
            os.close(fd)
