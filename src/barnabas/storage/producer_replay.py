"""Building producer state anew: from the newest good snapshot and the batches after it.

Used when a log is opened, when it was truncated, and when a transaction index is damaged. Reads headers only, and the
records of transaction markers.
"""

import logging
from collections.abc import Iterator
from typing import Final

from barnabas.records.header import CONTROL_MASK, BatchHeader
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot
from barnabas.storage.producer_state import ProducerState, end_marker
from barnabas.storage.segment import Segment
from barnabas.storage.segment_scan import walk_headers
from barnabas.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

REFILL_BYTES: Final = 8 << 20
"""More than five requests of the usual largest size: further back nobody retries. Bounds the time on the event loop."""


def replay_producers(log: LogState, now_ms: int, end_offset: int | None = None) -> None:
    """Producer state as of `end_offset`, by default the log end. Damaged snapshots are dropped with a warning."""
    end = log.log_end_offset if end_offset is None else end_offset
    start = load_newest_snapshot(log, log.producers, now_ms, end)
    if start < end:
        for segment in log.segments[log.segment_number(start) :]:
            if segment.base_offset >= end:
                break
            _replay_segment(log.producers, segment, start, end)
    log.producers.end_offset = end
    log.producers.on_high_watermark(log.high_watermark)


def find_aborted_transactions(log: LogState, segment: Segment) -> list[AbortedTransaction]:
    """What the transaction index of a segment has to hold, from a snapshot before it and the batches since.

    Raises BrokenChainError and OSError. The log's own producer state is not touched.
    """
    producers = ProducerState(log.producers.expiration_ms)
    start = load_newest_snapshot(log, producers, 0, segment.base_offset)  # at time 0 nobody has expired
    found: list[AbortedTransaction] = []
    for each in log.segments[log.segment_number(start) :]:
        found = _replay_segment(producers, each, start, log.log_end_offset)
        if each is segment:
            break
    return found


def refill_batches(log: LogState) -> None:
    """Brings back the last five batches of each producer after a snapshot was loaded, which tells only one of them.

    Not done when a log is opened, since few logs ever get a retry from before. Raises BrokenChainError and OSError.
    """
    stretches = []
    left = REFILL_BYTES
    for segment in reversed(log.segments):
        if left <= 0:
            break
        stretches.append((segment, segment.batch_start_at_or_below(max(segment.size - left, 0))))
        left -= segment.size
    log.producers.refill(_headers(list(reversed(stretches))))


def _headers(stretches: list[tuple[Segment, int]]) -> Iterator[BatchHeader]:
    for segment, start in stretches:
        for _, header in walk_headers(segment.file, start, segment.size):
            yield header


def load_newest_snapshot(log: LogState, producers: ProducerState, now_ms: int, end_offset: int) -> int:
    """Loads the newest snapshot that is whole and not beyond `end_offset`; gives the offset to replay from."""
    for offset in sorted(log._snapshots, reverse=True):
        if not log.log_start_offset < offset <= end_offset:
            continue
        path = log.snapshot_path(offset)
        try:
            producers.load(decode_snapshot(log.files.read(path)), offset, now_ms)
            return offset
        except (CorruptSnapshotError, FileNotFoundError) as error:
            logger.warning("producer snapshot %s dropped: %s", path, error)
            log.files.remove(path)
            log._snapshots.remove(offset)
    producers.clear(log.log_start_offset)
    return log.log_start_offset


def _replay_segment(producers: ProducerState, segment: Segment, start: int, end: int) -> list[AbortedTransaction]:
    """Gives the transactions that were aborted by a marker in this segment."""
    aborted: list[AbortedTransaction] = []
    found = segment.find(start)
    if found is None:
        return aborted
    for position, header in walk_headers(segment.file, found.position, segment.size):
        if header.base_offset >= end:
            break
        if header.producer_id >= 0 and header.base_offset >= start:
            if header.attributes & CONTROL_MASK:
                batch = memoryview(segment.file.pread(header.size_in_bytes, position))
                transaction = replay_batch(producers, header, batch)
                if transaction is not None:
                    aborted.append(transaction)
            else:
                producers.update(header, header.base_offset)
    return aborted


def replay_batch(producers: ProducerState, header: BatchHeader, batch: memoryview) -> AbortedTransaction | None:
    """Takes in a batch that is in the log; gives the entry that the transaction index needs for it, if any."""
    if header.producer_id < 0:
        return None
    if not header.attributes & CONTROL_MASK:
        producers.update(header, header.base_offset)
        return None
    marker = end_marker(batch)
    if marker is None:
        return None
    return producers.complete(header, marker, header.base_offset, header.max_timestamp)
