"""Rebuilding producer state from the files of a log: the newest good snapshot and the batches after it.

Used when a log is opened, when it was truncated, and when a transaction index is damaged. Reads only headers, and the
records of transaction markers.
"""

import logging
import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Final

from barnabas.records.header import CONTROL_MASK, BatchHeader
from barnabas.storage.file_names import SNAPSHOT_SUFFIX, file_name
from barnabas.storage.files import Files
from barnabas.storage.log_state import LogState
from barnabas.storage.producer_snapshot import CorruptSnapshotError, decode_snapshot, encode_snapshot
from barnabas.storage.producer_state import ProducerState, end_marker
from barnabas.storage.segment import Segment
from barnabas.storage.segment_list import SegmentList
from barnabas.storage.segment_scan import walk_headers
from barnabas.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)

REFILL_BYTES: Final = 8 << 20
"""More than five requests of the usual maximum size; older batches are not retried. Bounds the time on the loop."""


@dataclass(slots=True, eq=False)
class ProducerHistory:
    files: Files
    state: LogState
    segments: SegmentList
    producers: ProducerState
    snapshots: list[int] = field(default_factory=list)
    """Offsets of the .snapshot files, ascending."""

    # ---- snapshots

    def _path(self, offset: int) -> str:
        return os.path.join(self.state.directory, file_name(offset, SNAPSHOT_SUFFIX))

    def take_snapshot(self) -> None:
        """Writes producer state as of the log end, once per offset. Not flushed: a damaged one is simply dropped."""
        offset = self.state.log_end_offset
        if (self.snapshots and self.snapshots[-1] >= offset) or offset <= self.state.log_start_offset:
            return
        content = encode_snapshot(list(self.producers.producers.values()))
        self.files.write_whole(self._path(offset), content, sync=False)
        self.snapshots.append(offset)

    def remove_snapshots(self, keep_from: int, keep_to: int) -> None:
        """Removes those outside of [keep_from, keep_to]."""
        for offset in [each for each in self.snapshots if not keep_from <= each <= keep_to]:
            self._remove(offset)

    def remove_stray_snapshots(self) -> None:
        """Each clean shutdown leaves a snapshot at the log end; once there is a newer one it belongs to no segment."""
        for offset in self.snapshots[:-1]:
            if offset not in self.segments.base_offsets:
                self._remove(offset)

    def _remove(self, offset: int) -> None:
        self.files.remove(self._path(offset))
        self.snapshots.remove(offset)

    def _load_newest_snapshot(self, producers: ProducerState, now_ms: int, end_offset: int) -> int:
        """Loads the newest snapshot that is intact and not beyond `end_offset`; returns the offset to replay from."""
        start = self.state.log_start_offset
        for offset in self.snapshots[::-1]:
            if not start < offset <= end_offset:
                continue
            try:
                producers.load(decode_snapshot(self.files.read(self._path(offset))), offset, now_ms)
                return offset
            except (CorruptSnapshotError, FileNotFoundError) as error:
                logger.warning("producer snapshot %s dropped: %s", self._path(offset), error)
                self._remove(offset)
        producers.clear(start)
        return start

    # ---- replaying

    def replay(self, now_ms: int, end_offset: int | None = None) -> None:
        """Producer state as of `end_offset`, by default the log end. Damaged snapshots are dropped with a warning."""
        end = self.state.log_end_offset if end_offset is None else end_offset
        start = self._load_newest_snapshot(self.producers, now_ms, end)
        if start < end:
            for segment in self.segments.starting_at(start):
                if segment.base_offset >= end:
                    break
                _replay_segment(self.producers, segment, start, end)
        self.producers.end_offset = end
        self.producers.on_high_watermark(self.state.high_watermark)

    def find_aborted_transactions(self, segment: Segment) -> list[AbortedTransaction]:
        """The entries of a segment's transaction index, from a snapshot before it and the batches since.

        Raises BrokenChainError and OSError. The log's own producer state is not touched.
        """
        producers = ProducerState(self.producers.expiration_ms)
        start = self._load_newest_snapshot(producers, 0, segment.base_offset)  # at time 0 nobody has expired
        found: list[AbortedTransaction] = []
        for each in self.segments.starting_at(start):
            found = _replay_segment(producers, each, start, self.state.log_end_offset)
            if each is segment:
                break
        return found

    def refill_batches(self) -> None:
        """Restores the last five batches of each producer after a snapshot was loaded, which holds only one of them.

        Not done when a log is opened, since few logs ever get a retry from before. Raises BrokenChainError and OSError.
        """
        ranges = []
        left = REFILL_BYTES
        for segment in reversed(self.segments.all):
            if left <= 0:
                break
            ranges.append((segment, segment.batch_start_at_or_below(max(segment.size - left, 0))))
            left -= segment.size
        self.producers.refill(_headers(list(reversed(ranges))))


def _headers(ranges: list[tuple[Segment, int]]) -> Iterator[BatchHeader]:
    for segment, start in ranges:
        for _, header in walk_headers(segment.file, start, segment.size):
            yield header


def _replay_segment(producers: ProducerState, segment: Segment, start: int, end: int) -> list[AbortedTransaction]:
    """Returns the transactions that were aborted by a marker in this segment."""
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
    """Applies a batch of the log; returns the entry that the transaction index needs for it, if any."""
    if header.producer_id < 0:
        return None
    if not header.attributes & CONTROL_MASK:
        producers.update(header, header.base_offset)
        return None
    marker = end_marker(batch)
    if marker is None:
        return None
    return producers.complete(header, marker, header.base_offset, header.max_timestamp)
