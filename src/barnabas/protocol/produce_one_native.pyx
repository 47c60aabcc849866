# cython: language_level=3, boundscheck=False, wraparound=False
"""`produce_one_pure` in C: the same two functions, the same results; that module says what they are. The tests hold both
against each other. Nothing is read beyond the end of the frame: every length is checked before it is followed."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cpython.unicode cimport PyUnicode_DecodeASCII
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

cdef extern from "Python.h":
    const char *PyUnicode_AsUTF8AndSize(object unicode, Py_ssize_t *size) except NULL

cdef enum:
    FIRST_VERSION = 9
    FIRST_TOPIC_ID_VERSION = 13


cdef inline int16_t read_int16(const uint8_t *at) noexcept nogil:
    return <int16_t>((at[0] << 8) | at[1])


cdef inline int32_t read_int32(const uint8_t *at) noexcept nogil:
    return <int32_t>((<uint32_t>at[0] << 24) | (<uint32_t>at[1] << 16) | (<uint32_t>at[2] << 8) | at[3])


cdef inline bint is_ascii(const uint8_t *at, Py_ssize_t length) noexcept nogil:
    cdef Py_ssize_t i
    for i in range(length):
        if at[i] >= 0x80:
            return False
    return True


cdef object decode(object frame, const uint8_t *at, Py_ssize_t size):
    cdef Py_ssize_t position, start, end
    cdef int version, acks, client_id_length
    cdef int32_t partition
    cdef uint32_t length
    cdef int shift
    if size < 10 or at[0] or at[1]:
        return None
    version = read_int16(at + 2)
    client_id_length = read_int16(at + 8)
    if version < FIRST_VERSION or version > FIRST_TOPIC_ID_VERSION or client_id_length < -1:
        return None
    position = 10 + (client_id_length if client_id_length > 0 else 0)
    if position + 9 > size or at[position] or at[position + 1] or at[position + 8] != 2:
        return None
    acks = read_int16(at + position + 2)
    if (acks != 1 and acks != -1) or not is_ascii(at + 10, position - 10):
        return None
    start = position + 9
    if version == FIRST_TOPIC_ID_VERSION:
        end = start + 16
    else:
        if start >= size or at[start] < 2 or at[start] >= 0x80:
            return None
        end = start + at[start]
        start += 1
    if end + 6 > size or at[end] != 2:
        return None
    partition = read_int32(at + end + 1)
    if version == FIRST_TOPIC_ID_VERSION:
        topic = PyBytes_FromStringAndSize(<const char *>at + start, 16)
    elif is_ascii(at + start, end - start):
        topic = PyUnicode_DecodeASCII(<const char *>at + start, end - start, NULL)
    else:
        return None
    length = at[end + 5]
    start = end + 6
    shift = 0
    while length >> shift >= 0x80:
        shift += 7
        if shift > 21 or start >= size:
            return None
        length = (length & ((<uint32_t>1 << shift) - 1)) | (<uint32_t>at[start] << shift)
        start += 1
    end = start + <Py_ssize_t>length - 1
    if start >= end or end + 3 != size or at[end] or at[end + 1] or at[end + 2]:
        return None
    return version, read_int32(at + 4), acks, topic, partition, frame[start:end]


def decode_one(frame not None):
    cdef Py_buffer view
    PyObject_GetBuffer(frame, &view, PyBUF_SIMPLE)
    try:
        return decode(frame, <const uint8_t *>view.buf, view.len)
    finally:
        PyBuffer_Release(&view)


cdef inline uint8_t *write_int32(uint8_t *at, uint32_t value) noexcept nogil:
    at[0], at[1], at[2], at[3] = (
        <uint8_t>(value >> 24), <uint8_t>(value >> 16), <uint8_t>(value >> 8), <uint8_t>value
    )
    return at + 4


cdef inline uint8_t *write_int64(uint8_t *at, uint64_t value) noexcept nogil:
    return write_int32(write_int32(at, <uint32_t>(value >> 32)), <uint32_t>value)


def encode_one(tuple request not None, int64_t base_offset, int64_t log_append_time_ms, int64_t log_start_offset):
    cdef int32_t correlation_id = request[1]
    cdef int32_t partition = request[4]
    cdef Py_ssize_t name_length
    cdef const char *name
    cdef uint8_t *at
    topic = request[3]
    cdef bint by_id = isinstance(topic, bytes)
    if by_id:
        name, name_length = PyBytes_AS_STRING(topic), PyBytes_GET_SIZE(topic)
    else:
        name = PyUnicode_AsUTF8AndSize(topic, &name_length)
        if name_length >= 0x7F:
            raise ValueError("a name as long as this is not from decode_one")
    cdef Py_ssize_t size = 10 + (0 if by_id else 1) + name_length + 40
    response = PyBytes_FromStringAndSize(NULL, size)
    at = <uint8_t *>PyBytes_AS_STRING(response)
    at = write_int32(at, <uint32_t>(size - 4))
    at = write_int32(at, <uint32_t>correlation_id)
    at[0], at[1] = 0, 2
    at += 2
    if not by_id:
        at[0] = <uint8_t>(name_length + 1)
        at += 1
    memcpy(at, name, name_length)
    at += name_length
    at[0] = 2
    at = write_int32(at + 1, <uint32_t>partition)
    at[0], at[1] = 0, 0
    at = write_int64(at + 2, <uint64_t>base_offset)
    at = write_int64(at, <uint64_t>log_append_time_ms)
    at = write_int64(at, <uint64_t>log_start_offset)
    at[0], at[1], at[2], at[3] = 1, 0, 0, 0
    at = write_int32(at + 4, 0)
    at[0] = 0
    return response
