"""A range of a segment file on its way to a consumer: no bytes are copied, the network layer sends it with sendfile.

`Log.read` makes it. It keeps the file open for as long as it lives, so a segment may be deleted meanwhile.
"""

from typing import NamedTuple

from barnabas.storage.files import OpenFile


class FileSlice(NamedTuple):
    file: OpenFile
    position: int
    length: int

    def read(self) -> bytes:
        """The bytes themselves, for TLS and for tests."""
        return self.file.pread(self.length, self.position)
