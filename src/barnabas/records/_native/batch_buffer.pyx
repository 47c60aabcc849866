# cython: language_level=3, boundscheck=False, wraparound=False
"""One batch under construction, written straight into one growing buffer; see _pure/batch_buffer.py.

The memory is a bytearray, so that a finished batch is a view of it and not a copy. Nothing between the check of the
room and the last byte of a record may call into Python.
"""

from cpython.bytearray cimport PyByteArray_AS_STRING, PyByteArray_FromStringAndSize, PyByteArray_Resize
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_CheckExact, PyBytes_GET_SIZE
from libc.stdint cimport int64_t, uint8_t, uint32_t, uint64_t
from libc.string cimport memcpy

from barnabas.records._native.wire cimport (
    HEADER_SIZE,
    LOG_OVERHEAD,
    MAX_INT32,
    NO_FAULT,
    RawRecord,
    bytes_or_none,
    get_record,
    headers_of,
    put_int16,
    put_int32,
    put_int64,
    put_varint,
    varint_size,
    wrapping_difference,
    wrapping_sum,
)

from barnabas.records.compression import CompressionType, compress

cdef extern from "crc32c.h":
    void crc32c_prepare() noexcept
    uint32_t crc32c(const void* data, size_t length) noexcept nogil

cdef extern from *:
    """
    #define BARNABAS_EXPORTS(memory) (((PyByteArrayObject *)(memory))->ob_exports)
    """
    Py_ssize_t exports_of "BARNABAS_EXPORTS"(object memory)

cdef enum:
    NO_TIMESTAMP = -1
    MAX_RECORD_OVERHEAD = 31
    MAX_LENGTH_BYTES = 5
    TRANSACTIONAL_MASK = 0x10
    PRODUCER_OFFSET = 43

crc32c_prepare()
_NO_COMPRESSION = CompressionType.NONE


