"""The last offset of each key in the dirty part of a log, in bounded memory.

A dict, because a table of fixed slots in Python would cost more time than it saves memory. Short keys stand for
themselves and long ones for their 128-bit digest, so an entry has a largest size and the entries can be counted instead
of weighed. When the map is full the cleaning ends early and the rest of the log waits for the next one.
"""

from hashlib import blake2b
from typing import Final

DIGEST_BYTES: Final = 16
BYTES_PER_ENTRY: Final = 200
"""Key object 49, offset object 32, and the dict's own share while it grows (old and new table together)."""


class OffsetMap:
    __slots__ = ("_offsets", "capacity", "latest_offset")

    def __init__(self, memory_bytes: int, load_factor: float = 0.9) -> None:
        self.capacity = max(1, int(memory_bytes * load_factor) // BYTES_PER_ENTRY)
        self.latest_offset = -1
        """All batches up to here are in the map; records beyond are kept regardless of the map."""
        self._offsets: dict[bytes, int] = {}

    def __len__(self) -> int:
        return len(self._offsets)

    @property
    def is_full(self) -> bool:
        return len(self._offsets) >= self.capacity

    @property
    def utilization(self) -> float:
        return len(self._offsets) / self.capacity

    def put(self, key: bytes, offset: int) -> None:
        self._offsets[_entry_key(key)] = offset

    def get(self, key: bytes) -> int:
        """The last offset of the key, -1 if the dirty part does not have it."""
        return self._offsets.get(_entry_key(key), -1)

    def clear(self) -> None:
        self._offsets = {}
        self.latest_offset = -1


def _entry_key(key: bytes) -> bytes:
    """Shorter than a digest: the key itself. The lengths differ, so the two kinds cannot collide."""
    return key if len(key) < DIGEST_BYTES else blake2b(key, digest_size=DIGEST_BYTES).digest()
