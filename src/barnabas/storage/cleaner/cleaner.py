"""One cleaning of one log, from start to end, on a cleaner thread.

First the dirty part is read and the last offset of each key noted, then all closed segments up to its end are copied
without what later records replaced, several small ones into one. Each group is written to .cleaned files, flushed, and
swapped, on the event loop, for the segments it came from. A crash before the swap leaves .cleaned files, which loading
removes; the swap itself is the log's business.

The log stays in use meanwhile. Closed segments never grow, but retention may delete them, and truncation may cut one,
which is then written to again: the swap checks that each is still there and nothing was truncated, and if not the
cleaning ends without a change.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, NamedTuple, Protocol, TypeVar

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import BatchHeader, Buffer, crc_matches, read_header
from barnabas.records.reader import read_records
from barnabas.storage.cleaner.batch_filter import BatchFilter, records_releasing_gil
from barnabas.storage.cleaner.log_to_clean import LogToClean, aborted_transactions, last_records
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.throttle import Throttle
from barnabas.storage.cleaner.transactions import CleanedTransactions
from barnabas.storage.file_names import CLEANED_SUFFIX
from barnabas.storage.files import Files, OpenFile
from barnabas.storage.log import Log
from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET
from barnabas.storage.segment import Segment
from barnabas.storage.segment_scan import walk_batches

Result = TypeVar("Result")


class CallOnLoop(Protocol):
    """Runs a function on the event loop, which owns the logs, and waits for its result."""

    def __call__(self, function: Callable[[], Result], /) -> Result: ...


_TIME_INDEX_ENTRY_BYTES: Final = 12


class CleaningAbortedError(Exception):
    """The log was paused, cut or deleted while it was being cleaned. Nothing has changed; try again later."""


@dataclass(slots=True)
class CleaningStats:
    map_bytes_read: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    records_read: int = 0
    records_written: int = 0
    map_utilization: float = 0.0


class Source(NamedTuple):
    """A segment as it was when the cleaning began. Holding the file keeps it readable after a deletion."""

    segment: Segment
    file: OpenFile
    size: int
    truncations: int
    """How often the log had been truncated. Sizes are not enough: other records may have replaced those cut."""


class Cleaner:
    """Owned by one thread."""

    def __init__(
        self,
        offset_map: OffsetMap,
        throttle: Throttle,
        call_on_loop: CallOnLoop,
        check_may_continue: Callable[[Log], None],
    ) -> None:
        """`check_may_continue` raises CleaningAbortedError when the log was paused or the broker stops."""
        self._map = offset_map
        self._throttle = throttle
        self._call_on_loop = call_on_loop
        self._check_may_continue = check_may_continue

    def clean(self, target: LogToClean, now_ms: int) -> tuple[int, CleaningStats]:
        """Cleans and swaps; returns the offset up to which the log is clean now."""
        log, upper = target.log, target.first_uncleanable_offset
        stats = CleaningStats()
        sources = self._call_on_loop(lambda: _sources(target))
        aborted = self._call_on_loop(lambda: aborted_transactions(log, upper))
        self._map.clear()
        try:
            # One that ended in the clean part would never be seen to end here, and later transactions of its producer
            # would be taken for it.
            undecided = [entry for entry in aborted if entry.last_offset >= target.first_dirty_offset]
            self._build_map(target, sources, CleanedTransactions(undecided), stats)
            stats.map_utilization = self._map.utilization
            end_offset = self._map.latest_offset + 1
            transactions = CleanedTransactions(aborted)
            below_end = [source for source in sources if source.segment.base_offset < end_offset]
            for group in group_by_size(below_end, target):
                self._clean_group(target, group, transactions, now_ms, stats)
        finally:
            self._map.clear()
        return end_offset, stats

    # ---- the key map

    def _build_map(
        self, target: LogToClean, sources: list[Source], transactions: CleanedTransactions, stats: CleaningStats
    ) -> None:
        """Fills the map from the first dirty offset on, until all is in it or it is full (checked between batches)."""
        start = target.first_dirty_offset
        self._map.latest_offset = start - 1
        ends = [source.segment.base_offset for source in sources[1:]] + [target.first_uncleanable_offset]
        for source, end in zip(sources, ends):
            if end <= start:
                continue
            for header, batch in self._read(target.log, source):
                stats.map_bytes_read += len(batch)
                if header.last_offset < start:
                    continue
                if self._map.is_full:
                    return
                self._add_batch(header, batch, start, transactions)
                self._map.latest_offset = header.last_offset
            # Offsets at the end of a segment may have been cleaned away before: they count as seen.
            self._map.latest_offset = end - 1

    def _add_batch(self, header: BatchHeader, batch: memoryview, start: int, transactions: CleanedTransactions) -> None:
        if header.is_control:
            transactions.on_control_batch(header, read_records(batch))
        elif not transactions.on_data_batch(header):
            for record in records_releasing_gil(batch):
                if record.key is not None and record.offset >= start:
                    self._map.put(record.key, record.offset)

    # ---- copying

    def _clean_group(
        self,
        target: LogToClean,
        group: list[Source],
        transactions: CleanedTransactions,
        now_ms: int,
        stats: CleaningStats,
    ) -> None:
        log = target.log
        cleaned = self._call_on_loop(
            lambda: log.segment_list.new(group[0].segment.base_offset, now_ms, state_suffix=CLEANED_SUFFIX)
        )
        try:
            cleaned.create()
            transactions.cleaned_index = cleaned.transaction_index
            batch_filter = BatchFilter(
                self._map,
                transactions,
                self._call_on_loop(lambda: last_records(log)),
                upper_bound_offset=target.first_uncleanable_offset,
                now_ms=now_ms,
                delete_retention_ms=target.config.delete_retention_ms,
            )
            for source in group:
                self._copy(log, source, cleaned, batch_filter, stats)
            self._finish(log.files, cleaned, group[-1].segment)
            self._call_on_loop(lambda: self._swap(log, cleaned, group, now_ms))
        except BaseException:
            if cleaned.state_suffix == CLEANED_SUFFIX:
                self._discard(log.files, cleaned)
            raise
        try:
            log.files.sync_directory(log.directory)
        finally:
            self._call_on_loop(lambda: self._finish_swap(log, now_ms))
        log.files.sync_directory(log.directory)

    def _copy(
        self, log: Log, source: Source, cleaned: Segment, batch_filter: BatchFilter, stats: CleaningStats
    ) -> None:
        """Writes in pieces of about index.interval.bytes, because each piece gets one entry in the index."""
        piece: list[tuple[BatchHeader, Buffer]] = []
        piece_bytes = 0
        for header, batch in self._read(log, source):
            kept = batch_filter.keep(header, batch)
            stats.bytes_read += len(batch)
            stats.records_read += kept.records_read
            stats.records_written += kept.records_kept
            if kept.data is None:
                continue
            piece.append((header, kept.data))
            piece_bytes += len(kept.data)
            if piece_bytes > cleaned.index_interval_bytes:
                self._write(cleaned, piece, stats)
                piece, piece_bytes = [], 0
        if piece:
            self._write(cleaned, piece, stats)

    def _write(self, cleaned: Segment, piece: list[tuple[BatchHeader, Buffer]], stats: CleaningStats) -> None:
        data = b"".join(batch for _, batch in piece)
        # From the batches as they are now: the record with the highest timestamp may be gone.
        latest = max((read_header(batch) for _, batch in piece), key=lambda header: header.max_timestamp)
        cleaned.append(data, piece[-1][0].last_offset, latest.max_timestamp, latest.last_offset)
        stats.bytes_written += len(data)
        self._throttle.take(len(data))

    def _read(self, log: Log, source: Source) -> Iterator[tuple[BatchHeader, memoryview]]:
        """Batches with their CRC checked: a copy gets a new CRC, which must not cover up damage to the old bytes."""
        for position, header, batch in walk_batches(source.file, 0, source.size):
            self._check_may_continue(log)
            self._throttle.take(len(batch))
            if not crc_matches(batch, 0, header):
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"{source.file.path}: bad CRC at byte {position}")
            yield header, batch

    # ---- swapping

    def _finish(self, files: Files, cleaned: Segment, last: Segment) -> None:
        """All bytes are on disk before the first file gets a name that loading would take for the real one."""
        cleaned.become_inactive(preallocated=False)
        cleaned.sync()
        cleaned.sync_indexes()
        cleaned.modified_ms = last.modified_ms
        files.sync_directory(cleaned.directory)

    def _swap(self, log: Log, cleaned: Segment, group: list[Source], now_ms: int) -> None:
        self._check_may_continue(log)
        live = {id(segment) for segment in log.segments[:-1]}
        for source in group:
            if id(source.segment) not in live or source.truncations != log.flusher.truncations:
                raise CleaningAbortedError(f"{log.topic_partition}: a segment was deleted or cut meanwhile")
        log.replace_segments([cleaned], [source.segment for source in group], now_ms)

    def _finish_swap(self, log: Log, now_ms: int) -> None:
        try:
            log.segment_list.finish_replacing(now_ms)
        except OSError as error:
            raise log.state.fail(error, "swapping cleaned segments of") from error

    def _discard(self, files: Files, cleaned: Segment) -> None:
        for path in cleaned.existing_paths():
            try:
                files.remove(path)
            except OSError:
                pass  # the first failure is what matters; loading removes leftovers


def _sources(target: LogToClean) -> list[Source]:
    truncations = target.log.flusher.truncations
    return [Source(segment, segment.file, segment.size, truncations) for segment in target.segments]


def group_by_size(sources: list[Source], target: LogToClean) -> Iterator[list[Source]]:
    """Neighbours that fit into one segment together, by bytes, by index entries and by range of offsets."""
    config = target.config
    max_entries = config.segment_index_bytes // _TIME_INDEX_ENTRY_BYTES
    max_bytes = min(config.segment_bytes, max_entries * max(config.index_interval_bytes, 1))
    group: list[Source] = []
    group_bytes = 0
    for index, source in enumerate(sources):
        following = sources[index + 1].segment.base_offset if index + 1 < len(sources) else None
        end = target.first_uncleanable_offset if following is None else following
        if group:
            too_wide = source.size and end - 1 - group[0].segment.base_offset > MAX_RELATIVE_OFFSET
            if group_bytes + source.size > max_bytes or too_wide:
                yield group
                group, group_bytes = [], 0
        group.append(source)
        group_bytes += source.size
    if group:
        yield group