cdef class BatchBuffer:
    def __cinit__(self, Py_ssize_t capacity):
        self._take_memory(max(capacity, HEADER_SIZE))
        self.reset()

    cdef int _take_memory(self, Py_ssize_t capacity) except -1:
        self._memory = PyByteArray_FromStringAndSize(NULL, capacity)
        self._data = <uint8_t*>PyByteArray_AS_STRING(self._memory)
        self._capacity = capacity
        return 0

    cdef int _grow(self, Py_ssize_t needed) except -1:
        cdef Py_ssize_t capacity = max(needed, 2 * self._capacity)
        PyByteArray_Resize(self._memory, capacity)
        self._data = <uint8_t*>PyByteArray_AS_STRING(self._memory)
        self._capacity = capacity
        return 0

    def reset(self):
        """Empty again, for another batch, in the same memory unless a view returned by `finish` is still held."""
        self._finished = None
        if exports_of(self._memory):
            self._take_memory(self._capacity)
        self.count = 0
        self.size = HEADER_SIZE
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP

    def append(self, int64_t timestamp, key, value, headers=None):
        """Adds a record and returns its index in the batch. A rejected record leaves the batch unchanged."""
        return self.append_within(timestamp, key, value, headers, MAX_INT32)

    def try_append(self, int64_t timestamp, key, value, headers, Py_ssize_t limit):
        """As `append`, but -1 if the record would take the batch over `limit`; an empty batch takes any record."""
        return self.append_within(timestamp, key, value, headers, limit if self.count else MAX_INT32)

    cdef int append_within(self, int64_t timestamp, key, value, headers, Py_ssize_t limit) except -2:
        """The index of the record, or -1 if it would take the batch, even an empty one, over `limit`."""
        cdef list pairs = None
        cdef Py_ssize_t headers_size = 1
        if self._finished is not None:
            raise ValueError("the batch is finished: reset it first")
        if key is not None and not PyBytes_CheckExact(key):
            key = _checked("key", key)
        if value is not None and not PyBytes_CheckExact(value):
            value = _checked("value", value)
        if headers:
            pairs = _checked_headers(headers)
            headers_size = _headers_size(pairs)

        cdef int64_t delta = wrapping_difference(timestamp, self.base_timestamp) if self.count else 0
        cdef Py_ssize_t body = 1 + varint_size(delta) + varint_size(self.count) + headers_size
        body += _size(key) + _size(value)
        cdef Py_ssize_t size = self.size + varint_size(body) + body
        if size > limit:
            if size <= MAX_INT32:
                return -1
            raise OverflowError(f"a batch of {size} bytes: more than 2 GiB")
        if size > self._capacity:
            self._grow(size)

        cdef uint8_t* data = put_varint(self._data + self.size, body)
        data[0] = 0
        data = put_varint(data + 1, delta)
        data = put_varint(data, self.count)
        data = _put_bytes(data, key)
        data = _put_bytes(data, value)
        if pairs is None:
            data[0] = 0
        else:
            _put_headers(data, pairs)
        if not self.count:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.size = size
        self.count += 1
        return self.count - 1

    cdef int append_raw(
        self,
        int64_t timestamp,
        const uint8_t* key,
        Py_ssize_t key_length,
        const uint8_t* value,
        Py_ssize_t value_length,
        const uint8_t* headers,
        Py_ssize_t headers_size,
        Py_ssize_t limit,
    ) except -2:
        """As `append_within`, from memory: a length of -1 is null, `headers` are encoded with their count (or NULL)."""
        if self._finished is not None:
            raise ValueError("the batch is finished: reset it first")
        cdef int64_t delta = wrapping_difference(timestamp, self.base_timestamp) if self.count else 0
        cdef Py_ssize_t body = 1 + varint_size(delta) + varint_size(self.count) + (headers_size if headers else 1)
        body += _raw_size(key_length) + _raw_size(value_length)
        cdef Py_ssize_t size = self.size + varint_size(body) + body
        if size > limit:
            return -1
        if size > self._capacity:
            self._grow(size)
        cdef uint8_t* data = put_varint(self._data + self.size, body)
        data[0] = 0
        data = put_varint(data + 1, delta)
        data = put_varint(data, self.count)
        data = _put_raw(data, key, key_length)
        data = _put_raw(data, value, value_length)
        if headers:
            memcpy(data, headers, <size_t>headers_size)
        else:
            data[0] = 0
        if not self.count:
            self.base_timestamp = timestamp
        if timestamp > self.max_timestamp:
            self.max_timestamp = timestamp
        self.size = size
        self.count += 1
        return self.count - 1

    def would_fit(self, key, value, headers, Py_ssize_t limit):
        """Whether the batch stays within `limit` bytes, by an upper bound; an empty batch takes any record."""
        if not self.count:
            return True
        cdef Py_ssize_t bound = self.size + MAX_RECORD_OVERHEAD + 1 + _bound(key) + _bound(value)
        if headers:
            bound += MAX_LENGTH_BYTES
            for name, data in headers:
                bound += 2 * MAX_LENGTH_BYTES + len(name.encode("utf-8", "surrogateescape")) + _bound(data)
        return bound <= limit

    def finish(
        self,
        *,
        codec=_NO_COMPRESSION,
        level=None,
        bint transactional=False,
        int64_t producer_id=-1,
        short producer_epoch=-1,
        int base_sequence=-1,
    ):
        """The whole batch, compressed, with its CRC. Nothing can be appended until `reset`."""
        if not self.count:
            raise ValueError("the batch has no records")
        cdef object finished = self._memory
        cdef Py_ssize_t size = self.size
        cdef bytes block
        if codec != 0:
            block = compress(codec, memoryview(self._memory)[HEADER_SIZE:self.size], level)
            size = HEADER_SIZE + PyBytes_GET_SIZE(block)
            finished = PyByteArray_FromStringAndSize(NULL, size)
            memcpy(PyByteArray_AS_STRING(finished) + HEADER_SIZE, PyBytes_AS_STRING(block), PyBytes_GET_SIZE(block))
        cdef uint8_t* data = <uint8_t*>PyByteArray_AS_STRING(finished)
        put_int64(data, 0)
        put_int32(data + 8, <uint32_t>(size - LOG_OVERHEAD))
        put_int32(data + 12, <uint32_t>-1)
        data[16] = 2
        put_int16(data + 21, <uint32_t><int>codec | (TRANSACTIONAL_MASK if transactional else 0))
        put_int32(data + 23, <uint32_t>(self.count - 1))
        put_int64(data + 27, <uint64_t>self.base_timestamp)
        put_int64(data + 35, <uint64_t>self.max_timestamp)
        put_int32(data + 57, <uint32_t>self.count)
        self._finished = finished
        self._finished_size = size
        self.set_producer(producer_id, producer_epoch, base_sequence)
        return memoryview(finished)[:size]

    def set_producer(self, int64_t producer_id, short producer_epoch, int base_sequence):
        """Changes the finished batch in place, and its CRC; views of it see the change."""
        if self._finished is None:
            raise ValueError("the batch is not finished")
        cdef uint8_t* data = <uint8_t*>PyByteArray_AS_STRING(self._finished)
        put_int64(data + PRODUCER_OFFSET, <uint64_t>producer_id)
        put_int16(data + PRODUCER_OFFSET + 8, <uint32_t>producer_epoch)
        put_int32(data + PRODUCER_OFFSET + 10, <uint32_t>base_sequence)
        put_int32(data + 17, crc32c(data + 21, <size_t>(self._finished_size - 21)))

    def records(self):
        """Timestamp, key, value and headers of all records, to append them to smaller batches."""
        cdef list records = []
        cdef RawRecord record
        cdef const uint8_t* data = self._data + HEADER_SIZE
        for _ in range(self.count):
            if get_record(data, self._data + self.size, &record) != NO_FAULT:
                raise AssertionError("a batch buffer cannot read what it wrote")
            records.append(
                (
                    wrapping_sum(self.base_timestamp, record.timestamp_delta),
                    bytes_or_none(record.key, record.key_length),
                    bytes_or_none(record.value, record.value_length),
                    headers_of(&record) if record.header_count else (),
                )
            )
            data = record.end
        return records


