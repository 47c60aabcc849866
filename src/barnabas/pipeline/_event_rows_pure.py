"""The rows of events, collected by topic into columns: the pure twin of `_event_rows`, with the same results."""

from typing import Any, Final

import pyarrow

from barnabas.pipeline.events import LOG_TOPICS, EventSplitter, RepairIsNew

_BINARY: Final = pyarrow.binary()


class EventRows:
    """`add` the events of a partition in their order; `take` returns the rows since the last call."""

    def __init__(self, repair_is_new: RepairIsNew) -> None:
        self._split = EventSplitter(repair_is_new).split
        self._rows: dict[str, tuple[list[bytes | None], list[bytes | None]]] = {topic: ([], []) for topic in LOG_TOPICS}
        self.row_count = 0
        self.size_bytes = 0
        """Of the values."""

    def add(self, value: bytes | None) -> None:
        """All rows of the event, or DirtyRecordError and none."""
        for topic, key, row in self._split(value):
            keys, rows = self._rows[topic]
            keys.append(key)
            rows.append(row)
            self.row_count += 1
            self.size_bytes += len(row or b"")

    def take(self) -> list[tuple[str, Any, Any]]:
        """(topic, keys, values) of the topics that have rows, as Arrow arrays of binary."""
        taken = []
        for topic, (keys, rows) in self._rows.items():
            if rows:
                taken.append((topic, pyarrow.array(keys, _BINARY), pyarrow.array(rows, _BINARY)))
                self._rows[topic] = ([], [])
        self.row_count = self.size_bytes = 0
        return taken
