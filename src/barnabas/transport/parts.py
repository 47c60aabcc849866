"""What can be sent: bytes in memory and ranges of files. A part must not change until it is sent."""

from typing import Protocol


class PartFile(Protocol):
    def fileno(self) -> int: ...
    def pread(self, length: int, position: int, /) -> bytes: ...


class FilePart(Protocol):
    """A range of a file, sent without being read into memory (storage's FileSlice). Holding it keeps the file open."""

    @property
    def file(self) -> PartFile: ...
    @property
    def position(self) -> int: ...
    @property
    def length(self) -> int: ...


Memory = bytes | bytearray | memoryview
Part = Memory | FilePart
Parts = list[Part]

MEMORY = (bytes, bytearray, memoryview)
"""For isinstance: a part in memory (views must be of bytes), as opposed to a range of a file."""
