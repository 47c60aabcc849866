"""Keys, headers and separators that are no text, typed as `$'\\xff'`."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

BYTE = os.fsdecode(b"\xff")


def test_bytes_are_produced_and_consumed(barnabas: Any, topic: str, tmp_path: Path) -> None:
    lines = tmp_path / os.fsdecode(b"lines\xff")
    lines.write_bytes(b"one\xfe\xfftwo\n")
    assert barnabas("produce", topic, str(lines), "-k", BYTE, "-H", f"h=a{BYTE}", "-p", "0").status == 0
    assert barnabas("produce", topic, str(lines), "-K", os.fsdecode(b"\xfe\xff"), "-D", "\\n", "-p", "1").status == 0
    fixed, split = (barnabas("consume", topic, "-e", "-J", "-p", str(number)).json for number in range(2))
    assert fixed["key_base64"] == "/w==" and fixed["headers"] == ["h", "a\N{REPLACEMENT CHARACTER}"]
    assert split["key"] == "one" and split["payload"] == "two"
