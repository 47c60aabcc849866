"""Opening a log that is on disk: quickly after a clean shutdown, batch by batch from the recovery point after a crash.

Above the recovery point a torn or damaged batch ends the log: it was never promised to be on disk. Below it every byte
was flushed, so damage there is never cut: the log is refused (DamagedLogError) with its files as they are, at every
start, until an operator accepts the loss (`acceptance.py`). Runs before the broker serves the log, in any thread.
"""

import logging
from typing import NamedTuple

from barnabas.storage.checkpoints import CorruptCheckpointError
from barnabas.storage.file_names import (
    CLEANED_SUFFIX,
    DELETED_SUFFIX,
    LOG_SUFFIX,
    SEGMENT_SUFFIXES,
    SNAPSHOT_SUFFIX,
    SWAP_SUFFIX,
    TRANSACTION_INDEX_SUFFIX,
    parse_file_name,
)
from barnabas.storage.leftovers import remove_leftovers
from barnabas.storage.log import Log
from barnabas.storage.offset_index import MAX_RELATIVE_OFFSET
from barnabas.storage.producer_history import replay_batch
from barnabas.storage.segment import Segment
from barnabas.storage.segment_scan import BrokenChainError, is_intact, walk_batches, walk_headers
from barnabas.storage.shortages import passing_errors_logged
from barnabas.storage.sparse_index import CorruptIndexError
from barnabas.storage.transaction_checksums import TRANSACTION_INDEX_CHECKPOINT
from barnabas.storage.transaction_index import AbortedTransaction

logger = logging.getLogger(__name__)


class DamagedLogError(Exception):
    """Bytes that had been flushed are wrong or gone. The log is not opened and nothing was cut."""

    def __init__(self, reason: str, offset: int | None = None) -> None:
        """`offset` is the first one that cannot be read; None if only a scan would find it, or no segment is left."""
        super().__init__(reason)
        self.offset = offset


class LogCheckpoints(NamedTuple):
    """The entries of one log in the checkpoints of its log directory; 0 where there is none."""

    recovery_point: int = 0
    log_start_offset: int = 0
    high_watermark: int = 0
    was_cleaned: bool = False
    """Listed in cleaner-offset-checkpoint: compaction may have left gaps between offsets."""


def open_log(log: Log, checkpoints: LogCheckpoints, *, clean: bool, now_ms: int) -> None:
    """Fills a new `Log` from its folder. Raises DamagedLogError and OSError."""
    log.state.was_cleaned = checkpoints.was_cleaned
    names = log.files.names(log.directory)
    if any(name.endswith((DELETED_SUFFIX, CLEANED_SUFFIX, SWAP_SUFFIX)) for name in names):
        remove_leftovers(log, now_ms)
        names = log.files.names(log.directory)
    _list_segments(log, names, checkpoints, now_ms)
    if TRANSACTION_INDEX_CHECKPOINT in names:
        _load_transaction_checksums(log)
    log.state.log_start_offset = max(checkpoints.log_start_offset, log.segments[0].base_offset)
    epochs_lost = _load_leader_epochs(log)
    if clean:
        _read_end(log, checkpoints, now_ms)
    else:
        _recover(log, checkpoints, now_ms)
        _report_loss(log, names, checkpoints)
    if epochs_lost:
        _rebuild_leader_epochs(log)
    if log.log_end_offset < log.log_start_offset:
        _restart_empty(log, now_ms)
    with passing_errors_logged(f"writing the leader epochs of {log.topic_partition}"):
        log.leader_epochs.truncate_from_end(log.log_end_offset)
        if log.log_start_offset > 0:
            log.leader_epochs.truncate_from_start(log.log_start_offset)
    log.state.high_watermark = min(max(checkpoints.high_watermark, log.log_start_offset), log.log_end_offset)
    log.producers.on_high_watermark(log.high_watermark)
    _note_transaction_indexes(log, names)


def _report_loss(log: Log, names: list[str], checkpoints: LogCheckpoints) -> None:
    """Data that was never flushed may be lost after a crash, even a whole file; other files show that it existed."""
    parsed = [each for each in (parse_file_name(name) for name in names) if each is not None]
    known = [offset + (suffix != SNAPSHOT_SUFFIX) for offset, suffix, state in parsed if not state]
    end = max([checkpoints.high_watermark, *known])
    if end > log.log_end_offset >= log.log_start_offset and not _is_empty_tail(log, end):
        logger.error(
            "%s: ends at offset %d after a crash, but had reached %d: the rest had never been flushed and is lost",
            log.topic_partition,
            log.log_end_offset,
            end,
        )


