"""For other extensions, which may hash a key without a Python call."""

from libc.stdint cimport int32_t, uint8_t


cdef int32_t murmur2_of(bytes key) noexcept
cdef int32_t murmur2_raw(const uint8_t* data, Py_ssize_t length) noexcept nogil
