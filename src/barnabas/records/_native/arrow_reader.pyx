# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Fetched batches into the columns of one Arrow record batch, without an object a record; see _pure/arrow_reader.py.

Uncompressed batches are read without the GIL, in one step.
"""

from libc.stdint cimport int32_t, int64_t

from barnabas.records._native.fetched_batches cimport AT_END, OPENED, FetchedBatches, Step
from barnabas.records._native.record_columns cimport COLUMN_FULL, NO_MEMORY, RecordColumns
from barnabas.records._native.wire cimport NO_FAULT

from barnabas.errors import KafkaError
from barnabas.records.read_fault import read_fault

cdef enum:
    COMPRESSION_MASK = 0x07
    MAX_COLUMN_BYTES = 0x7FFFFFFF
    # Less is read before another thread would be awake, and to get the GIL back may take milliseconds.
    WORTH_RELEASING = 65536


cdef class ArrowReader:
    """`add` fetched bytes of as many partitions as wanted, then `finish`; the reader is empty and ready again."""

    cdef RecordColumns _columns
    cdef bint _check_crcs
    cdef bint _busy
    cdef list _runs
    cdef int32_t _leader_epoch
    cdef readonly bint full

    def __init__(self, *, bint check_crcs=True, int64_t max_column_bytes=MAX_COLUMN_BYTES):
        """`max_column_bytes` bounds the records (decompressed) that one record batch takes."""
        self._columns = RecordColumns(max_column_bytes)
        self._check_crcs = check_crcs
        self._reset()

    cdef void _reset(self):
        self._runs = []
        self._leader_epoch = -1
        self.full = False

    @property
    def count(self):
        return self._columns.count

    @property
    def leader_epoch(self):
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def add(
        self,
        buffer,
        str topic not None,
        int32_t partition,
        int64_t start_offset=0,
        *,
        aborted=None,
        bint in_place=False,
    ):
        """Reads all records from `start_offset` on and returns the position after them.

        Stops early, with `full` set, before a batch that would take a column over its bound: finish, then add again
        from the returned position. Stops early also at a fault after good records; to add again from there raises it.
        `leader_epoch` is then that of the last batch read.

        In place: the buffer is nobody else's, and values may be moved to its front, where they become their column.
        Once something was read it must not be read again.
        """
        cdef FetchedBatches batches = FetchedBatches(buffer, start_offset, aborted, self._check_crcs)
        cdef Py_ssize_t count = self._columns.count
        self._check_idle()
        self._columns.leave_place()
        self.full = False
        if in_place and not count and not batches.view.readonly:
            self._columns.fill_in_place(batches)
        self._busy = True
        try:
            self._add_all(batches)
        except KafkaError as error:
            if self._columns.count == count:
                raise read_fault(topic, partition, batches.next_offset, error) from None
        finally:
            self._busy = False
            if self._columns.count > count:
                self._runs.append((topic, partition, self._columns.count - count))
        self._leader_epoch = batches.leader_epoch
        return batches.next_offset

    def finish(self):
        """A pyarrow.RecordBatch of all that was added, with the columns of arrow_columns.py."""
        self._check_idle()
        rows = self._columns.finish(self._runs)
        self._reset()
        return rows

    cdef int _check_idle(self) except -1:
        if self._busy:
            raise RuntimeError("the reader is being used in another thread")
        return 0

    cdef int _add_all(self, FetchedBatches batches) except -1:
        cdef int fault
        cdef Step step
        cdef bint opened = False
        cdef Py_ssize_t size
        while True:
            size = batches.payload_end - batches.payload if opened else batches.view.len - batches.position
            self._columns.prepare(batches, opened)
            if size >= WORTH_RELEASING:
                with nogil:
                    fault = self._add_plain(batches, opened, &step)
            else:
                fault = self._add_plain(batches, opened, &step)
            if fault == COLUMN_FULL:
                self.full = True
                return 0
            if fault == NO_MEMORY:
                raise MemoryError("no memory for Arrow columns")
            if fault != NO_FAULT:
                batches.raise_record_fault(fault)
            if step == AT_END:
                return 0
            opened = batches.finish_step()
            if opened and batches.attributes & COMPRESSION_MASK:
                self._columns.leave_place()  # decompressed, the records may need more room than there is

    cdef int _add_plain(self, FetchedBatches batches, bint opened, Step* step) noexcept nogil:
        """Batches as long as none needs Python; first the open one, if there is one."""
        cdef int fault
        while True:
            if not opened:
                step[0] = batches.step()
                if step[0] != OPENED:
                    return NO_FAULT
            opened = False
            fault = self._columns.add_batch(batches)
            if fault != NO_FAULT:
                return fault
