"""What the cleaner keeps of one batch.

The result is the batch itself, a smaller batch with the same offsets, an empty batch, or nothing. Offsets never change,
and the last offset of a batch stays, since a producer's next sequence number follows from it.

Tombstones (KIP-534): the first cleaning that finds one writes its deletion time into the batch, in place
of the base timestamp; a later cleaning after that time drops it. Markers of transactions without data go the same way.
"""

import time
from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.records.builder import BatchBuilder, empty_batch
from barnabas.records.compression import compression_type
from barnabas.records.header import BatchHeader, Buffer
from barnabas.records.reader import iter_records, read_records
from barnabas.records.record import Record
from barnabas.storage.cleaner.log_to_clean import LastRecord
from barnabas.storage.cleaner.offset_map import OffsetMap
from barnabas.storage.cleaner.transactions import CleanedTransactions

RECORDS_BETWEEN_STOPS: Final = 256


def records_releasing_gil(batch: Buffer) -> Iterator[Record]:
    """The records of a batch, however many; the GIL is released now and then for the event loop."""
    for number, record in enumerate(iter_records(batch), 1):
        yield record
        if not number % RECORDS_BETWEEN_STOPS:
            time.sleep(0)


class Kept(NamedTuple):
    data: Buffer | None
    records_read: int
    records_kept: int


class BatchFilter:
    __slots__ = (
        "_delete_retention_ms",
        "_last_records",
        "_map",
        "_now_ms",
        "_transactions",
        "_upper_bound_offset",
    )

    def __init__(
        self,
        offset_map: OffsetMap,
        transactions: CleanedTransactions,
        last_records: dict[int, LastRecord],
        *,
        upper_bound_offset: int,
        now_ms: int,
        delete_retention_ms: int,
    ) -> None:
        """`upper_bound_offset`: where the cleaning ends; the batch before it stays, to keep the offset it ends at."""
        self._map = offset_map
        self._transactions = transactions
        self._last_records = last_records
        self._upper_bound_offset = upper_bound_offset
        self._now_ms = now_ms
        self._delete_retention_ms = delete_retention_ms

    def keep(self, header: BatchHeader, batch: Buffer) -> Kept:
        horizon_passed = header.delete_horizon_ms is not None and header.delete_horizon_ms <= self._now_ms
        empty_marker = False
        kept: list[Record] = []
        if header.is_control:
            kept = read_records(batch)
            records_read = len(kept)
            empty_marker = self._transactions.on_control_batch(header, kept)
            if empty_marker and horizon_passed:
                kept = []
        else:
            aborted = self._transactions.on_data_batch(header)
            records_read = 0
            for record in records_releasing_gil(batch):
                records_read += 1
                if not aborted and self._keeps_record(record, horizon_passed):
                    kept.append(record)
        if not kept:
            data = empty_batch(header) if self._must_keep_batch(header) else None
            return Kept(data, records_read, 0)
        stamp = header.delete_horizon_ms is None and (empty_marker or any(record.value is None for record in kept))
        if len(kept) == records_read and not stamp:
            return Kept(batch, records_read, len(kept))
        horizon = self._now_ms + self._delete_retention_ms if stamp else header.delete_horizon_ms
        return Kept(_rebuild(header, kept, horizon), records_read, len(kept))

    def _keeps_record(self, record: Record, horizon_passed: bool) -> bool:
        if record.offset > self._map.latest_offset:
            return True
        if record.key is None:
            return False  # from before the topic was compacted: nothing could ever replace it
        if record.offset < self._map.get(record.key):
            return False
        return record.value is not None or not horizon_passed

    def _must_keep_batch(self, header: BatchHeader) -> bool:
        if header.next_offset == self._upper_bound_offset:
            return True
        last = self._last_records.get(header.producer_id) if header.has_producer_id else None
        if last is None:
            return False
        if last.last_data_offset is not None:
            return header.last_offset == last.last_data_offset
        return header.is_control and header.producer_epoch == last.producer_epoch


def _rebuild(header: BatchHeader, records: list[Record], delete_horizon_ms: int | None) -> bytearray:
    builder = BatchBuilder(
        compression_type(header.compression),
        base_offset=header.base_offset,
        log_append_time=header.max_timestamp if header.timestamp_type else None,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        delete_horizon_ms=delete_horizon_ms,
        leader_epoch=header.partition_leader_epoch,
    )
    for record in records:
        builder.append(record.timestamp, record.key, record.value, record.headers, record.offset)
    return builder.build(last_offset=header.last_offset)
