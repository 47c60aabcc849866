"""ODS records: how their JSON is read, and what the rules of events and changes make of one: rows, or a reason.

The only error is DirtyRecordError, whatever a record holds: any other would end the query because of one record.
"""

from typing import Any, Final, NamedTuple

import orjson

DIRTY_TOPIC: Final = "ods_dirty"
DEEPEST: Final = 254
"""Levels of lists and objects that can be written again; more of them can be read."""


class OutputRow(NamedTuple):
    topic: str
    key: bytes | None
    value: bytes | None
    """None removes the key from a dimension."""


class DirtyRecordError(Exception):
    """The record goes to `ods_dirty`; the text is the reason, for the people who look after its producer."""


def read_object(value: bytes | None, deepest: int = DEEPEST) -> dict[str, Any]:
    """`deepest`: fewer levels, for one that is written again inside something else."""
    if value is None:
        raise DirtyRecordError("the record has no value")
    try:
        tree = orjson.loads(value)
    except ValueError as error:
        raise DirtyRecordError(f"not JSON: {error}") from None
    if not isinstance(tree, dict):
        raise DirtyRecordError("JSON, but no object")
    # Hardly a record has that many brackets, and it takes that many to nest so deep.
    if value.count(b"{") + value.count(b"[") > deepest:
        _check_depth(tree, deepest)
    return tree


def id_text(value: Any) -> str:
    """An id as part of a key: strings as they are, others as JSON writes them."""
    return value if isinstance(value, str) else orjson.dumps(value).decode()


def _check_depth(tree: Any, deepest: int) -> None:
    """Before any of it is used: rows are never nested deeper than their record."""
    for _ in range(DEEPEST - deepest):
        tree = [tree]
    try:
        orjson.dumps(tree)
    except TypeError:
        raise DirtyRecordError(f"JSON that is nested deeper than {deepest} levels") from None
