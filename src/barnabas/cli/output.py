"""What commands print: tables for people, JSON for programs.

A table has its columns aligned and nothing else, so that `awk` and `cut` work too. JSON is one document with Python's
names of the fields.
"""

import sys
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from argparse import Namespace

GAP = "  "
NOTHING = "-"


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
    """One thing: a name and a value a line."""
    width = max(map(len, fields), default=0)
    for name, value in fields.items():
        print(f"{name:<{width}}{GAP}{_cell(value)}")


def print_json(value: Any) -> None:
    import json

    json.dump(plain(value), sys.stdout, indent=2, ensure_ascii=False)
    print()


def print_done(options: "Namespace", done: Sequence[Mapping[str, object]], lines: Iterable[str]) -> None:
    """What a command has changed: an object for each thing with --json, else the lines."""
    if options.json:
        print_json(list(done))
        return
    for line in lines:
        print(line)


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
    told = [value for value in column if value is not None]
    return bool(told) and all(isinstance(value, int | float) and not isinstance(value, bool) for value in told)


def _cell(value: object) -> str:
    if value is None:
        return NOTHING
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple | set | frozenset):
        return ",".join(str(each) for each in value) or NOTHING
    return str(value)
