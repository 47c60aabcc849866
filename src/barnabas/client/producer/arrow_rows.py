"""The columns of a RecordBatch that is to be sent, checked and brought into few forms; no row is read here.

key, value     binary (or text, which goes as UTF-8); value is required
headers        list of struct(key, value); null is none
topic          text; not needed if the caller names a topic, which wins
partition      whole number; null lets the partitioner choose
timestamp      any unit, or whole milliseconds; null, and -1 ms (`poll_arrow`: none was given), is now
offset, timestampType are what `poll_arrow` gives besides: of no meaning for a new record. Any other name is refused.
"""

from typing import Any, Final

from barnabas.client.producer.record import ProducerRecord
from barnabas.records.arrow_columns import load_pyarrow

_IGNORED: Final = ("offset", "timestampType")
_KNOWN: Final = ("key", "value", "headers", "topic", "partition", "timestamp")
NOT_GIVEN_MS: Final = -1


class ArrowRows:
    """`columns`: key and value binary or large_binary, headers as in `_headers`, topic string, numbers int32, int64."""

    __slots__ = ("_text", "columns", "num_rows", "topic")

    def __init__(self, rows: Any, topic: str | None, *, keep_text: tuple[str, ...] = ()) -> None:
        """`keep_text`: columns that have a serializer, which is given text where the column is text."""
        pyarrow = load_pyarrow()
        if not isinstance(rows, pyarrow.RecordBatch):
            raise TypeError(f"send_arrow takes a pyarrow.RecordBatch, not {type(rows).__name__}")
        if topic is not None and not isinstance(topic, str):
            raise TypeError(f"the topic must be text, not {type(topic).__name__}")
        rows.validate()
        self.num_rows: int = rows.num_rows
        self.topic = topic
        names = rows.schema.names
        _check_names(names, topic)
        self.columns: dict[str, Any] = {
            name: _normalized(pyarrow, name, rows.column(names.index(name)))
            for name in _KNOWN
            if name in names and (name != "topic" or topic is None)
        }
        self._text = {name for name in keep_text if name in names and _is_text(pyarrow, rows.column(name).type)}
        if "topic" in self.columns:
            _check_topics(self.columns["topic"])

    def record(self, row: int) -> ProducerRecord:
        """One row for the slow path."""
        cells: list[Any] = [self.columns[name][row].as_py() if name in self.columns else None for name in _KNOWN]
        key, value, headers, topic, partition, timestamp = cells
        return ProducerRecord(
            topic if self.topic is None else self.topic,
            value.decode() if value is not None and "value" in self._text else value,
            key.decode() if key is not None and "key" in self._text else key,
            partition,
            None if timestamp == NOT_GIVEN_MS else timestamp,
            headers_of(headers),
        )


def headers_of(given: list[dict[str, Any] | None] | None) -> list[tuple[Any, Any]] | None:
    """As `send` takes them. A null element is a header without a name, which is refused there."""
    return [_header(each) for each in given] if given else None


def _header(given: dict[str, Any] | None) -> tuple[Any, Any]:
    if given is None or given["key"] is None:
        return None, None
    return given["key"].decode("utf-8", "surrogateescape"), given["value"]


def _headers(pyarrow: Any) -> Any:
    """Names as bytes too: they may be no UTF-8 where other clients wrote them."""
    return pyarrow.list_(pyarrow.struct([("key", pyarrow.binary()), ("value", pyarrow.binary())]))


def _check_names(names: list[str], topic: str | None) -> None:
    unknown = [name for name in names if name not in _KNOWN and name not in _IGNORED]
    faults = [f"column {name} has no place in a record" for name in unknown]
    faults += [f"column {name} is there twice" for name in _KNOWN if names.count(name) > 1]
    if "value" not in names:
        faults.append("there is no column value")
    if topic is None and "topic" not in names:
        faults.append("there is no column topic, and no topic was named")
    if faults:
        raise ValueError(f"{'; '.join(faults)} (columns of a record: {', '.join(_KNOWN)})")


def _check_topics(column: Any) -> None:
    if column.null_count:
        row = next(row for row in range(len(column)) if not column[row].is_valid)
        raise ValueError(f"row {row} has no topic: fill the column, or name a topic")


def _normalized(pyarrow: Any, name: str, column: Any) -> Any:
    given = column.type
    if pyarrow.types.is_dictionary(given):
        column = column.dictionary_decode()
        given = column.type
    try:
        wanted = _wanted(pyarrow, name, given)
        if wanted is None:
            raise TypeError(f"it is {given}")
        # Times lose what is finer than milliseconds; everything else must keep its value.
        column = column if wanted == given else column.cast(wanted, safe=name != "timestamp")
        return column.cast(pyarrow.int64()) if name == "timestamp" else column
    except (TypeError, pyarrow.ArrowException) as error:
        raise TypeError(f"column {name} cannot be sent, it must be {_SHAPES[name]}: {error}") from None


def _wanted(pyarrow: Any, name: str, given: Any) -> Any:
    """What the column becomes; None if nothing fits."""
    types = pyarrow.types
    if types.is_null(given):
        return _FOR_NULL[name](pyarrow)
    if name in ("key", "value", "topic") and (
        _is_text(pyarrow, given) or (name != "topic" and _is_binary(types, given))
    ):
        if name == "topic":
            return pyarrow.string()
        large = types.is_large_string(given) or types.is_large_binary(given)
        return pyarrow.large_binary() if large else pyarrow.binary()
    if name == "partition" and types.is_integer(given):
        return pyarrow.int32()
    if name == "timestamp" and (types.is_timestamp(given) or types.is_integer(given)):
        return pyarrow.timestamp("ms", given.tz) if types.is_timestamp(given) else pyarrow.int64()
    if name == "headers" and (types.is_list(given) or types.is_large_list(given)):
        return _headers(pyarrow)
    return None


def _is_text(pyarrow: Any, given: Any) -> bool:
    types = pyarrow.types
    return bool(types.is_string(given) or types.is_large_string(given) or types.is_string_view(given))


def _is_binary(types: Any, given: Any) -> bool:
    return any(
        check(given)
        for check in (types.is_binary, types.is_large_binary, types.is_binary_view, types.is_fixed_size_binary)
    )


_SHAPES: Final = {
    "key": "binary or text",
    "value": "binary or text",
    "headers": "a list of struct(key: text, value: binary)",
    "topic": "text",
    "partition": "whole numbers",
    "timestamp": "a timestamp, or whole milliseconds",
}
_FOR_NULL: Final[dict[str, Any]] = {
    "key": lambda pyarrow: pyarrow.binary(),
    "value": lambda pyarrow: pyarrow.binary(),
    "headers": _headers,
    "topic": lambda pyarrow: pyarrow.string(),
    "partition": lambda pyarrow: pyarrow.int32(),
    "timestamp": lambda pyarrow: pyarrow.int64(),
}
