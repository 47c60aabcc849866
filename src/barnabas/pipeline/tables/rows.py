"""Turns the records of a DWD or DIM topic into rows of a table. Pure; runs on executors, the same for every place.

Three kinds of topics: logs (one row per record), facts (the row, and in `_table`, `_operation`, `_ts` what happened to
it and when), dimensions (the row; a null value deletes it). Every row has its origin in `_partition` and `_offset`, and
rows with a key have it in `_key`, so that every place can find duplicates and the newer of two rows.

Columns are those that the rows have. Numbers in the logs are integers; every other column is text, because change
records have the same column as a number (Maxwell, Debezium) or as a string (Canal), and a column has one type. A record
that makes no row is rejected with a reason; others are not affected.
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, NamedTuple

import pyarrow

from barnabas.pipeline.events import ERROR
from barnabas.pipeline.ods_records import DirtyRecordError, read_object
from barnabas.pipeline.partition_runs import origin_of, partition_runs

TableKind = Literal["log", "fact", "dimension"]
PARTITION: Final = "_partition"
OFFSET: Final = "_offset"
KEY: Final = "_key"
DELETED: Final = "_deleted"
LINEAGE: Final[dict[TableKind, tuple[str, ...]]] = {
    "log": (PARTITION, OFFSET),
    "fact": ("_table", "_operation", "_ts", KEY, PARTITION, OFFSET),
    "dimension": (KEY, PARTITION, OFFSET),
}
IDENTITY: Final[dict[TableKind, tuple[str, ...]]] = {
    "log": (PARTITION, OFFSET),
    "fact": ("_table", KEY),
    "dimension": (KEY,),
}
"""The identity of a row: the newer of two records with the same identity replaces the older."""
LOG_FIGURES: Final = frozenset(
    {
        "action_ts",
        "display_order",
        "display_pos_id",
        "during_time",
        "error_code",
        "loading_time_ms",
        "open_ad_id",
        "open_ad_ms",
        "open_ad_skip_ms",
        "ts",
    }
)
WHOLE_EVENT: Final = "event"
"""The column of the error log with the whole record."""
_OPERATIONS: Final = ("I", "U", "D")
_INT64: Final = range(-(1 << 63), 1 << 63)
_MOST_DIGITS: Final = 19
"""Digits of an int64; Python refuses to parse thousands of them."""
_DEEPEST: Final = 252
"""Maximum nesting of a record: it is encoded again two levels deeper, and 254 levels can be encoded."""


class TableSpec(NamedTuple):
    kind: TableKind
    key: tuple[str, ...] = ()
    """The columns of the record's key, if known."""
    topic_id: str = ""
    """The id of the topic when the query started; offsets of another topic of this name are not comparable."""


KeyAndValue = tuple[bytes | None, bytes | None]
RowParts = tuple[tuple[Any, ...], dict[str, Any], bool]
"""(identity, columns, whether it is deleted)"""


class RejectedRecordError(Exception):
    """The text is the reason."""


class TableRow(NamedTuple):
    offset: int
    identity: tuple[Any, ...]
    columns: dict[str, Any]
    """As in JSON, with the lineage columns."""
    deleted: bool
    record: int
    """The index of its record in the task."""


class RejectedRecord(NamedTuple):
    offset: int
    key: bytes | None
    value: bytes | None
    reason: str


@dataclass(frozen=True, slots=True)
class TaskRecords:
    """What a task writes to one table: the records of a range of one partition, in order."""

    topic: str
    spec: TableSpec
    partition: int
    batches: tuple[pyarrow.RecordBatch, ...]
    """With the columns of the source; never empty."""

    @property
    def first_offset(self) -> int:
        return int(self.batches[0].column("offset")[0].as_py())

    @property
    def last_offset(self) -> int:
        return int(self.batches[-1].column("offset")[-1].as_py())


@dataclass(slots=True)
class TaskRows:
    """The rows of a task's records, and the rejected records."""

    records: list[KeyAndValue] = field(default_factory=list)
    rows: list[TableRow] = field(default_factory=list)
    rejected: list[RejectedRecord] = field(default_factory=list)


def read_tasks(batches: Iterable[pyarrow.RecordBatch], specs: Mapping[str, TableSpec]) -> Iterator[TaskRecords]:
    """The input of a task, one partition after the other. Only one of them is in memory."""
    held: list[pyarrow.RecordBatch] = []
    for batch in batches:
        for run in partition_runs(batch):
            if held and origin_of(held[0]) != origin_of(run):
                yield _records(held, specs)
                held = []
            held.append(run)
    if held:
        yield _records(held, specs)


def _records(batches: list[pyarrow.RecordBatch], specs: Mapping[str, TableSpec]) -> TaskRecords:
    topic, partition = origin_of(batches[0])
    return TaskRecords(topic, specs[topic], partition, tuple(batches))


