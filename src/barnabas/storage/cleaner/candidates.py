"""Which logs may be cleaned and how far.

Called on the event loop. Looks at sizes and timestamps of segments only; reads no records and changes nothing.
"""

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from barnabas.storage.cleaner.log_to_clean import LogToClean
from barnabas.storage.log import Log
from barnabas.storage.segment import Segment


class CleanableOffsets(NamedTuple):
    first_dirty_offset: int
    first_uncleanable_offset: int
    checkpoint_is_wrong: bool
    """The checkpoint is outside the log (after truncation or retention) and must be set to `first_dirty_offset`."""


def closed_segments_from(log: Log, offset: int) -> Sequence[Segment]:
    """The closed segments from the one that holds `offset` on."""
    segments = log.segments
    closed = segments[:-1]
    first = 0
    for index, segment in enumerate(segments):
        if segment.base_offset > offset:
            break
        first = index
    return closed[first:]


def cleanable_offsets(log: Log, checkpoint: int | None, now_ms: int) -> CleanableOffsets:
    """Never past the last stable offset, the active segment, a delayed message that is pending, or a record younger
    than min.compaction.lag.ms."""
    first_dirty = log.log_start_offset if checkpoint is None else checkpoint
    wrong = not log.log_start_offset <= first_dirty <= log.log_end_offset
    if wrong:
        first_dirty = log.log_start_offset
    limits = [log.last_stable_offset, log.segments[-1].base_offset, log.state.removable_before]
    lag_ms = max(log.config.min_compaction_lag_ms, 0)
    if lag_ms > 0:
        young = (s for s in closed_segments_from(log, first_dirty) if s.max_timestamp()[0] > now_ms - lag_ms)
        limits += [segment.base_offset for segment in young][:1]
    return CleanableOffsets(first_dirty, max(first_dirty, min(limits)), wrong)


def compaction_delay_ms(log: Log, first_dirty_offset: int, now_ms: int) -> int:
    clean_until = now_ms - max(log.config.max_compaction_lag_ms, 0)
    timestamps = [
        segment.first_timestamp() for segment in closed_segments_from(log, first_dirty_offset) if segment.size
    ]
    earliest = min((timestamp for timestamp in timestamps if timestamp > 0), default=clean_until)
    return max(clean_until - earliest, 0)


def log_to_clean(log: Log, offsets: CleanableOffsets, now_ms: int) -> LogToClean:
    """Whole segments only: the one that holds the first uncleanable offset stays out."""
    beyond = closed_segments_from(log, offsets.first_uncleanable_offset)
    uncleanable = (beyond[0] if beyond else log.segments[-1]).base_offset
    segments = tuple(segment for segment in log.segments[:-1] if segment.base_offset < uncleanable)
    first_dirty = offsets.first_dirty_offset
    dirty = closed_segments_from(log, min(first_dirty, uncleanable))
    return LogToClean(
        log=log,
        config=log.config,
        segments=segments,
        first_dirty_offset=first_dirty,
        first_uncleanable_offset=uncleanable,
        clean_bytes=sum(segment.size for segment in segments if segment.base_offset < first_dirty),
        cleanable_bytes=sum(segment.size for segment in dirty if segment.base_offset < uncleanable),
        compaction_delay_ms=compaction_delay_ms(log, first_dirty, now_ms),
    )


def filthiest(candidates: Iterable[LogToClean]) -> LogToClean | None:
    """Of the logs that are due, the one with the largest dirty share."""
    due = [candidate for candidate in candidates if candidate.is_due]
    return max(due, key=lambda candidate: candidate.cleanable_ratio, default=None)
