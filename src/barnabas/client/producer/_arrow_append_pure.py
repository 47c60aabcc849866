"""Rows of Arrow columns into the open batches of a producer; the twin of `_arrow_append.pyx`."""

from typing import Any

from barnabas.client.producer.arrow_rows import NOT_GIVEN_MS, headers_of
from barnabas.records.codec import partition_for_key

Spans = dict[Any, list[int]]
"""Batches with the first and the last index that rows have there."""


class RowAppender:
    """Appends the rows of one RecordBatch."""

    __slots__ = ("_columns", "_topic")

    def __init__(self, columns: dict[str, Any], topic: str | None) -> None:
        self._columns = columns
        self._topic = topic

    def append(self, topics: dict[str, Any], start: int, stop: int, now_ms: int, spans: Spans) -> int:
        """Appends rows up to `stop`, or to the first that needs the slow path; its number. Lock held.

        `topics`: those whose records may go straight into an open batch.
        """
        parts = {name: column.slice(start, stop - start).to_pylist() for name, column in self._columns.items()}
        for index in range(stop - start):
            row = {name: part[index] for name, part in parts.items()}
            if not self._append_row(topics, row, now_ms, spans):
                return start + index
        return stop

    def _append_row(self, topics: dict[str, Any], row: dict[str, Any], now_ms: int, spans: Spans) -> bool:
        topic = topics.get(row["topic"] if self._topic is None else self._topic)
        batch = None if topic is None else _open_batch(topic, row.get("key"), row.get("partition"))
        timestamp = row.get("timestamp")
        timestamp = now_ms if timestamp is None or timestamp == NOT_GIVEN_MS else timestamp
        if batch is None or not 0 <= timestamp < 1 << 62:
            return False
        headers = headers_of(row.get("headers"))
        try:
            index = batch.buffer.try_append(timestamp, row.get("key"), row["value"], headers, batch.limit)
        except (TypeError, ValueError):
            return False  # the slow path says what is wrong with the headers
        if index < 0:
            return False
        spans.setdefault(batch, [index, index])[1] = index
        return True


def _open_batch(topic: Any, key: bytes | None, partition: int | None) -> Any:
    if partition is None:
        if key is None:
            return topic.current
        partition = partition_for_key(key, len(topic.partitions))
    elif not 0 <= partition < len(topic.partitions):
        return None
    return topic.partitions[partition].open
