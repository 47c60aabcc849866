"""What a response is made of on its way out: memory and ranges of files.

Dispatch makes these, `net.Connection` sends them, at once or when a `Deferred` is completed. A part is sent as it is:
the size prefix of the frame belongs to the first part, and a part must not change until it is sent.
"""

from typing import Protocol


class HasFileno(Protocol):
    def fileno(self) -> int: ...


class FilePart(Protocol):
    """A range of a file, sent without being read into memory (storage's FileSlice). Holding it keeps the file open."""

    @property
    def file(self) -> HasFileno: ...
    @property
    def position(self) -> int: ...
    @property
    def length(self) -> int: ...


Memory = bytes | bytearray | memoryview
Part = Memory | FilePart
Parts = list[Part]

MEMORY = (bytes, bytearray, memoryview)
"""For isinstance: a part in memory (views must be of bytes), as opposed to a range of a file."""
