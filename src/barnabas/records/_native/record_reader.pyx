# cython: language_level=3, boundscheck=False, wraparound=False
"""The records of one partition in a fetch response, decoded on demand; see _pure/record_reader.py."""

from libc.stdint cimport int32_t, int64_t

from barnabas.records._native.consumer_record cimport ConsumerRecord
from barnabas.records._native.fetched_batches cimport FetchedBatches
from barnabas.records._native.wire cimport NO_FAULT, RawRecord, bytes_or_none, headers_of, wrapping_sum

from barnabas.errors import KafkaError
from barnabas.records.header import TimestampType
from barnabas.records.read_fault import read_fault

cdef extern from "Python.h":
    void PyObject_GC_UnTrack(object record)

cdef enum:
    TIMESTAMP_TYPE_MASK = 0x08
    BYTES_FOLLOW = -11

_CREATE_TIME = TimestampType.CREATE_TIME
_LOG_APPEND_TIME = TimestampType.LOG_APPEND_TIME


cdef class RecordReader:
    cdef readonly object topic
    cdef readonly int32_t partition
    cdef FetchedBatches _batches
    cdef bint _open
    cdef object _fault

    def __init__(
        self, buffer, str topic not None, int32_t partition, int64_t start_offset=0, *, aborted=None, bint check_crcs=True
    ):
        """`aborted` is the response's list of (producer id, first offset), for read_committed consumers."""
        self.topic = topic
        self.partition = partition
        self._batches = FetchedBatches(buffer, start_offset, aborted, check_crcs)

    @property
    def size_in_bytes(self):
        return self._batches.view.len

    @property
    def next_offset(self):
        """The position after what was taken, beyond what a consumer does not see."""
        return self._batches.next_offset

    @property
    def leader_epoch(self):
        """Of the batch that `next_offset` comes from; None before the first, or if it has none."""
        return self._batches.leader_epoch if self._batches.leader_epoch >= 0 else None

    @property
    def exhausted(self):
        """True when nothing is left, not even a fault that was not raised yet."""
        return self._fault is None and not self._open and self._batches.at_end()

    def take(self, Py_ssize_t n):
        """The next records, at most n; fewer only at the end, or before a fault, which the next call raises."""
        if self._fault is not None:
            raise self._fault
        cdef list taken = []
        try:
            while len(taken) < n:
                if not self._open and not self._batches.next_batch():
                    break
                self._open = True
                self._take_from_batch(taken, n)
        except KafkaError as error:
            self._fault = read_fault(self.topic, self.partition, self._batches.next_offset, error)
            if not taken:
                raise self._fault from None
        return taken

    cdef int _take_from_batch(self, list taken, Py_ssize_t n) except -1:
        cdef FetchedBatches batches = self._batches
        cdef ConsumerRecord record
        cdef RawRecord raw
        cdef int fault
        cdef int64_t offset
        cdef bint append_time = (batches.attributes & TIMESTAMP_TYPE_MASK) != 0
        cdef object timestamp_type = _LOG_APPEND_TIME if append_time else _CREATE_TIME
        while batches.records_left and len(taken) < n:
            fault = batches.next_record(&raw)
            if fault != NO_FAULT:
                batches.raise_record_fault(fault)
            offset = batches.base_offset + raw.offset_delta
            if offset < batches.next_offset:
                continue
            record = ConsumerRecord.__new__(ConsumerRecord)
            record.topic = self.topic
            record.partition = self.partition
            record.offset = offset
            record.timestamp = (
                batches.max_timestamp if append_time else wrapping_sum(batches.base_timestamp, raw.timestamp_delta)
            )
            record.timestamp_type = timestamp_type
            record.key = bytes_or_none(raw.key, raw.key_length)
            record.value = bytes_or_none(raw.value, raw.value_length)
            record.headers = headers_of(&raw) if raw.header_count else ()
            record.epoch = batches.batch_epoch
            record.serialized_key_size = raw.key_length
            record.serialized_value_size = raw.value_length
            # Nothing in it can lead back to it, so the collector need not look, as with a tuple of bytes.
            PyObject_GC_UnTrack(record)
            taken.append(record)
            batches.next_offset = offset + 1
            batches.leader_epoch = batches.batch_epoch
        if not batches.records_left:
            if batches.payload != batches.payload_end:
                batches.raise_record_fault(BYTES_FOLLOW)
            batches.passed()
            batches.payload_owner = None
            self._open = False
        return 0
