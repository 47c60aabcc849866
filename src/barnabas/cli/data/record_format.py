"""How `barnabas consume` prints records: kcat's one-letter format, or lines of JSON with kcat's names.

    write = compiled("%t %p %o %k %s\\n")
    output.write(write(records))

A format is taken apart once, and records are printed by columns: a list for each letter, then all lists together. That
takes a fraction of what a call for each record and letter would. Null is an empty text (lengths -1), or `null`.
"""

import struct
from collections.abc import Callable, Sequence
from itertools import chain, repeat
from typing import Any

from barnabas.cli.command import UsageError
from barnabas.cli.data.escapes import unescaped
from barnabas.records.codec import ConsumerRecord
from barnabas.records.header import TimestampType

NO_NULL_TEXT = b""
HEADER_NULL = b"NULL"

Records = Sequence[ConsumerRecord]
Write = Callable[[Records], bytes]
Column = Callable[[Records], list[bytes]]


def compiled(text: str, null: bytes = NO_NULL_TEXT) -> Write:
    """Raises UsageError for a letter that means nothing."""
    parts = _parts(text, _columns(null))

    def write(records: Records) -> bytes:
        count = len(records)
        columns = [repeat(part, count) if type(part) is bytes else part(records) for part in parts]
        return b"".join(chain.from_iterable(zip(*columns)))

    return write


def _parts(text: str, columns: dict[str, Column]) -> list[Any]:
    parts: list[Any] = []
    pieces = text.split("%")
    parts.append(unescaped(pieces.pop(0)))
    while pieces:
        piece = pieces.pop(0)
        if not piece:  # %% is a percent sign
            parts.append(b"%" + unescaped(pieces.pop(0) if pieces else ""))
            continue
        if piece[0] not in columns:
            known = " ".join(f"%{letter}" for letter in columns)
            raise UsageError(f"-f: %{piece[0]} means nothing here; there are {known} %%")
        parts += [columns[piece[0]], unescaped(piece[1:])]
    return [part for part in parts if part != b""]


def _columns(null: bytes) -> dict[str, Column]:
    return {
        "s": lambda records: [null if (value := each.value) is None else value for each in records],
        "S": lambda records: [b"%d" % _size(each.value) for each in records],
        "R": lambda records: [struct.pack(">i", _size(each.value)) for each in records],
        "k": lambda records: [null if (key := each.key) is None else key for each in records],
        "K": lambda records: [b"%d" % _size(each.key) for each in records],
        "T": lambda records: [b"%d" % each.timestamp for each in records],
        "h": lambda records: [_headers(each) for each in records],
        "t": lambda records: [each.topic.encode() for each in records],
        "p": lambda records: [b"%d" % each.partition for each in records],
        "o": lambda records: [b"%d" % each.offset for each in records],
    }


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _headers(record: ConsumerRecord) -> bytes:
    return b",".join(
        [name.encode() + b"=" + (HEADER_NULL if value is None else value) for name, value in record.headers]
    )


_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: "create", TimestampType.LOG_APPEND_TIME: "logappend"}


def json_lines(records: Records) -> bytes:
    return b"".join([_json_line(each) for each in records])


def _json_line(record: ConsumerRecord) -> bytes:
    """kcat's names (-J), headers as a list of name and value, one after the other. Bytes that are not UTF-8 come as
    base64 under key_base64 and payload_base64."""
    import json

    row: dict[str, object] = {
        "topic": record.topic,
        "partition": record.partition,
        "offset": record.offset,
        "tstype": _TIMESTAMP_TYPES.get(record.timestamp_type, "unknown"),
        "ts": record.timestamp,
    }
    if record.headers:
        row["headers"] = [part for name, value in record.headers for part in (name, _replaced(value))]
    _put(row, "key", record.key)
    _put(row, "payload", record.value)
    return json.dumps(row, ensure_ascii=False, separators=(",", ":")).encode() + b"\n"


def _put(row: dict[str, object], name: str, content: bytes | None) -> None:
    try:
        row[name] = None if content is None else content.decode()
    except UnicodeDecodeError:
        import base64

        row[f"{name}_base64"] = base64.b64encode(content or b"").decode()


def _replaced(value: bytes | None) -> str | None:
    return None if value is None else value.decode(errors="replace")
