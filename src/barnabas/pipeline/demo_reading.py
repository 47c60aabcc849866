"""How the demo reads topics: from beginning to end for its check, and as they grow for its table.

Both with read_committed, so that counts are what any consumer sees. Offsets cannot be used for that: those of the
pipeline's topics include transaction markers.
"""

import time
from collections import Counter
from collections.abc import Iterable, Iterator
from typing import Final, Self

from barnabas.client.consumer.consumer import Consumer
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

_POLL_S: Final = 0.2
_PATIENCE_S: Final = 60


class ReadingError(Exception):
    """Not everything can be read; the text says why."""


def read_all(bootstrap: str, topics: Iterable[str]) -> Iterator[ConsumerRecord]:
    """Everything that is committed now; the records of a partition in its order. Raises ReadingError."""
    with _consumer(bootstrap) as consumer:
        partitions = _partitions(consumer, topics)
        begins, ends = consumer.beginning_offsets(partitions), consumer.end_offsets(partitions)
        for tp, offset in begins.items():
            if offset > 0:
                raise ReadingError(f"{tp} begins at {offset}: earlier records were deleted by retention")
        consumer.assign(partitions)
        consumer.seek_to_beginning()
        left = {tp for tp in partitions if ends[tp] > 0}
        heard = time.monotonic()
        while left:
            records = consumer.poll(_POLL_S)
            if records:
                heard = time.monotonic()
                yield from records
                continue
            left = {tp for tp in left if consumer.position(tp) < ends[tp]}
            if left and time.monotonic() - heard > _PATIENCE_S:
                raise ReadingError(f"{min(left)}: no records for {_PATIENCE_S} s, before its end")


class RecordCounter:
    """Counts what becomes readable in topics, from their beginning on."""

    def __init__(self, bootstrap: str, topics: Iterable[str]) -> None:
        self._consumer = _consumer(bootstrap)
        self._consumer.assign(_partitions(self._consumer, topics))
        self._consumer.seek_to_beginning()
        self.counts: Counter[str] = Counter()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._consumer.close()

    def count_for(self, seconds: float) -> None:
        """Counts while it waits."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            for each in self._consumer.poll_arrow(left).column("topic").value_counts():
                self.counts[each["values"].as_py()] += each["counts"].as_py()


def _consumer(bootstrap: str) -> Consumer:
    return Consumer(bootstrap, isolation_level="read_committed", enable_auto_commit=False)


def _partitions(consumer: Consumer, topics: Iterable[str]) -> list[TopicPartition]:
    return [TopicPartition(topic, each.partition) for topic in topics for each in consumer.partitions_for(topic)]
