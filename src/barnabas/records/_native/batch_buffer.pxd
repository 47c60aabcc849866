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

    cdef int append_raw(
        self,
        int64_t timestamp,
        const uint8_t* key,
        Py_ssize_t key_length,
        const uint8_t* value,
        Py_ssize_t value_length,
        const uint8_t* headers,
        Py_ssize_t headers_size,
        Py_ssize_t limit,
    ) except -2
    cdef int append_within(self, int64_t timestamp, key, value, headers, Py_ssize_t limit) except -2
    cdef int _take_memory(self, Py_ssize_t capacity) except -1
    cdef int _grow(self, Py_ssize_t needed) except -1
