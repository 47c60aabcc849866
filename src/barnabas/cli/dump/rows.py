"""Files with one entry after the other, as JSON and as Kafka's lines: a row has both."""

from typing import Any, NamedTuple


class Row(NamedTuple):
    text: str
    fields: dict[str, Any] | None
    """None: this is for people only."""
