"""ODS records: how their JSON is read, and what the rules of events and changes make of one: rows, or a reason.

The only error is DirtyRecordError, whatever a record holds: any other would end the query because of one record.
"""

from typing import Any, Final, NamedTuple

import orjson

DIRTY_TOPIC: Final = "ods_dirty"
DEEPEST: Final = 254
"""Maximum nesting that orjson can encode; it can decode more."""


class OutputRow(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    """None deletes the key from a dimension."""


class DirtyRecordError(Exception):
    """The record goes to `ods_dirty`; the text is the reason, for the owners of its producer."""


def read_object(value: bytes | None, deepest: int = DEEPEST) -> dict[str, Any]:
    """`deepest`: a lower limit, for an object that will be nested inside another."""
    if value is None:
        raise DirtyRecordError("the record has no value")
    try:
        tree = orjson.loads(value)
    except ValueError as error:
        raise DirtyRecordError(f"not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise DirtyRecordError("JSON, but not an object")
    # Cheap check first: such nesting needs at least that many brackets.
    if value.count(b"{") + value.count(b"[") > deepest:
        _check_depth(tree, deepest)
    return tree


def id_text(value: Any) -> str:
    """An id as part of a key: strings unchanged, others as JSON."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _check_depth(tree: Any, deepest: int) -> None:
    """Checked before any of it is used: rows are never nested deeper than their record."""
    for _ in range(DEEPEST - deepest):
        tree = [tree]
    try:
        orjson.dumps(tree)
    except TypeError:
        raise DirtyRecordError(f"JSON that is nested deeper than {deepest} levels") from None
