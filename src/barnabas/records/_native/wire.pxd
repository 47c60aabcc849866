"""The layout of records: big-endian integers, zigzag varints, one record. Inline C for the modules beside this one.

Every read is against an end pointer. Sums of deltas wrap as Java's do, hence the detour over unsigned integers.
"""

from cpython.bytes cimport PyBytes_FromStringAndSize
from cpython.unicode cimport PyUnicode_DecodeUTF8
from libc.stdint cimport int16_t, int32_t, int64_t, uint8_t, uint32_t, uint64_t

cdef enum:
    HEADER_SIZE = 61
    LOG_OVERHEAD = 12
    MAX_INT32 = 0x7FFFFFFF

cdef enum RecordFault:
    NO_FAULT = 0
    RECORDS_END = -1
    PARTS_DO_NOT_ADD_UP = -2
    BAD_HEADERS = -3


cdef struct RawRecord:
    int64_t timestamp_delta
    int32_t offset_delta
    int32_t key_length
    int32_t value_length
    int32_t header_count
    const uint8_t* key
    const uint8_t* value
    const uint8_t* headers
    const uint8_t* end


cdef struct RawHeader:
    int32_t key_length
    int32_t value_length
    const uint8_t* key
    const uint8_t* value


cdef inline int32_t get_int32(const uint8_t* data) noexcept nogil:
    return <int32_t>(<uint32_t>data[0] << 24 | <uint32_t>data[1] << 16 | <uint32_t>data[2] << 8 | data[3])


cdef inline int16_t get_int16(const uint8_t* data) noexcept nogil:
    return <int16_t>(<uint32_t>data[0] << 8 | data[1])


cdef inline int64_t get_int64(const uint8_t* data) noexcept nogil:
    return <int64_t>(<uint64_t><uint32_t>get_int32(data) << 32 | <uint32_t>get_int32(data + 4))


cdef inline void put_int16(uint8_t* data, uint32_t value) noexcept nogil:
    data[0] = <uint8_t>(value >> 8)
    data[1] = <uint8_t>value


cdef inline void put_int32(uint8_t* data, uint32_t value) noexcept nogil:
    put_int16(data, value >> 16)
    put_int16(data + 2, value)


cdef inline void put_int64(uint8_t* data, uint64_t value) noexcept nogil:
    put_int32(data, <uint32_t>(value >> 32))
    put_int32(data + 4, <uint32_t>value)


cdef inline int64_t wrapping_sum(int64_t one, int64_t other) noexcept nogil:
    return <int64_t>(<uint64_t>one + <uint64_t>other)


cdef inline int64_t wrapping_difference(int64_t one, int64_t other) noexcept nogil:
    return <int64_t>(<uint64_t>one - <uint64_t>other)


cdef inline uint64_t zigzag(int64_t value) noexcept nogil:
    return (<uint64_t>value << 1) ^ <uint64_t>(value >> 63)


cdef inline Py_ssize_t varint_size(int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    cdef Py_ssize_t size = 1
    while rest > 0x7F:
        rest >>= 7
        size += 1
    return size


cdef inline uint8_t* put_varint(uint8_t* data, int64_t value) noexcept nogil:
    cdef uint64_t rest = zigzag(value)
    while rest > 0x7F:
        data[0] = <uint8_t>(rest | 0x80)
        rest >>= 7
        data += 1
    data[0] = <uint8_t>rest
    return data + 1


cdef inline const uint8_t* get_varint(const uint8_t* data, const uint8_t* end, int32_t* value) noexcept nogil:
    """The position after it, or NULL: the data end first, or it is longer than five bytes."""
    cdef uint32_t rest = 0
    cdef int shift = 0
    while shift < 35:
        if data >= end:
            return NULL
        rest |= <uint32_t>((<uint64_t>(data[0] & 0x7F)) << shift)
        data += 1
        if data[-1] < 0x80:
            value[0] = <int32_t>((rest >> 1) ^ (0 - (rest & 1)))
            return data
        shift += 7
    return NULL


cdef inline const uint8_t* get_varlong(const uint8_t* data, const uint8_t* end, int64_t* value) noexcept nogil:
    """The position after it, or NULL: the data end first, or it is longer than ten bytes."""
    cdef uint64_t rest = 0
    cdef int shift = 0
    while shift < 70:
        if data >= end:
            return NULL
        rest |= <uint64_t>(data[0] & 0x7F) << shift
        data += 1
        if data[-1] < 0x80:
            value[0] = <int64_t>((rest >> 1) ^ (0 - (rest & 1)))
            return data
        shift += 7
    return NULL


cdef inline const uint8_t* get_bytes(
    const uint8_t* data, const uint8_t* end, int32_t* length, const uint8_t** content
) noexcept nogil:
    """A length (-1 for null, which any negative one is) and as many bytes; NULL if they reach beyond the end."""
    data = get_varint(data, end, length)
    if data == NULL:
        return NULL
    content[0] = data
    if length[0] < 0:
        length[0] = -1
        return data
    if length[0] > end - data:
        return NULL
    return data + length[0]


cdef inline const uint8_t* get_header(const uint8_t* data, const uint8_t* end, RawHeader* header) noexcept nogil:
    data = get_bytes(data, end, &header.key_length, &header.key)
    if data == NULL or header.key_length < 0:
        return NULL
    return get_bytes(data, end, &header.value_length, &header.value)


cdef inline RecordFault get_record(const uint8_t* data, const uint8_t* end, RawRecord* record) noexcept nogil:
    """One record, its headers checked too. `record.end` is where the next one starts."""
    cdef int32_t length
    cdef RawHeader header
    data = get_varint(data, end, &length)
    if data == NULL or length < 0 or length > end - data:
        return RECORDS_END
    end = data + length
    record.end = end
    if length < 1:
        return PARTS_DO_NOT_ADD_UP
    data = get_varlong(data + 1, end, &record.timestamp_delta)
    if data == NULL:
        return PARTS_DO_NOT_ADD_UP
    data = get_varint(data, end, &record.offset_delta)
    if data == NULL:
        return PARTS_DO_NOT_ADD_UP
    data = get_bytes(data, end, &record.key_length, &record.key)
    if data == NULL:
        return PARTS_DO_NOT_ADD_UP
    data = get_bytes(data, end, &record.value_length, &record.value)
    if data == NULL:
        return PARTS_DO_NOT_ADD_UP
    data = get_varint(data, end, &record.header_count)
    if data == NULL:
        return PARTS_DO_NOT_ADD_UP
    record.headers = data
    if record.header_count:
        if record.header_count < 0 or record.header_count > end - data:
            return BAD_HEADERS
        for _ in range(record.header_count):
            data = get_header(data, end, &header)
            if data == NULL:
                return BAD_HEADERS
    if data != end:
        return PARTS_DO_NOT_ADD_UP
    return NO_FAULT


cdef inline object bytes_or_none(const uint8_t* data, int32_t length):
    return PyBytes_FromStringAndSize(<const char*>data, length) if length >= 0 else None


cdef inline tuple headers_of(const RawRecord* record):
    """The headers of a record that `get_record` took."""
    cdef list headers = []
    cdef RawHeader header
    cdef const uint8_t* data = record.headers
    for _ in range(record.header_count):
        data = get_header(data, record.end, &header)
        if data == NULL:
            raise ValueError("the headers changed while they were read")
        name = PyUnicode_DecodeUTF8(<const char*>header.key, header.key_length, "surrogateescape")
        headers.append((name, bytes_or_none(header.value, header.value_length)))
    return tuple(headers)
