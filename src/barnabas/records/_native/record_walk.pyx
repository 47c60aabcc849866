# cython: language_level=3, boundscheck=False, wraparound=False
"""`_pure/record_walk.py` in C and without the GIL: the same functions, the same results; that module says what they are."""

from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_FromStringAndSize
from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy

from barnabas.records._native.walk cimport MAX_REFUSED, Walk, WalkLimits, walk_batch
from barnabas.records._native.wire cimport (
    NO_FAULT,
    RawRecord,
    get_record,
    get_varint,
    get_varlong,
    put_varint,
    varint_size,
    wrapping_sum,
)

from barnabas.records.walk_result import RecordsWalk, Refused

cdef object _new_tuple = tuple.__new__


def walk_records(
    payload not None, int32_t count, int64_t base_timestamp, bint key_needed, int64_t earliest, int64_t latest
):
    cdef Py_buffer view
    cdef Walk walk
    cdef WalkLimits limits
    cdef int fault
    limits.key_needed = key_needed
    limits.earliest = earliest
    limits.latest = latest
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        with nogil:
            fault = walk_batch(
                <const uint8_t*>view.buf, <const uint8_t*>view.buf + view.len, count, base_timestamp, &limits, &walk
            )
    finally:
        PyBuffer_Release(&view)
    refused = [
        Refused(walk.refused[i], None if walk.refused_for_key[i] else walk.refused_timestamps[i])
        for i in range(min(walk.refused_count, <int32_t>MAX_REFUSED))
    ]
    return _new_tuple(
        RecordsWalk,
        (fault, walk.index, walk.max_timestamp, bool(walk.consecutive), walk.refused_count, refused),
    )


def find_by_time(payload not None, int32_t count, int64_t base_timestamp, int64_t timestamp, int32_t first_delta):
    cdef Py_buffer view
    cdef RawRecord raw
    cdef const uint8_t* data
    cdef const uint8_t* end
    cdef int32_t i
    cdef int fault = NO_FAULT
    cdef bint found = False
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t*>view.buf
        end = data + view.len
        with nogil:
            for i in range(count):
                fault = get_record(data, end, &raw)
                if fault != NO_FAULT:
                    break
                if raw.offset_delta >= first_delta and wrapping_sum(base_timestamp, raw.timestamp_delta) >= timestamp:
                    found = True
                    break
                data = raw.end
    finally:
        PyBuffer_Release(&view)
    if found:
        return wrapping_sum(base_timestamp, raw.timestamp_delta), raw.offset_delta
    if fault != NO_FAULT:
        raise ValueError("the records end before the last one is complete")
    return None


cdef Py_ssize_t renumbered_size(const uint8_t* data, const uint8_t* end, int32_t count) noexcept nogil:
    """-1 if a record is not whole."""
    cdef RawRecord raw
    cdef Py_ssize_t size = 0
    cdef Py_ssize_t body
    cdef int32_t length, i
    cdef const uint8_t* start
    for i in range(count):
        start = get_varint(data, end, &length)
        if get_record(data, end, &raw) != NO_FAULT:
            return -1
        body = length - varint_size(raw.offset_delta) + varint_size(i)
        size += varint_size(body) + body
        data = raw.end
    return size


cdef void write_renumbered(const uint8_t* data, const uint8_t* end, int32_t count, uint8_t* out) noexcept nogil:
    cdef int64_t timestamp_delta
    cdef int32_t length, offset_delta, i
    cdef const uint8_t* start
    cdef const uint8_t* after
    cdef const uint8_t* record_end
    for i in range(count):
        start = get_varint(data, end, &length)
        record_end = start + length
        data = get_varlong(start + 1, record_end, &timestamp_delta)
        after = get_varint(data, record_end, &offset_delta)
        out = put_varint(out, (data - start) + varint_size(i) + (record_end - after))
        memcpy(out, start, data - start)
        out = put_varint(out + (data - start), i)
        memcpy(out, after, record_end - after)
        out += record_end - after
        data = record_end


def renumber(payload not None, int32_t count):
    cdef Py_buffer view
    cdef const uint8_t* data
    cdef const uint8_t* end
    cdef uint8_t* out
    cdef Py_ssize_t size
    PyObject_GetBuffer(payload, &view, PyBUF_SIMPLE)
    try:
        data = <const uint8_t*>view.buf
        end = data + view.len
        with nogil:
            size = renumbered_size(data, end, count)
        if size < 0:
            raise ValueError("the records end before the last one is complete")
        renumbered = PyBytes_FromStringAndSize(NULL, size)
        out = <uint8_t*>PyBytes_AS_STRING(renumbered)
        with nogil:
            write_renumbered(data, end, count, out)
    finally:
        PyBuffer_Release(&view)
    return renumbered