def _is_empty_tail(log: Log, end: int) -> bool:
    """A last segment without records is named after the log end: it means that the log had ended there."""
    return log.active.base_offset == log.log_end_offset == end - 1 and not log.active.size


def _load_transaction_checksums(log: Log) -> None:
    try:
        log.transactions.checksums.load()
    except CorruptCheckpointError as error:
        logger.warning("the transaction indexes of %s are built again: %s", log.topic_partition, error)


def _note_transaction_indexes(log: Log, names: list[str]) -> None:
    """Indexes that nothing is known of yet: from Apache Kafka, or just built by recovery. Few logs have any."""
    indexes = {int(name[:20]) for name in names if name.endswith(TRANSACTION_INDEX_SUFFIX) and parse_file_name(name)}
    for segment in log.segments:
        if segment.base_offset in indexes and not log.transactions.checksums.knows(segment.base_offset):
            try:
                segment.transaction_index.entries()
            except (CorruptIndexError, FileNotFoundError):
                pass  # built again at the first use
    with passing_errors_logged(f"writing the checksums of the transaction indexes of {log.topic_partition}"):
        log.transactions.note(log.segments)


def _list_segments(log: Log, names: list[str], checkpoints: LogCheckpoints, now_ms: int) -> None:
    segments: list[Segment] = []
    base_offsets = {int(name[:20]) for name in names if name.endswith(LOG_SUFFIX) and parse_file_name(name)}
    for name in names:
        parsed = parse_file_name(name)
        if parsed is None:
            continue
        offset, suffix, _ = parsed
        if suffix == LOG_SUFFIX:
            status = log.files.status(f"{log.directory}/{name}")
            segment = log.segment_list.new(offset, now_ms, size=status.size)
            segment.modified_ms = segment.created_ms = status.modified_ms
            segments.append(segment)
        elif suffix == SNAPSHOT_SUFFIX:
            log.history.snapshots.append(offset)
        elif suffix in SEGMENT_SUFFIXES and offset not in base_offsets:
            logger.warning("%s: index %s has no log file, removed", log.topic_partition, name)
            log.files.remove(f"{log.directory}/{name}")
    log.history.snapshots.sort()
    segments.sort(key=lambda segment: segment.base_offset)
    if not segments:
        if checkpoints.recovery_point > checkpoints.log_start_offset:
            raise DamagedLogError(
                f"{log.directory}: flushed up to {checkpoints.recovery_point}, but no segment is there"
            )
        segments.append(log.segment_list.create(checkpoints.log_start_offset, now_ms))
    log.segment_list.set(segments)
    log.history.remove_stray_snapshots()


def _load_leader_epochs(log: Log) -> bool:
    """Whether the history has to be rebuilt from the batches."""
    try:
        log.leader_epochs.load()
    except CorruptCheckpointError as error:
        logger.warning("leader epochs of %s are rebuilt: %s", log.topic_partition, error)
        return True
    return not log.leader_epochs.entries() and any(segment.size for segment in log.segments)


def _rebuild_leader_epochs(log: Log) -> None:
    """From all batches: recovery has noted only those above the recovery point."""
    log.leader_epochs.clear()
    for segment in log.segments:
        for _, header in walk_headers(segment.file, 0, segment.size):
            if header.partition_leader_epoch > log.leader_epochs.latest:
                log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)


def _read_end(log: Log, checkpoints: LogCheckpoints, now_ms: int) -> None:
    """After a clean shutdown: the end of the last segment, and the snapshot that was taken there."""
    try:
        end = log.active.next_offset()
    except BrokenChainError as error:
        raise DamagedLogError(f"{error}, although the shutdown was clean") from error
    _check_flushed(log, end, checkpoints)
    log.state.log_end_offset = log.state.recovery_point = end
    log.history.replay(now_ms)
    log.active.release()


