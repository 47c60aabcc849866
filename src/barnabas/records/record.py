"""One record, as clients and the deep scans of the broker see it."""

from typing import NamedTuple

Headers = tuple[tuple[str, bytes | None], ...]
"""Bytes in a header key that are no UTF-8 come as lone surrogates (`surrogateescape`) and go back as they were."""


class Record(NamedTuple):
    offset: int
    timestamp: int
    key: bytes | None
    value: bytes | None
    headers: Headers = ()
