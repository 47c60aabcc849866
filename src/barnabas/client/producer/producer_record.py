"""One record as `send` was given it: what interceptors see and may replace."""

from collections.abc import Sequence
from typing import Any, NamedTuple


class ProducerRecord(NamedTuple):
    topic: str
    value: Any = None
    key: Any = None
    partition: int | None = None
    timestamp: int | None = None
    headers: Sequence[tuple[str, bytes | None]] | None = None
