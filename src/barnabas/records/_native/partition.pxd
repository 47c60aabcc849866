"""For other extensions, which may hash a key without a Python call."""

from libc.stdint cimport int32_t


cdef int32_t murmur2_of(bytes key) noexcept
