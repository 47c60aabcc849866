"""Fetched batches into the columns of one Arrow record batch."""

from collections.abc import Sequence
from typing import Any, Final

from barnabas.errors import KafkaError
from barnabas.records._pure.fetched_batches import FetchedBatches, offset_outside
from barnabas.records.arrow_columns import load_pyarrow, record_schema
from barnabas.records.header import BatchHeader, Buffer
from barnabas.records.read_fault import read_fault
from barnabas.records.reader import decode_records

_MAX_COLUMN_BYTES: Final = 0x7FFF_FFFF
"""Arrow's binary columns count their bytes in 32 bits."""


class ArrowReader:
    """`add` fetched bytes of as many partitions as wanted, then `finish`; the reader is empty and ready again."""

    def __init__(self, *, check_crcs: bool = True, max_column_bytes: int = _MAX_COLUMN_BYTES) -> None:
        """`max_column_bytes` bounds the records (decompressed) that one record batch takes."""
        self._max_column_bytes = min(max_column_bytes, _MAX_COLUMN_BYTES)
        self._check_crcs = check_crcs
        self._pyarrow = load_pyarrow()
        self._reset()

    def _reset(self) -> None:
        self.full = False
        self.leader_epoch: int | None = None
        self._columns: tuple[list[Any], ...] = tuple([] for _ in range(8))
        self._payload_bytes = 0

    @property
    def count(self) -> int:
        return len(self._columns[0])

    def add(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        start_offset: int = 0,
        *,
        aborted: Sequence[tuple[int, int]] | None = None,
        in_place: bool = False,
    ) -> int:
        """Reads all records from `start_offset` on and returns the position after them.

        Stops early, with `full` set, before a batch that would take a column over its bound: finish, then add again
        from the returned position. Stops early also at a fault after good records; to add again from there raises it.
        `leader_epoch` is then that of the last batch read.

        In place: the buffer is nobody else's, and values may be moved to its front, where they become their column.
        Once something was read it must not be read again. (This twin copies values anyway.)
        """
        batches = FetchedBatches(buffer, start_offset, aborted, self._check_crcs)
        count = self.count
        self.full = False
        self.leader_epoch = None
        try:
            while (batch := batches.next_batch()) is not None:
                if self.count and self._payload_bytes + len(batch[1]) > self._max_column_bytes:
                    self.full = True
                    break
                self._payload_bytes += len(batch[1])
                self._add_batch(batches, *batch, topic, partition)
        except KafkaError as error:
            if self.count == count:
                raise read_fault(topic, partition, batches.next_offset, error) from None
        self.leader_epoch = batches.leader_epoch
        return batches.next_offset

    def _add_batch(
        self, batches: FetchedBatches, header: BatchHeader, payload: bytes, topic: str, partition: int
    ) -> None:
        timestamp_type = int(header.timestamp_type)
        for offset, timestamp, key, value, headers in decode_records(header, payload):
            if not header.base_offset <= offset <= header.last_offset:
                raise offset_outside(header, offset)
            if offset < batches.next_offset:
                continue
            # Header keys that are not UTF-8 cannot be in a column of strings.
            safe = [
                (name.encode("utf-8", "surrogateescape").decode("utf-8", "replace"), data) for name, data in headers
            ]
            row = (key, value, safe or None, topic, partition, offset, timestamp, timestamp_type)
            for column, cell in zip(self._columns, row):
                column.append(cell)
            batches.seen(header, offset + 1)
        batches.passed(header)

    def finish(self) -> Any:
        """A pyarrow.RecordBatch of all that was added, with the columns of arrow_columns.py."""
        schema = record_schema(self._pyarrow)
        columns = [self._pyarrow.array(cells, type=field.type) for cells, field in zip(self._columns, schema)]
        self._reset()
        return self._pyarrow.RecordBatch.from_arrays(columns, schema=schema)
