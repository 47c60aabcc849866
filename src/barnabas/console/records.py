"""A record as the page shows it: bytes as JSON, text, hex or rows of Arrow, cut to what a row of a table can hold.

An export has them whole: as text if they are UTF-8, else in base64.
"""

import base64
import json
from typing import Any

PREVIEW = 400
FULL = 1 << 20
"""Longer values are cut in the detail view too; the export has them whole."""
HEX_BYTES = 4096
DECODERS = ("auto", "json", "text", "hex", "arrow")
MOST_ARROW_ROWS = 100
_ARROW_STREAM = b"\xff\xff\xff\xff"
"""What every message of Arrow's stream format begins with."""


def row_of(record: dict[str, Any], decoder: str, limit: int = PREVIEW) -> dict[str, Any]:
    """From a row of `poll_arrow`, as Python values."""
    timestamp = record["timestamp"]
    return {
        "partition": record["partition"],
        "offset": record["offset"],
        "timestamp": int(timestamp.timestamp() * 1000),
        "timestampType": "LogAppendTime" if record["timestampType"] == 1 else "CreateTime",
        "key": shown(record["key"], decoder, limit),
        "value": shown(record["value"], decoder, limit),
        "headers": [
            {"name": each["key"], "value": shown(each["value"], "auto", limit)} for each in record["headers"] or ()
        ],
    }


def shown(raw: bytes | None, decoder: str, limit: int = PREVIEW) -> dict[str, Any]:
    """`kind` says how it was read: null, json, text or hex; `cut` that there is more."""
    if raw is None:
        return {"kind": "null", "text": "", "size": 0, "cut": False}
    if decoder == "hex":
        return _hex(raw, limit)
    if decoder == "arrow" or (decoder == "auto" and raw.startswith(_ARROW_STREAM)):
        text = arrow_text(raw)
        if text is not None:
            return {"kind": "arrow", "text": text[:limit], "size": len(raw), "cut": len(text) > limit}
    piece = raw[: limit * 4]
    try:
        text = piece.decode()
    except UnicodeDecodeError as error:
        # A cut through the middle of a character is no fault of the text.
        if len(piece) < len(raw) and error.start >= len(piece) - 3:
            text = piece[: error.start].decode()
        elif decoder == "text":
            text = piece.decode("utf-8", "replace")
        else:
            return _hex(raw, limit)
    if decoder == "auto" and any(ord(each) < 32 and each not in "\t\n\r" for each in text[:limit]):
        return _hex(raw, limit)
    kind = "json" if decoder in ("auto", "json") and _is_json(raw) else "text"
    return {"kind": kind, "text": text[:limit], "size": len(raw), "cut": len(raw) > len(text[:limit].encode())}


def arrow_text(raw: bytes) -> str | None:
    """The first rows of a message in Arrow's stream format, a JSON object per line; None if it is none."""
    import pyarrow as pa

    lines: list[str] = []
    try:
        with pa.ipc.open_stream(raw) as batches:
            for batch in batches:
                rows = batch.slice(0, MOST_ARROW_ROWS - len(lines)).to_pylist()
                lines += [json.dumps(row, default=str, ensure_ascii=False) for row in rows]
                if len(lines) >= MOST_ARROW_ROWS:
                    break
    except (pa.ArrowException, OSError, ValueError):
        return None
    return "\n".join(lines)


def export_row(record: dict[str, Any]) -> dict[str, Any]:
    """One record of an export: nothing is cut."""
    row = {
        "partition": record["partition"],
        "offset": record["offset"],
        "timestamp": int(record["timestamp"].timestamp() * 1000),
    }
    headers = [[each["key"], each["value"]] for each in record["headers"] or ()]
    for name in ("key", "value"):
        row |= _exported(name, record[name])
    row["headers"] = [{"name": name, **_exported("value", value)} for name, value in headers]
    return row


def _exported(name: str, raw: bytes | None) -> dict[str, Any]:
    if raw is None:
        return {name: None}
    try:
        return {name: raw.decode()}
    except UnicodeDecodeError:
        return {f"{name}Base64": base64.b64encode(raw).decode()}


def _hex(raw: bytes, limit: int) -> dict[str, Any]:
    size = min(limit, HEX_BYTES)
    return {"kind": "hex", "text": raw[:size].hex(" "), "size": len(raw), "cut": len(raw) > size}


def _is_json(raw: bytes) -> bool:
    if not raw or raw.lstrip()[:1] not in (b"{", b"["):
        return False
    if len(raw) > FULL:
        return True  # by its first character: parsing it would take longer than reading it
    try:
        json.loads(raw)
    except (ValueError, RecursionError):
        return False
    return True
