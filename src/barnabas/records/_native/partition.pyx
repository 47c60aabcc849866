# cython: language_level=3
"""murmur2 as in Java; see _pure/partition.py."""

from libc.stdint cimport int32_t, uint8_t, uint32_t

cdef enum:
    SEED = 0x9747B28C
    MULTIPLIER = 0x5BD1E995


cdef int32_t _murmur2(const uint8_t* data, Py_ssize_t length) noexcept nogil:
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


def murmur2(data):
    cdef bytes content = bytes(data) if not isinstance(data, bytes) else data
    return _murmur2(<const uint8_t*><const char*>content, len(content))


def partition_for_key(key, int partitions):
    if partitions <= 0:
        raise ValueError(f"a topic cannot have {partitions} partitions")
    cdef bytes content = bytes(key) if not isinstance(key, bytes) else key
    return (_murmur2(<const uint8_t*><const char*>content, len(content)) & 0x7FFFFFFF) % partitions
