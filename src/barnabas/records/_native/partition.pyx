# cython: language_level=3, cdivision=True
"""murmur2 as in Java; see _pure/partition.py."""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef enum:
    SEED = 0x9747B28C
    MULTIPLIER = 0x5BD1E995


cdef int32_t murmur2_raw(const uint8_t* data, Py_ssize_t length) noexcept nogil:
    cdef uint32_t hashed = <uint32_t>SEED ^ <uint32_t>length
    cdef uint32_t word
    while length >= 4:
        word = data[0] | <uint32_t>data[1] << 8 | <uint32_t>data[2] << 16 | <uint32_t>data[3] << 24
        word *= <uint32_t>MULTIPLIER
        word = (word ^ word >> 24) * <uint32_t>MULTIPLIER
        hashed = hashed * <uint32_t>MULTIPLIER ^ word
        data += 4
        length -= 4
    if length:
        word = data[0]
        if length > 1:
            word |= <uint32_t>data[1] << 8
        if length > 2:
            word |= <uint32_t>data[2] << 16
        hashed = (hashed ^ word) * <uint32_t>MULTIPLIER
    hashed = (hashed ^ hashed >> 13) * <uint32_t>MULTIPLIER
    return <int32_t>(hashed ^ hashed >> 15)


cdef int32_t murmur2_of(bytes key) noexcept:
    """Of a key that is not None."""
    return murmur2_raw(<const uint8_t*>PyBytes_AS_STRING(key), PyBytes_GET_SIZE(key))


def murmur2(data):
    """The signed 32-bit hash of Java's Utils.murmur2."""
    return murmur2_of(data if isinstance(data, bytes) else memoryview(data).tobytes())


def partition_for_key(key, int partitions):
    if partitions <= 0:
        raise ValueError(f"a topic cannot have {partitions} partitions")
    return (murmur2_of(key if isinstance(key, bytes) else memoryview(key).tobytes()) & 0x7FFFFFFF) % partitions
