"""For other extensions, which may append without a Python call."""

from libc.stdint cimport int64_t, uint8_t


cdef class BatchBuffer:
    cdef object _memory
    cdef object _finished
    cdef uint8_t* _data
    cdef Py_ssize_t _capacity
    cdef Py_ssize_t _finished_size
    cdef readonly Py_ssize_t size
    cdef readonly int64_t base_timestamp
    cdef readonly int64_t max_timestamp
    cdef readonly int count

    cdef int append_within(self, int64_t timestamp, key, value, headers, Py_ssize_t limit) except -2
    cdef int _take_memory(self, Py_ssize_t capacity) except -1
    cdef int _grow(self, Py_ssize_t needed) except -1
