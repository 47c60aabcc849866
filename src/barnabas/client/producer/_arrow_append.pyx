# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, binding=True
"""Rows of Arrow columns into the open batches of a producer, compiled; the twin is `_arrow_append_pure.py`.

Reads Arrow's buffers (validity bits, offsets, data) where they lie: no Python object is made for a row. The caller holds
the accumulator's lock and this code the GIL, so no batch is opened, closed or filled by others during a call; that is
why `OpenTopic` may keep borrowed buffers and limits until the call ends, and not a moment longer.
"""

from cpython.ref cimport PyObject
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int32_t, int64_t, uint8_t, uintptr_t
from libc.stdlib cimport calloc, free, realloc
from libc.string cimport memcmp, memcpy

from barnabas.records._native.batch_buffer cimport BatchBuffer
from barnabas.records._native.partition cimport murmur2_raw
from barnabas.records._native.wire cimport put_varint, varint_size

cdef enum:
    NOT_GIVEN_MS = -1
    NULL_LENGTH = -1

cdef int64_t MAX_TIMESTAMP = 1LL << 62


cdef struct Column:
    bint present
    const uint8_t* valid
    const int32_t* offsets
    const int64_t* large_offsets
    const uint8_t* data
    Py_ssize_t start


cdef struct Slot:
    bint looked
    PyObject* buffer
    Py_ssize_t limit
    int first
    int last


cdef const uint8_t* address_of(buffer) except? NULL:
    return NULL if buffer is None else <const uint8_t*><uintptr_t>buffer.address


cdef int take_fixed(Column* column, array) except -1:
    """Numbers: `data` is the second buffer."""
    buffers = array.buffers()
    column.present = True
    column.valid = address_of(buffers[0]) if array.null_count else NULL
    column.data = address_of(buffers[1])
    column.start = array.offset
    return 0


cdef int take_binary(Column* column, array, bint large) except -1:
    buffers = array.buffers()
    column.present = True
    column.valid = address_of(buffers[0]) if array.null_count else NULL
    if large:
        column.large_offsets = <const int64_t*>address_of(buffers[1])
    else:
        column.offsets = <const int32_t*>address_of(buffers[1])
    column.data = address_of(buffers[2])
    column.start = array.offset
    return 0


cdef inline bint is_valid(const Column* column, Py_ssize_t row) noexcept nogil:
    row += column.start
    return column.present and (column.valid == NULL or (column.valid[row >> 3] >> (row & 7)) & 1)


cdef inline Py_ssize_t cell(const Column* column, Py_ssize_t row, const uint8_t** content) noexcept nogil:
    """Its length, or -1 for null."""
    cdef int64_t begin, end
    if not is_valid(column, row):
        return NULL_LENGTH
    row += column.start
    if column.offsets != NULL:
        begin, end = column.offsets[row], column.offsets[row + 1]
    else:
        begin, end = column.large_offsets[row], column.large_offsets[row + 1]
    content[0] = column.data + begin
    return end - begin


cdef class OpenTopic:
    """The open batches of a topic during one call: a slot for each partition, and one more for the sticky one."""

    cdef object topic
    cdef Slot* slots
    cdef Py_ssize_t count

    def __cinit__(self, topic):
        self.topic = topic
        self.count = len(topic.partitions)
        self.slots = <Slot*>calloc(<size_t>(self.count + 1), sizeof(Slot))
        if self.slots == NULL:
            raise MemoryError

    def __dealloc__(self):
        free(self.slots)

    cdef object batch_of(self, Py_ssize_t number):
        return self.topic.current if number == self.count else self.topic.partitions[number].open

    cdef Slot* slot(self, Py_ssize_t number) except NULL:
        cdef Slot* slot = &self.slots[number]
        if not slot.looked:
            slot.looked = True
            slot.first = -1
            batch = self.batch_of(number)
            if batch is not None:
                buffer = batch.buffer
                if not isinstance(buffer, BatchBuffer):
                    raise TypeError("compiled appending needs compiled batch buffers")
                slot.buffer = <PyObject*>buffer
                slot.limit = batch.limit
        return slot

    cdef int report(self, dict spans) except -1:
        """Adds what went where to `spans`."""
        cdef Py_ssize_t number
        for number in range(self.count + 1):
            if self.slots[number].buffer != NULL and self.slots[number].first >= 0:
                batch = self.batch_of(number)
                span = spans.get(batch)
                if span is None:
                    spans[batch] = [self.slots[number].first, self.slots[number].last]
                else:
                    span[0] = min(span[0], self.slots[number].first)
                    span[1] = max(span[1], self.slots[number].last)
        return 0