def _check_flushed(log: Log, end: int, checkpoints: LogCheckpoints) -> None:
    if end < checkpoints.recovery_point and end >= checkpoints.log_start_offset:
        raise DamagedLogError(
            f"{log.directory}: flushed up to {checkpoints.recovery_point}, but the log ends at {end}", end
        )


def _recover(log: Log, checkpoints: LogCheckpoints, now_ms: int) -> None:
    """Scans from the segment that holds the recovery point, cuts the first torn batch and all segments after it."""
    first = log.segment_list.number(checkpoints.recovery_point)
    log.history.replay(now_ms, log.segments[first].base_offset)
    end = log.segments[first].base_offset
    for number, segment in enumerate(log.segments[first:], first):
        if segment.base_offset > end and not log.state.may_have_gaps:
            # The file before it lost its last pages at a batch's end, so nothing in it looked torn.
            _check_flushed(log, end, checkpoints)
            logger.error(
                "%s: cut at offset %d, because the next segment starts at %d: what was between them had never been"
                " flushed and is lost",
                log.topic_partition,
                end,
                segment.base_offset,
            )
            log.truncation.drop_from(number, now_ms)
            break
        end, whole = _recover_segment(log, segment, max(end, segment.base_offset), checkpoints)
        if not whole:
            log.truncation.drop_from(number + 1, now_ms)
            break
    _check_flushed(log, end, checkpoints)
    log.state.log_end_offset = log.producers.end_offset = end
    log.state.recovery_point = min(checkpoints.recovery_point, end)
    log.history.remove_snapshots(0, end)
    for segment in log.segments[first:-1]:
        # Without room they stay in memory, and the files are missing: they are rebuilt when next needed.
        with passing_errors_logged(f"writing the indexes of {log.topic_partition}"):
            segment.become_inactive(preallocated=False)


def _recover_segment(log: Log, segment: Segment, expected: int, checkpoints: LogCheckpoints) -> tuple[int, bool]:
    """(offset after the last good batch, whether the file was whole). Indexes and state are built along the way."""
    segment.offset_index.reset()
    segment.time_index.reset()
    segment.forget_timestamps()
    aborted: list[AbortedTransaction] = []
    valid = last_entry = 0
    recovery_point = checkpoints.recovery_point
    gaps = log.state.may_have_gaps
    try:
        for position, header, batch in walk_batches(segment.file, 0, segment.size):
            last_offset = header.last_offset
            gap = header.base_offset > expected >= recovery_point and not gaps
            if gap or header.base_offset < expected or last_offset - segment.base_offset > MAX_RELATIVE_OFFSET:
                raise BrokenChainError(segment.file, position, f"offset {header.base_offset}, {expected} is next")
            if not is_intact(batch, header):
                if last_offset >= recovery_point:
                    raise BrokenChainError(segment.file, position, "the batch does not match its CRC")
                logger.error("%s at byte %d: a flushed batch is damaged; it is kept", segment.file.path, position)
            else:
                if header.partition_leader_epoch > log.leader_epochs.latest:
                    log.leader_epochs.assign(header.partition_leader_epoch, header.base_offset)
                transaction = replay_batch(log.producers, header, batch)
                if transaction is not None:
                    aborted.append(transaction)
            segment.note_timestamp(header)
            if position - last_entry > segment.index_interval_bytes:
                segment.add_index_entry(last_offset, position)
                last_entry = position
            expected = last_offset + 1
            valid = position + len(batch)
    except BrokenChainError as error:
        if expected < recovery_point:
            reason = f"{error}; everything below {recovery_point} had been flushed"
            raise DamagedLogError(reason, expected) from error
        logger.warning("%s: cut at offset %d: %s", log.topic_partition, expected, error)
    whole = valid == segment.size
    if not whole:
        segment.file.truncate(valid)
        segment.size = valid
    segment.finish_time_index()
    with passing_errors_logged(f"writing a transaction index of {log.topic_partition}"):
        segment.transaction_index.replace(aborted)
    return expected, whole


def _restart_empty(log: Log, now_ms: int) -> None:
    """DeleteRecords had gone beyond what reached the disk: the log continues empty at its start offset."""
    logger.warning("%s ends at %d, below its start %d", log.topic_partition, log.log_end_offset, log.log_start_offset)
    log.truncation.start_empty(log.log_start_offset, now_ms)
    log.state.recovery_point = min(log.recovery_point, log.log_start_offset)
