"""Backslash escapes in what people type for separators and formats: \\n, \\t, \\x1f, as kcat reads them."""

import os
import re

_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{1,2})|(.))", re.DOTALL)
_LETTERS = {b"n": b"\n", b"r": b"\r", b"t": b"\t", b"0": b"\0", b"\\": b"\\"}


def unescaped(text: str) -> bytes:
    """The bytes meant, be they text or not; a backslash before any other letter stands for that letter."""
    return _ESCAPE.sub(_meant, os.fsencode(text))


def _meant(match: re.Match[bytes]) -> bytes:
    if match[1] is not None:
        return bytes([int(match[1], 16)])
    return _LETTERS.get(match[2], match[2])
