"""One record, as clients and the deep scans of the broker see it."""

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
"""Bytes in a header key that are not UTF-8 become lone surrogates (`surrogateescape`) and are encoded unchanged."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
