from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t

from barnabas.records._native.wire cimport RawRecord


cdef enum Step:
    AT_END = 0
    OPENED = 1
    NEEDS_PYTHON = 2


cdef class FetchedBatches:
    cdef object source
    cdef object payload_owner
    cdef list to_abort
    cdef set aborted_producers
    cdef Py_buffer view
    cdef bint tracks_aborted
    cdef bint check_crcs
    cdef bint failed

    # Where the reader is.
    cdef Py_ssize_t position
    cdef int64_t next_offset
    cdef int32_t leader_epoch

    # The batch at the position, or the one that was opened last.
    cdef int64_t base_offset
    cdef int64_t last_offset
    cdef int64_t base_timestamp
    cdef int64_t max_timestamp
    cdef int64_t producer_id
    cdef int32_t batch_epoch
    cdef int32_t attributes
    cdef Py_ssize_t batch_end
    cdef int32_t records_left
    cdef const uint8_t* payload
    cdef const uint8_t* payload_end

    cdef bint at_end(self) noexcept nogil
    cdef void estimate(self, size_t* records, size_t* payload_bytes) noexcept nogil
    cdef Step step(self) noexcept nogil
    cdef bint next_batch(self) except -1
    cdef bint finish_step(self) except -1
    cdef int next_record(self, RawRecord* record) noexcept nogil
    cdef void passed(self) noexcept nogil
    cdef int raise_record_fault(self, int fault) except -1
    cdef bint _fail(self) noexcept nogil
    cdef bint _read_header(self) noexcept nogil
    cdef void _open(self, const uint8_t* payload, Py_ssize_t size) noexcept nogil
    cdef void _skip(self) noexcept nogil
    cdef int _raise_batch_fault(self) except -1
    cdef bint _is_aborted(self) except -1