cdef inline Py_ssize_t _size(data):
    """With the length in front; `data` is exact bytes or None."""
    return varint_size(PyBytes_GET_SIZE(data)) + PyBytes_GET_SIZE(data) if data is not None else 1


cdef inline uint8_t* _put_bytes(uint8_t* data, content):
    if content is None:
        data[0] = 1
        return data + 1
    data = put_varint(data, PyBytes_GET_SIZE(content))
    memcpy(data, PyBytes_AS_STRING(content), PyBytes_GET_SIZE(content))
    return data + PyBytes_GET_SIZE(content)


cdef inline Py_ssize_t _raw_size(Py_ssize_t length) noexcept nogil:
    return varint_size(length) + length if length >= 0 else 1


cdef inline uint8_t* _put_raw(uint8_t* data, const uint8_t* content, Py_ssize_t length) noexcept nogil:
    data = put_varint(data, length)
    if length > 0:
        memcpy(data, content, <size_t>length)
        data += length
    return data


cdef object _checked(str what, data):
    if data is None or PyBytes_CheckExact(data):
        return data
    if not isinstance(data, (bytes, bytearray, memoryview)):
        raise TypeError(f"a record's {what} must be bytes-like or None, not {type(data).__name__}")
    return bytes(data)


cdef list _checked_headers(headers):
    """Name and value one after the other, as exact bytes (or None, for a value)."""
    cdef list pairs = []
    for name, data in headers:
        if not isinstance(name, str):
            raise TypeError(f"a record header's key must be str, not {type(name).__name__}")
        pairs.append(str.encode(name, "utf-8", "surrogateescape"))
        pairs.append(_checked("header value", data))
    return pairs


cdef Py_ssize_t _headers_size(list pairs):
    cdef Py_ssize_t size = varint_size(len(pairs) // 2)
    for content in pairs:
        size += _size(content)
    return size


cdef void _put_headers(uint8_t* data, list pairs):
    data = put_varint(data, len(pairs) // 2)
    for content in pairs:
        data = _put_bytes(data, content)


cdef Py_ssize_t _bound(data) except -1:
    if data is None:
        return 0
    return data.nbytes if isinstance(data, memoryview) else len(data)
