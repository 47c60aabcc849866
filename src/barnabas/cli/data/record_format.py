"""How `barnabas consume` prints a record: kcat's one-letter format, or a line of JSON with kcat's names.

    write = compiled("%t %p %o %k %s\\n")
    output.write(write(record))

A format is taken apart once. Null is an empty text (lengths -1), or what `null` says.
"""

import struct
from collections.abc import Callable
from typing import Any

from barnabas.cli.command import UsageError
from barnabas.cli.data.escapes import unescaped
from barnabas.records.codec import ConsumerRecord
from barnabas.records.header import TimestampType

NO_NULL_TEXT = b""
HEADER_NULL = b"NULL"

Part = Callable[[ConsumerRecord], bytes]


def compiled(text: str, null: bytes = NO_NULL_TEXT) -> Part:
    """Raises UsageError for a letter that means nothing."""
    parts = _parts(text, _fields(null))

    def write(record: ConsumerRecord) -> bytes:
        return b"".join([part if type(part) is bytes else part(record) for part in parts])

    return write


def _parts(text: str, fields: dict[str, Part]) -> list[Any]:
    parts: list[Any] = []
    pieces = text.split("%")
    parts.append(unescaped(pieces.pop(0)))
    while pieces:
        piece = pieces.pop(0)
        if not piece:  # %% is a percent sign
            parts.append(b"%" + unescaped(pieces.pop(0) if pieces else ""))
            continue
        if piece[0] not in fields:
            known = " ".join(f"%{letter}" for letter in fields)
            raise UsageError(f"-f: %{piece[0]} means nothing here; there are {known} %%")
        parts += [fields[piece[0]], unescaped(piece[1:])]
    return [part for part in parts if part != b""]


def _fields(null: bytes) -> dict[str, Part]:
    return {
        "s": lambda record: null if record.value is None else record.value,
        "S": lambda record: b"%d" % _size(record.value),
        "R": lambda record: struct.pack(">i", _size(record.value)),
        "k": lambda record: null if record.key is None else record.key,
        "K": lambda record: b"%d" % _size(record.key),
        "T": lambda record: b"%d" % record.timestamp,
        "h": _headers,
        "t": lambda record: record.topic.encode(),
        "p": lambda record: b"%d" % record.partition,
        "o": lambda record: b"%d" % record.offset,
    }


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _headers(record: ConsumerRecord) -> bytes:
    return b",".join(
        [name.encode() + b"=" + (HEADER_NULL if value is None else value) for name, value in record.headers]
    )


_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: "create", TimestampType.LOG_APPEND_TIME: "logappend"}


def json_line(record: ConsumerRecord) -> bytes:
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
