"""Where the whole batches in a fetch response end."""

import struct
from typing import Final

from barnabas.records.header import HEADER_SIZE, LOG_OVERHEAD, Buffer

_BATCH_START: Final = struct.Struct(">qii")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23


def batch_span(records: Buffer) -> tuple[int, int] | None:
    """The offset after the last whole batch, and its leader epoch; None if there is no whole batch.

    Found by skipping over the others; only their lengths are checked.
    """
    position = last = 0
    found = False
    end = len(records)
    unpack = _BATCH_START.unpack_from
    while end - position >= HEADER_SIZE:
        length: int = unpack(records, position)[1]
        following = position + LOG_OVERHEAD + length
        if length < HEADER_SIZE - LOG_OVERHEAD or following > end:
            break
        last = position
        found = True
        position = following
    if not found:
        return None
    base_offset, _, leader_epoch = unpack(records, last)
    delta: int = _LAST_OFFSET_DELTA.unpack_from(records, last + _LAST_OFFSET_DELTA_AT)[0]
    return base_offset + max(0, delta) + 1, leader_epoch