def read_rows(task: TaskRecords) -> TaskRows:
    found = TaskRows()
    read = _READERS[task.spec.kind]
    for batch in task.batches:
        columns = (batch.column(name).to_pylist() for name in ("offset", "key", "value"))
        for offset, key, value in zip(*columns):
            try:
                identity, columns_of_row, deleted = read(task, offset, key, value)
            except RejectedRecordError as error:
                found.rejected.append(RejectedRecord(offset, key, value, str(error)))
            else:
                found.rows.append(TableRow(offset, identity, columns_of_row, deleted, len(found.records)))
            found.records.append((key, value))
    return found


def columns_of(rows: Iterable[TableRow]) -> list[str]:
    """Every column of any row, in the order of appearance."""
    names: dict[str, None] = {}
    for row in rows:
        if names.keys() != row.columns.keys():
            names |= dict.fromkeys(row.columns)
    return list(names)


def newest(rows: Iterable[TableRow]) -> list[TableRow]:
    """The last row of each identity, in sorted order so that two writers cannot deadlock."""
    last = {row.identity: row for row in rows}
    return [last[identity] for identity in sorted(last)]


def _log_row(task: TaskRecords, offset: int, key: bytes | None, value: bytes | None) -> RowParts:
    record = _object(value)
    columns = _error_columns(record) if task.topic == ERROR else _own(record, "log")
    for name in LOG_FIGURES:
        if name in columns:
            columns[name] = _whole_number(columns[name], name)
    columns[PARTITION], columns[OFFSET] = task.partition, offset
    return (task.partition, offset), columns, False


def _error_columns(event: dict[str, Any]) -> dict[str, Any]:
    """The error log has whole events: common fields become columns, and one more has the whole event."""
    common, fault = event.get("common"), event.get("err")
    get = fault.get if isinstance(fault, dict) else {}.get
    mid = common.get("mid") if isinstance(common, dict) else None
    return {
        "mid": mid,
        "error_code": get("error_code"),
        "msg": get("msg"),
        "ts": event.get("ts"),
        WHOLE_EVENT: event,
    }


def _fact_row(task: TaskRecords, offset: int, key: bytes | None, value: bytes | None) -> RowParts:
    fact = _object(value)
    table, operation, data = fact.get("table"), fact.get("operation"), fact.get("data")
    if not isinstance(table, str) or operation not in _OPERATIONS or not isinstance(data, dict):
        raise RejectedRecordError("a fact without table, operation (I, U or D) or data")
    text = _key_text(key)
    lineage = (table, operation, _whole_number(fact.get("ts"), "ts"), text, task.partition, offset)
    return (table, text), _own(data, "fact") | dict(zip(LINEAGE["fact"], lineage)), False


def _dimension_row(task: TaskRecords, offset: int, key: bytes | None, value: bytes | None) -> RowParts:
    text = _key_text(key)
    columns = {} if value is None else _own(_object(value), "dimension")
    lineage = dict(zip(LINEAGE["dimension"], (text, task.partition, offset)))
    return (text,), columns | lineage, value is None


_READERS: Final = {"log": _log_row, "fact": _fact_row, "dimension": _dimension_row}


def _own(columns: dict[str, Any], kind: TableKind) -> dict[str, Any]:
    """A column of the row with the name of one of ours gets one more underscore."""
    taken = (*LINEAGE[kind], DELETED)
    if columns.keys().isdisjoint(taken):
        return columns
    return {f"_{name}" if name in taken else name: value for name, value in columns.items()}


def _object(value: bytes | None) -> dict[str, Any]:
    try:
        return read_object(value, _DEEPEST)
    except DirtyRecordError as error:
        raise RejectedRecordError(str(error)) from None


def _key_text(key: bytes | None) -> str:
    if key is None:
        raise RejectedRecordError("the record has no key")
    try:
        text = key.decode()
    except UnicodeDecodeError:
        raise RejectedRecordError("the key is not UTF-8") from None
    if "\0" in text:
        raise RejectedRecordError("the key has a zero byte")
    return text


def _whole_number(value: Any, name: str) -> int | None:
    if value is None or (type(value) is int and value in _INT64):
        return value
    if isinstance(value, float) and value.is_integer() and int(value) in _INT64:
        return int(value)
    if isinstance(value, str) and _has_digits_only(value) and int(value) in _INT64:
        return int(value)
    raise RejectedRecordError(f"{name} is not an integer: {str(value)[:80]!r}")


def _has_digits_only(text: str) -> bool:
    digits = text.removeprefix("-")
    return digits.isascii() and digits.isdecimal() and len(digits) <= _MOST_DIGITS
