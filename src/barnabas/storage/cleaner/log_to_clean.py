"""The copy of a log's state that a cleaning works on.

Made on the event loop, which owns the log; cleaner threads use this copy. Its segments are closed and never change.
"""

from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment
from barnabas.storage.transaction_index import AbortedTransaction


class LastRecord(NamedTuple):
    """Where an active producer was last seen; the batch there must stay, if only as an empty one."""

    last_data_offset: int | None
    producer_epoch: int


class LogToClean(NamedTuple):
    log: Log
    config: TopicConfig
    segments: tuple[Segment, ...]
    """All closed segments below `first_uncleanable_offset`, clean ones too."""
    first_dirty_offset: int
    first_uncleanable_offset: int
    clean_bytes: int
    cleanable_bytes: int
    compaction_delay_ms: int
    """By how much the oldest dirty record has outstayed max.compaction.lag.ms; 0 if it has not."""

    @property
    def cleanable_ratio(self) -> float:
        total = self.clean_bytes + self.cleanable_bytes
        return self.cleanable_bytes / total if total else 0.0

    @property
    def is_due(self) -> bool:
        overdue = self.compaction_delay_ms > 0 and self.cleanable_bytes > 0
        return overdue or self.cleanable_ratio > self.config.min_cleanable_dirty_ratio


def last_records(log: Log) -> dict[int, LastRecord]:
    """The last record of each producer that the log still knows, by producer id."""
    return {
        producer_id: LastRecord(entry.batches[-1].last_offset if entry.batches else None, entry.epoch)
        for producer_id, entry in log.producers.producers.items()
    }


def aborted_transactions(log: Log, upper_offset: int) -> list[AbortedTransaction]:
    """All that began below `upper_offset`, by first offset; their markers may be in any later segment."""
    found = [
        entry
        for segment in log.segments
        for entry in log.transactions.index(segment).entries()
        if entry.first_offset < upper_offset
    ]
    return sorted(found, key=lambda entry: entry.first_offset)
