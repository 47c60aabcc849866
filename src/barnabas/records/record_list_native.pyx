# cython: language_level=3, boundscheck=False, wraparound=False
"""Records of a batch as lists, for the broker's deep scans (the coordinators' logs, compaction).

reader.py calls this and does it all again, slowly, if the result is None: then something is wrong with the records, and
the slow way knows how to say what.
"""

from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t

from barnabas.records._native.wire cimport NO_FAULT, RawRecord, bytes_or_none, get_record, headers_of, wrapping_sum

from barnabas.records.record import Record

cdef int64_t MAX_BASE_OFFSET = 1 << 62
cdef object _new_tuple = tuple.__new__


def read_list(
    bytes payload not None, Py_ssize_t position, int64_t base_offset, int64_t base_timestamp, append_time, int count
):
    """`count` records from `position` on, and the position after them."""
    cdef const uint8_t* start = <const uint8_t*>PyBytes_AS_STRING(payload)
    cdef const uint8_t* data = start + position
    cdef const uint8_t* end = start + PyBytes_GET_SIZE(payload)
    cdef list records = []
    cdef RawRecord raw
    if count < 0 or position < 0 or data > end or not -MAX_BASE_OFFSET < base_offset < MAX_BASE_OFFSET:
        return None
    for _ in range(count):
        if get_record(data, end, &raw) != NO_FAULT:
            return None
        data = raw.end
        timestamp = wrapping_sum(base_timestamp, raw.timestamp_delta) if append_time is None else append_time
        fields = (
            base_offset + raw.offset_delta,
            timestamp,
            bytes_or_none(raw.key, raw.key_length),
            bytes_or_none(raw.value, raw.value_length),
            headers_of(&raw) if raw.header_count else (),
        )
        records.append(_new_tuple(Record, fields))
    return records, data - start