cdef class RowAppender:
    cdef object _kept
    cdef str _topic
    cdef Column _key, _value, _topics, _partition, _timestamp, _headers, _header_keys, _header_values, _header_structs
    cdef uint8_t* _scratch
    cdef Py_ssize_t _scratch_size
    cdef const uint8_t* _last_topic
    cdef Py_ssize_t _last_topic_length
    cdef OpenTopic _last_open

    def __init__(self, dict columns, topic):
        self._topic = topic
        kept = [columns]
        for name, column in columns.items():
            large = str(column.type).startswith("large")
            if name == "key":
                take_binary(&self._key, column, large)
            elif name == "value":
                take_binary(&self._value, column, large)
            elif name == "topic":
                take_binary(&self._topics, column, large)
            elif name == "partition":
                take_fixed(&self._partition, column)
            elif name == "timestamp":
                take_fixed(&self._timestamp, column)
            elif name == "headers":
                structs = column.values
                fields = [structs.field(0), structs.field(1)]
                kept += [structs, *fields]
                take_fixed(&self._headers, column)  # offsets of a list lie where numbers lie
                self._headers.offsets = <const int32_t*>self._headers.data
                take_fixed_validity(&self._header_structs, structs)
                take_binary(&self._header_keys, fields[0], False)
                take_binary(&self._header_values, fields[1], False)
        self._kept = kept

    def __dealloc__(self):
        free(self._scratch)

    def append(self, dict topics, Py_ssize_t start, Py_ssize_t stop, int64_t now_ms, dict spans):
        """Appends rows up to `stop`, or to the first that needs the slow path; its number. Lock held.

        `topics`: those whose records may go straight into an open batch.
        """
        cdef Py_ssize_t row = start
        cdef dict found = {}
        self._last_open = None
        try:
            while row < stop and self._append_row(topics, found, row, now_ms):
                row += 1
        finally:
            self._last_open = None
            for each in found.values():
                (<OpenTopic>each).report(spans)
        return row

    cdef bint _append_row(self, dict topics, dict found, Py_ssize_t row, int64_t now_ms) except -1:
        cdef const uint8_t* key = NULL
        cdef const uint8_t* value = NULL
        cdef Py_ssize_t key_length = cell(&self._key, row, &key)
        cdef Py_ssize_t value_length = cell(&self._value, row, &value)
        cdef Py_ssize_t headers_size = 0
        cdef int64_t timestamp = now_ms
        cdef Py_ssize_t number
        cdef int index
        cdef OpenTopic topic = self._open_topic(topics, found, row)
        if topic is None:
            return False
        if is_valid(&self._partition, row):
            number = (<const int32_t*>self._partition.data)[self._partition.start + row]
            if number < 0 or number >= topic.count:
                return False
        elif key_length < 0:
            number = topic.count
        else:
            number = (murmur2_raw(key, key_length) & 0x7FFFFFFF) % topic.count
        if is_valid(&self._timestamp, row):
            timestamp = (<const int64_t*>self._timestamp.data)[self._timestamp.start + row]
            if timestamp == NOT_GIVEN_MS:
                timestamp = now_ms
        if timestamp < 0 or timestamp >= MAX_TIMESTAMP:
            return False
        if is_valid(&self._headers, row):
            headers_size = self._encode_headers(row)
            if headers_size < 0:
                return False
        cdef Slot* slot = topic.slot(number)
        if slot.buffer == NULL:
            return False
        index = (<BatchBuffer>slot.buffer).append_raw(
            timestamp,
            key,
            key_length,
            value,
            value_length,
            self._scratch if headers_size else NULL,
            headers_size,
            slot.limit,
        )
        if index < 0:
            return False
        if slot.first < 0:
            slot.first = index
        slot.last = index
        return True

    cdef OpenTopic _open_topic(self, dict topics, dict found, Py_ssize_t row):
        """None if the topic needs the slow path first. The next row mostly has the topic of the last."""
        cdef const uint8_t* name = NULL
        cdef Py_ssize_t length = 0
        if self._topic is None:
            length = cell(&self._topics, row, &name)
        if self._last_open is not None and (
            self._topic is not None
            or (length == self._last_topic_length and memcmp(name, self._last_topic, <size_t>length) == 0)
        ):
            return self._last_open
        text = self._topic if self._topic is not None else PyUnicode_DecodeUTF8(<const char*>name, length, NULL)
        opened = found.get(text)
        if opened is None:
            slots = topics.get(text)
            if slots is None:
                return None
            opened = found[text] = OpenTopic(slots)
        self._last_open = opened
        self._last_topic = name
        self._last_topic_length = length
        return self._last_open

    cdef Py_ssize_t _encode_headers(self, Py_ssize_t row) except -2:
        """Into the scratch memory; the size, 0 if there are none, -1 if a header has no name."""
        cdef Py_ssize_t begin = self._headers.offsets[self._headers.start + row]
        cdef Py_ssize_t end = self._headers.offsets[self._headers.start + row + 1]
        cdef const uint8_t* name = NULL
        cdef const uint8_t* value = NULL
        cdef Py_ssize_t name_length, value_length, each
        if begin == end:
            return 0
        cdef Py_ssize_t size = varint_size(end - begin)
        for each in range(begin, end):
            if not is_valid(&self._header_structs, each):
                return -1
            name_length = cell(&self._header_keys, each, &name)
            value_length = cell(&self._header_values, each, &value)
            if name_length < 0:
                return -1
            size += varint_size(name_length) + name_length + varint_size(value_length) + max(0, value_length)
        self._reserve(size)
        cdef uint8_t* data = put_varint(self._scratch, end - begin)
        for each in range(begin, end):
            data = put_cell(data, &self._header_keys, each)
            data = put_cell(data, &self._header_values, each)
        return size

    cdef int _reserve(self, Py_ssize_t size) except -1:
        cdef uint8_t* larger
        if size > self._scratch_size:
            larger = <uint8_t*>realloc(self._scratch, <size_t>(2 * size))
            if larger == NULL:
                raise MemoryError
            self._scratch = larger
            self._scratch_size = 2 * size
        return 0


cdef int take_fixed_validity(Column* column, array) except -1:
    """Of structs, which have no data of their own."""
    column.present = True
    column.valid = address_of(array.buffers()[0]) if array.null_count else NULL
    column.start = array.offset
    return 0


cdef inline uint8_t* put_cell(uint8_t* data, const Column* column, Py_ssize_t row) noexcept nogil:
    cdef const uint8_t* content = NULL
    cdef Py_ssize_t length = cell(column, row, &content)
    data = put_varint(data, length)
    if length > 0:
        memcpy(data, content, <size_t>length)
        data += length
    return data
