"""What the rules of the pipeline make of one ODS record: rows for topics, or a reason why it cannot be understood."""

from typing import Final, NamedTuple

DIRTY_TOPIC: Final = "ods_dirty"


class OutputRow(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    """None removes the key from a dimension."""


class DirtyRecordError(Exception):
    """The record goes to `ods_dirty`; the text is the reason, for the people who look after its producer."""
