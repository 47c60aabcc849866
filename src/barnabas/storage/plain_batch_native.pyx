# cython: language_level=3, boundscheck=False, wraparound=False
"""`plain_batch_pure` in C: the same function, the same results; that module says what it is. The tests hold both against
each other.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport INT64_MAX, INT64_MIN, int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from barnabas.records._native.walk cimport Walk, WalkLimits, walk_batch
from barnabas.records._native.wire cimport NO_FAULT

from barnabas.records.header import BatchHeader

cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    ATTRIBUTES_OFFSET = 21
    CURRENT_MAGIC = 2
    LAST_CODEC = 4
    RELEASE_GIL_BYTES = 256 * 1024  # below, another thread could not do much in the time, and getting it back may wait

cdef extern from "../records/_native/crc32c.h":
    void crc32c_prepare() noexcept
    uint32_t crc32c(const void* data, size_t length) noexcept nogil


crc32c_prepare()


cdef inline int16_t read_int16(const uint8_t *at) noexcept nogil:
    return <int16_t>((at[0] << 8) | at[1])


cdef inline uint32_t read_uint32(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline int64_t read_int64(const uint8_t *at) noexcept nogil:
    return <int64_t>((<uint64_t>read_uint32(at) << 32) | read_uint32(at + 4))


cdef bint records_are_plain(const uint8_t *at, Py_ssize_t size, int32_t count) noexcept nogil:
    """Whole, numbered from 0 on, and with the highest timestamp that the header has."""
    cdef WalkLimits limits
    cdef Walk walk
    limits.key_needed = False
    limits.earliest = INT64_MIN
    limits.latest = INT64_MAX
    return (
        walk_batch(at + HEADER_SIZE, at + size, count, read_int64(at + 27), &limits, &walk) == NO_FAULT
        and walk.consecutive
        and walk.max_timestamp == read_int64(at + 35)
    )


cdef bint content_is_plain(const uint8_t *at, Py_ssize_t size, uint32_t crc, int16_t attributes, int32_t count) noexcept nogil:
    if crc32c(at + ATTRIBUTES_OFFSET, <size_t>(size - ATTRIBUTES_OFFSET)) != crc:
        return False
    return attributes != 0 or records_are_plain(at, size, count)


cdef object read(const uint8_t *at, Py_ssize_t size):
    cdef bint plain
    cdef int64_t length, delta, count, producer_id
    cdef int32_t base_sequence
    cdef uint32_t crc
    cdef int16_t attributes
    if size < HEADER_SIZE or at[16] != CURRENT_MAGIC or read_int64(at):
        return None
    length = <int32_t>read_uint32(at + 8)
    crc = read_uint32(at + 17)
    attributes = read_int16(at + 21)
    delta = <int32_t>read_uint32(at + 23)
    producer_id = read_int64(at + 43)
    base_sequence = <int32_t>read_uint32(at + 53)
    count = <int32_t>read_uint32(at + 57)
    if (
        length + LOG_OVERHEAD != size
        or count <= 0
        or delta + 1 != count
        or not 0 <= attributes <= LAST_CODEC
        or (producer_id >= 0 and base_sequence < 0)
    ):
        return None
    if size < RELEASE_GIL_BYTES:
        plain = content_is_plain(at, size, crc, attributes, <int32_t>count)
    else:
        with nogil:
            plain = content_is_plain(at, size, crc, attributes, <int32_t>count)
    if not plain:
        return None
    return tuple.__new__(
        BatchHeader,
        (
            0, length, <int32_t>read_uint32(at + 12), CURRENT_MAGIC, crc, attributes, delta, read_int64(at + 27),
            read_int64(at + 35), producer_id, read_int16(at + 51), base_sequence, count,
        ),
    )


def read_plain_header(data not None):
    cdef Py_buffer view
    PyObject_GetBuffer(data, &view, PyBUF_SIMPLE)
    try:
        return read(<const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
