"""Runs a filter over the columns of `poll_arrow`: the numbers of the rows that match.

What can be is done on whole columns in C; only comparisons inside of JSON look at single values, and only at rows that
the cheaper parts of an `and` have left over. A missing value matches nothing but `!=`, `not` and `== null`.
"""

import json
from datetime import UTC, datetime
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from barnabas.console.filters.nodes import And, Compare, Literal, Node, Not, Or, Text, cost

MISSING = object()
_ORDER = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}


def select_rows(node: Node | None, rows: Any) -> Any:
    """The indexes of matching rows, ascending, as an Arrow array."""
    if node is None:
        return pa.array(range(rows.num_rows), pa.uint64())
    if isinstance(node, And):
        chosen = pa.array(range(rows.num_rows), pa.uint64())
        for part in sorted(node.parts, key=cost):
            found = select_rows(part, rows.take(chosen))
            chosen = chosen.take(found)
            if not len(chosen):
                break
        return chosen
    if isinstance(node, Or):
        found = pa.concat_arrays([select_rows(part, rows) for part in node.parts])
        distinct = pc.unique(found)
        return distinct.take(pc.sort_indices(distinct))
    if isinstance(node, Not):
        matched = set(select_rows(node.part, rows).to_pylist())
        return pa.array([row for row in range(rows.num_rows) if row not in matched], pa.uint64())
    if isinstance(node, Text):
        return pc.indices_nonzero(_text_mask(node.text, rows))
    return pc.indices_nonzero(_compare_mask(node, rows))


def milliseconds(text: str) -> int | None:
    """An ISO time; UTC unless it says otherwise."""
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        return None
    return int((moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp() * 1000)


def _text_mask(text: str, rows: Any) -> Any:
    needle = text.encode()
    mask = _known(pc.match_substring(rows.column("value"), needle))
    mask = pc.or_(mask, _known(pc.match_substring(rows.column("key"), needle)))
    headers = rows.column("headers")
    if headers.null_count == len(headers):
        return mask
    flat = headers.flatten()
    in_headers = pc.or_(
        _known(pc.match_substring(flat.field("key"), text)), _known(pc.match_substring(flat.field("value"), needle))
    )
    owners = set(pc.list_parent_indices(headers).filter(in_headers).to_pylist())
    return pc.or_(mask, pa.array([row in owners for row in range(rows.num_rows)])) if owners else mask


def _compare_mask(node: Compare, rows: Any) -> Any:
    if node.field in ("partition", "offset", "topic"):
        return _known(_column_mask(rows.column(node.field), node.operator, node.literal))
    if node.field == "timestamp":
        at = milliseconds(node.literal) if isinstance(node.literal, str) else node.literal
        return _known(_column_mask(rows.column("timestamp").cast(pa.int64()), node.operator, at))
    if node.field == "size":
        sizes = pc.add(*(pc.coalesce(pc.binary_length(rows.column(name)), 0) for name in ("key", "value")))
        return _known(_column_mask(sizes, node.operator, node.literal))
    if node.field == "header":
        return _values_mask([_header(each, str(node.path[0])) for each in rows.column("headers").to_pylist()], node)
    column = rows.column(node.field)
    if not node.path and (node.literal is None or isinstance(node.literal, str)):
        return _bytes_mask(column, node)
    return _values_mask([_inside(each, node.path) for each in column.to_pylist()], node)


def _bytes_mask(column: Any, node: Compare) -> Any:
    if node.literal is None:
        is_null = pc.is_null(column)
        return is_null if node.operator == "==" else pc.invert(is_null)
    wanted = str(node.literal).encode()
    if node.operator == "!=":
        return pc.invert(_known(pc.equal(column, pa.scalar(wanted, column.type))))
    if node.operator == "matches":
        return _known(pc.match_substring_regex(column, str(node.literal)))
    return _known(_column_mask(column, node.operator, wanted))


def _column_mask(column: Any, operator: str, literal: Any) -> Any:
    if operator == "contains":
        return pc.match_substring(column, literal)
    if operator == "startswith":
        return pc.starts_with(column, literal)
    if operator == "endswith":
        return pc.ends_with(column, literal)
    if operator == "matches":
        return pc.match_substring_regex(column, literal)
    value = pa.scalar(literal) if isinstance(literal, int | float) else pa.scalar(literal, column.type)
    if operator in ("==", "!="):
        return (pc.equal if operator == "==" else pc.not_equal)(column, value)
    return _ORDER[operator](column, value)


def _known(mask: Any) -> Any:
    return pc.fill_null(mask, False)


def _header(headers: list[dict[str, Any]] | None, name: str) -> Any:
    for each in reversed(headers or ()):
        if each["key"] == name:
            value = each["value"]
            return None if value is None else value.decode("utf-8", "replace")
    return MISSING


def _inside(raw: bytes | None, path: tuple[str | int, ...]) -> Any:
    if raw is None:
        return MISSING if path else None
    try:
        value = json.loads(raw)
    except (ValueError, RecursionError):
        return MISSING
    for step in path:
        if isinstance(value, dict) and str(step) in value:
            value = value[str(step)]
        elif isinstance(value, list) and str(step).isdecimal() and int(step) < len(value):
            value = value[int(step)]
        else:
            return MISSING
    return value


def _values_mask(values: list[Any], node: Compare) -> Any:
    if node.operator == "matches":
        texts = pa.array([None if each is MISSING else _text(each) for each in values], pa.string())
        return _known(pc.match_substring_regex(texts, str(node.literal)))
    return pa.array([_holds(each, node.operator, node.literal) for each in values], pa.bool_())


def _text(value: Any) -> str | None:
    if value is None or isinstance(value, str):
        return value
    return json.dumps(value, ensure_ascii=False)


def _holds(value: Any, operator: str, literal: Literal) -> bool:
    if operator == "!=":
        return not _holds(value, "==", literal)
    if value is MISSING:
        return operator == "==" and literal is None
    if operator == "==":
        if isinstance(literal, bool) or literal is None or isinstance(value, bool):
            return value is literal
        if isinstance(value, str) and isinstance(literal, int | float):
            return value == str(literal)
        return bool(value == literal)
    if operator in ("contains", "startswith", "endswith"):
        text = _text(value) or ""
        wanted = str(literal)
        return wanted in text if operator == "contains" else getattr(text, operator)(wanted)
    if isinstance(literal, str) != isinstance(value, str):
        number = _number(value)
        if number is None or isinstance(literal, str):
            return False
        value = number
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return False
    below, equal = value < literal, value == literal  # type: ignore[operator]
    return {"<": below, "<=": below or equal, ">": not (below or equal), ">=": not below}[operator]


def _number(value: Any) -> float | None:
    try:
        return float(value)
    except (TypeError, ValueError):
        return None
