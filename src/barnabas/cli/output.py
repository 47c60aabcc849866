"""What commands print: tables for people, JSON for programs.

A table has its columns aligned and nothing else, so that `awk` and `cut` work too. JSON is one document with Python's
names of the fields.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from barnabas.cli.exit_status import OK

GAP = "  "
NOTHING = "-"


class Table(NamedTuple):
    headers: Sequence[str]
    rows: Iterable[Sequence[object]]


class Output(NamedTuple):
    """What a command has to show: a document for --json, else lines, tables and named fields, in this order."""

    document: Any
    text: Iterable[str | Table | Mapping[str, object]]
    status: int = OK
    complaint: str = ""
    """Why the status is not OK: printed on stderr, after the command's name."""


def rows_output(names: Sequence[str], rows: Iterable[Sequence[object]], status: int = OK) -> Output:
    """A table whose columns are called like the fields of its JSON: client_id is CLIENT-ID."""
    listed = list(rows)
    headers = [name.upper().replace("_", "-") for name in names]
    return Output([dict(zip(names, row)) for row in listed], [Table(headers, listed)], status)


def show(output: Output, *, as_json: bool) -> None:
    if as_json:
        print_json(output.document)
        return
    for part in output.text:
        if isinstance(part, Table):
            print_table(part.headers, part.rows)
        elif isinstance(part, str):
            print(part)
        else:
            print_fields(part)


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """Numbers to the right, all else to the left; None is a dash."""
    given = [list(row) for row in rows]
    cells = [[_cell(value) for value in row] for row in given]
    numeric = [_is_numeric([row[column] for row in given]) for column in range(len(headers))]
    widths = [max(len(line[column]) for line in [list(headers), *cells]) for column in range(len(headers))]
    for line in [list(headers), *cells]:
        shown = [text.rjust(width) if right else text.ljust(width) for text, width, right in zip(line, widths, numeric)]
        print(GAP.join(shown).rstrip())


def print_fields(fields: Mapping[str, object]) -> None:
    """One thing: a name and a value per line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        print(f"{name:<{width}}{GAP}{_cell(value)}")


def print_json(value: Any) -> None:
    import json

    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False)
    print()


def plain(value: Any) -> Any:
    """Dataclasses, named tuples, enums, sets and bytes as what JSON knows; it has no NaN and no infinity."""
    from dataclasses import fields, is_dataclass
    from enum import Enum
    from math import isfinite

    if isinstance(value, Enum):
        return value.value if isinstance(value, str) else value.name
    if is_dataclass(value) and not isinstance(value, type):
        return {field.name: plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return plain(value._asdict())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, set | frozenset):
        return [plain(each) for each in sorted(value)]
    if isinstance(value, list | tuple):
        return [plain(each) for each in value]
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not isfinite(value):
        return None
    if isinstance(value, Exception):
        return str(value)
    return value


def moment(milliseconds: int | None) -> str | None:
    """A timestamp as people read it, in UTC."""
    if milliseconds is None or milliseconds < 0:
        return None
    from datetime import UTC, datetime, timedelta

    when = datetime(1970, 1, 1, tzinfo=UTC) + timedelta(milliseconds=milliseconds)
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def counted(number: int, noun: str) -> str:
    """`1 broker`, `3 brokers`."""
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _is_numeric(column: Sequence[object]) -> bool:
    given = [value for value in column if value is not None]
    return bool(given) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in given)


def _cell(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(str(each) for each in value) or NOTHING
    return str(value)
