"""A record as the page shows it: bytes as JSON, text or hex, cut to what a row of a table can hold."""

import json
from typing import Any

PREVIEW = 400
FULL = 1 << 20
"""Longer values are cut in the detail view too; the export has them whole."""
HEX_BYTES = 4096
DECODERS = ("auto", "json", "text", "hex")


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
