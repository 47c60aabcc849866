"""What a walk over the records of a batch finds; made by both twins of `record_walk`."""

from typing import Final, NamedTuple

INT64_MIN: Final = -(1 << 63)
INT64_MAX: Final = (1 << 63) - 1
"""As bounds of timestamps: none."""

NO_FAULT: Final = 0
RECORDS_END: Final = -1
PARTS_DO_NOT_ADD_UP: Final = -2
BAD_HEADERS: Final = -3
BYTES_FOLLOW: Final = -11

MAX_REFUSED: Final = 100
"""At most this many rejected records are listed: enough to find the mistake, in a response of bounded size."""
SMALLEST_RECORD: Final = 7
"""Bytes of a record without key, value and headers: seven varints of one byte."""

FAULT_TEXTS: Final = {
    RECORDS_END: "the records end before this one is complete",
    PARTS_DO_NOT_ADD_UP: "the parts of the record do not add up to its length",
    BAD_HEADERS: "the headers of the record do not fit into it",
    BYTES_FOLLOW: "bytes follow the last record",
}


class Refused(NamedTuple):
    record_index: int
    timestamp: int | None
    """The one out of bounds; None if the record lacks a key."""


class RecordsWalk(NamedTuple):
    fault: int
    """NO_FAULT, or what is wrong with the record at `record_index`. The other fields are then meaningless."""
    record_index: int
    max_timestamp: int
    consecutive: bool
    """Whether the offset deltas are 0, 1, 2 and so on."""
    refused_count: int
    refused: list[Refused]
    """The first of them: intact, but not accepted by the topic."""
