# cython: language_level=3, boundscheck=False, wraparound=False
"""`plain_batch_pure` in C: the same function, the same results; that module says what it is. The tests hold both against
each other.

The CRC of a small batch is computed here, eight bytes at a step from tables; a large one goes to the crc32c package,
whose use of the processor's own instruction pays from some hundred bytes on.
"""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

from crc32c import crc32c

from barnabas.records.header import BatchHeader

cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    ATTRIBUTES_OFFSET = 21
    CURRENT_MAGIC = 2
    LAST_CODEC = 4
    SMALL_BYTES = 512

cdef uint32_t[8][256] TABLES


cdef void fill_tables() noexcept:
    """Castagnoli's polynomial, bits reversed. TABLES[k][b] is byte b followed by k zero bytes."""
    cdef uint32_t value
    cdef int byte, k
    for byte in range(256):
        value = byte
        for k in range(8):
            value = (value >> 1) ^ (<uint32_t>0x82F63B78 if value & 1 else 0)
        TABLES[0][byte] = value
    for byte in range(256):
        for k in range(1, 8):
            TABLES[k][byte] = (TABLES[k - 1][byte] >> 8) ^ TABLES[0][TABLES[k - 1][byte] & 0xFF]


fill_tables()


cdef uint32_t small_crc(const uint8_t *at, Py_ssize_t length) noexcept nogil:
    cdef uint32_t crc = ~<uint32_t>0
    while length >= 8:
        crc ^= at[0] | (<uint32_t>at[1] << 8) | (<uint32_t>at[2] << 16) | (<uint32_t>at[3] << 24)
        crc = (
            TABLES[7][crc & 0xFF] ^ TABLES[6][(crc >> 8) & 0xFF] ^ TABLES[5][(crc >> 16) & 0xFF] ^ TABLES[4][crc >> 24]
            ^ TABLES[3][at[4]] ^ TABLES[2][at[5]] ^ TABLES[1][at[6]] ^ TABLES[0][at[7]]
        )
        at += 8
        length -= 8
    while length:
        crc = (crc >> 8) ^ TABLES[0][(crc ^ at[0]) & 0xFF]
        at += 1
        length -= 1
    return ~crc


cdef inline int16_t read_int16(const uint8_t *at) noexcept nogil:
    return <int16_t>((at[0] << 8) | at[1])


cdef inline uint32_t read_uint32(const uint8_t *at) noexcept nogil:
    return (<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3]


cdef inline int64_t read_int64(const uint8_t *at) noexcept nogil:
    return <int64_t>((<uint64_t>read_uint32(at) << 32) | read_uint32(at + 4))


cdef object read(object data, const uint8_t *at, Py_ssize_t size):
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
    if size <= SMALL_BYTES:
        if small_crc(at + ATTRIBUTES_OFFSET, size - ATTRIBUTES_OFFSET) != crc:
            return None
    elif crc32c(data[ATTRIBUTES_OFFSET:]) != crc:
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
        return read(data, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)
