"""Appending to a log, as leader or as follower: one write a call, all checks before it, all state changes after it.

So a refused or failed append leaves the log as it was: in memory because nothing had changed yet, on disk because
bytes of a torn write are cut off again.
"""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import CONTROL_MASK, BatchHeader, crc_matches, iter_headers, patch_in_place, read_header
from barnabas.storage.append_checks import PreparedBatch, check_batch, check_timestamps, convert
from barnabas.storage.log_transactions import LogTransactions
from barnabas.storage.plain_batch import read_plain_header
from barnabas.storage.producer_replay import refill_batches
from barnabas.storage.producer_state import AppendOrigin, BatchMetadata, EndTransactionMarker, end_marker
from barnabas.storage.segment_scan import BrokenChainError
from barnabas.types import NO_LEADER_EPOCH, NO_TIMESTAMP

CLIENT = AppendOrigin.CLIENT


class AppendInfo(NamedTuple):
    first_offset: int
    last_offset: int
    log_append_time_ms: int
    log_start_offset: int
    duplicate: bool


class LogAppends(LogTransactions):
    __slots__ = ()

    def append_as_leader(
        self,
        data: memoryview,
        leader_epoch: int,
        now_ms: int,
        origin: AppendOrigin = CLIENT,
        prepared: PreparedBatch | None = None,
    ) -> AppendInfo:
        """Appends one batch at the log end; base offset and leader epoch are patched into `data`, a writable view.

        Raises KafkaError with the code to answer, StorageError if the disk failed, TakesLongerError if the records must
        be looked at in a thread (`append_checks.prepare`) and given as `prepared` then.
        """
        if self.failure is not None:
            self.check_online()
        config = self.config
        append_time_ms = NO_TIMESTAMP
        if prepared is not None:
            data, header, append_time_ms = prepared
        else:
            plain = read_plain_header(data) if origin is CLIENT else None
            if plain is not None and len(data) <= config.max_message_bytes <= config.segment_bytes:
                header = plain
            else:
                header = read_header(data)
                check_batch(data, header, config, origin)
            if origin is CLIENT:
                if plain is None or plain.attributes or self.converts:
                    data, header, append_time_ms = convert(data, header, config, now_ms)
                else:
                    check_timestamps(header, config, now_ms)
        marker = None
        if header.producer_id >= 0:
            try:
                duplicate = self.producers.check(header, origin)
            except KafkaError:
                duplicate = self._find_older_duplicate(header)
                if duplicate is None:
                    raise
            if duplicate is not None:
                return self._duplicate(duplicate, append_time_ms)
            if header.attributes & CONTROL_MASK:
                marker = end_marker(data)
                if marker is not None:
                    self.producers.check_marker(header.producer_id, marker)
        base_offset = self.log_end_offset
        last_offset = base_offset + header.last_offset_delta
        if marker is not None and marker.is_abort:
            self._prepare_to_index(len(data), last_offset, header.max_timestamp, now_ms)
        patch_in_place(data, 0, base_offset, leader_epoch)
        self._write(data, base_offset, last_offset, header.max_timestamp, last_offset, leader_epoch, now_ms)
        try:
            if header.producer_id >= 0:
                self._on_producer_batch(header, base_offset, marker)
        finally:
            # Whatever went wrong, these bytes are in the file: no other batch may get their offsets.
            self.log_end_offset = self.producers.end_offset = last_offset + 1
        return tuple.__new__(AppendInfo, (base_offset, last_offset, append_time_ms, self.log_start_offset, False))

    def _find_older_duplicate(self, header: BatchHeader) -> BatchMetadata | None:
        """Looks for a refused batch among those from before the last start, which are read at the first such need."""
        if not self.producers.may_lack_batches:
            return None
        try:
            refill_batches(self)
        except (BrokenChainError, OSError) as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, f"reading back {self.topic_partition}: {error}") from error
        entry = self.producers.producers.get(header.producer_id)
        return None if entry is None else entry.find_duplicate(header)

    def _duplicate(self, batch: BatchMetadata, append_time_ms: int) -> AppendInfo:
        """A retry of a batch that was written before is answered as the first time."""
        timestamp = NO_TIMESTAMP if append_time_ms == NO_TIMESTAMP else batch.timestamp
        return AppendInfo(batch.first_offset, batch.last_offset, timestamp, self.log_start_offset, True)

    def _write(
        self,
        data: memoryview,
        first_offset: int,
        last_offset: int,
        max_timestamp: int,
        max_timestamp_offset: int,
        leader_epoch: int,
        now_ms: int,
    ) -> None:
        segment = self.active
        config = self.config
        limits = (config.segment_bytes, self.max_segment_ms)
        try:
            if segment.must_roll(len(data), last_offset, max_timestamp, now_ms, limits):
                segment = self.roll(now_ms)
            if leader_epoch != self.leader_epochs.latest and leader_epoch != NO_LEADER_EPOCH:
                self.leader_epochs.assign(leader_epoch, first_offset)
            segment.append(data, last_offset, max_timestamp, max_timestamp_offset)
        except OSError as error:
            self._undo_write(error)
            self.raise_write_error(error, "appending to")

    def _prepare_to_index(self, size: int, last_offset: int, max_timestamp: int, now_ms: int) -> None:
        """Before an abort marker is written: its entry will go into an index that is whole and open."""
        try:
            if self.active.must_roll(
                size, last_offset, max_timestamp, now_ms, (self.config.segment_bytes, self.max_segment_ms)
            ):
                self.roll(now_ms)
            self.transaction_index(self.active).open()
        except OSError as error:
            self.raise_write_error(error, "indexing an aborted transaction of")
        except BrokenChainError as error:
            raise KafkaError(ErrorCode.KAFKA_STORAGE_ERROR, str(error)) from error

    def _undo_write(self, error: OSError) -> None:
        try:
            self.active.undo_torn_write()
        except OSError as second:
            # Bytes of half a batch would stay in the file and the next append would not cover them all.
            raise self.fail(second, "cutting a torn write from") from error

    def _on_producer_batch(self, header: BatchHeader, base_offset: int, marker: EndTransactionMarker | None) -> None:
        if not header.attributes & CONTROL_MASK:
            self.producers.update(header, base_offset)
        elif marker is not None:
            aborted = self.producers.complete(header, marker, base_offset, header.max_timestamp)
            if aborted is not None:
                try:
                    self.active.transaction_index.append(aborted)
                except OSError as error:
                    # The marker is written, but consumers would see the aborted records: recovery mends that.
                    raise self.fail(error, "indexing an aborted transaction of") from error

    def append_as_follower(self, data: memoryview, now_ms: int) -> AppendInfo | None:
        """Appends batches as the leader wrote them, offsets and epochs included; a partial last batch is left out.

        Each CRC is checked. Raises KafkaError (CORRUPT_MESSAGE, or OFFSET_OUT_OF_RANGE for offsets that do not follow
        on) and StorageError. None if there was no whole batch.
        """
        if self.failure is not None:
            self.check_online()
        batches = self._check_follower_batches(data)
        if not batches:
            return None
        start = 0
        for number, (position, header) in enumerate(batches):
            following = batches[number + 1] if number + 1 < len(batches) else None
            end = position + header.size_in_bytes
            if (
                following is None
                or following[1].partition_leader_epoch != header.partition_leader_epoch
                or end + following[1].size_in_bytes - batches[start][0] > self.config.segment_bytes
            ):
                self._append_run(
                    data[batches[start][0] : end], [header for _, header in batches[start : number + 1]], now_ms
                )
                start = number + 1
        first, last = batches[0][1], batches[-1][1]
        return AppendInfo(first.base_offset, last.last_offset, NO_TIMESTAMP, self.log_start_offset, False)

    def _check_follower_batches(self, data: memoryview) -> list[tuple[int, BatchHeader]]:
        expected = self.log_end_offset
        batches = list(iter_headers(data))
        for position, header in batches:
            if not crc_matches(data, position, header) or header.last_offset_delta < 0:
                raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the leader's batch at {header.base_offset} is damaged")
            if header.base_offset < expected:
                raise KafkaError(
                    ErrorCode.OFFSET_OUT_OF_RANGE, f"the leader's batch starts at {header.base_offset}, not {expected}"
                )
            expected = header.next_offset
        return batches

    def _append_run(self, data: memoryview, headers: list[BatchHeader], now_ms: int) -> None:
        """Batches of one leader epoch, in one write. Nothing below this may refuse them: the leader has decided."""
        first, last = headers[0], headers[-1]
        newest = max(headers, key=lambda header: header.max_timestamp)
        markers = _markers(data, headers)
        if any(marker is not None and marker.is_abort for marker in markers):
            self._prepare_to_index(len(data), last.last_offset, newest.max_timestamp, now_ms)
        self._write(
            data,
            first.base_offset,
            last.last_offset,
            newest.max_timestamp,
            newest.last_offset,
            first.partition_leader_epoch,
            now_ms,
        )
        try:
            for header, marker in zip(headers, markers):
                if header.producer_id >= 0:
                    self._on_producer_batch(header, header.base_offset, marker)
        finally:
            self.log_end_offset = self.producers.end_offset = last.next_offset


def _markers(data: memoryview, headers: list[BatchHeader]) -> list[EndTransactionMarker | None]:
    """For each batch its transaction marker, if it is one."""
    found: list[EndTransactionMarker | None] = []
    position = 0
    for header in headers:
        end = position + header.size_in_bytes
        found.append(end_marker(data[position:end]) if header.attributes & CONTROL_MASK else None)
        position = end
    return found
