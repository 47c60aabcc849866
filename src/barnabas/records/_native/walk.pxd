"""The walk over the records of a batch that a leader does before it takes the batch. Inline C, without the GIL.

record_walk.pyx and storage/plain_batch_native.pyx use it; _pure/record_walk.py says what is checked.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from barnabas.records._native.wire cimport NO_FAULT, RECORDS_END, RawRecord, get_record, wrapping_sum

cdef enum:
    SMALLEST_RECORD = 7
    ROOM = 16
    BYTES_FOLLOW = -11
    MAX_REFUSED = 100


cdef struct WalkLimits:
    bint key_needed
    int64_t earliest
    int64_t latest


cdef struct Walk:
    int32_t index
    int64_t max_timestamp
    bint consecutive
    int32_t refused_count
    int32_t refused[MAX_REFUSED]
    int64_t refused_timestamps[MAX_REFUSED]
    bint refused_for_key[MAX_REFUSED]


cdef inline void note_refused(Walk* walk, int32_t index, int64_t timestamp, bint for_key) noexcept nogil:
    cdef int32_t slot = walk.refused_count
    walk.refused_count += 1
    if slot < MAX_REFUSED:
        walk.refused[slot] = index
        walk.refused_timestamps[slot] = timestamp
        walk.refused_for_key[slot] = for_key


cdef inline const uint8_t* get_short(const uint8_t* data, int32_t* value) noexcept nogil:
    """A varint of one or two bytes, without a check of the end; NULL if it is longer."""
    cdef uint32_t rest = data[0]
    if rest >= 0x80:
        if data[1] >= 0x80:
            return NULL
        rest = (rest & 0x7F) | <uint32_t>data[1] << 7
        data += 1
    value[0] = <int32_t>((rest >> 1) ^ (0 - (rest & 1)))
    return data + 1


cdef inline bint get_plain_record(const uint8_t* data, const uint8_t* end, RawRecord* record) noexcept nogil:
    """What `get_record` does, for nearly all records: no headers, no number of more than two bytes, some bytes left.

    False means that `get_record` has to look.
    """
    cdef int32_t length, timestamp_delta
    if end - data < ROOM:
        return False
    data = get_short(data, &length)
    if data == NULL or length < 0 or length > end - data - ROOM:
        return False
    record.end = data + length
    data = get_short(data + 1, &timestamp_delta)
    if data == NULL:
        return False
    record.timestamp_delta = timestamp_delta
    data = get_short(data, &record.offset_delta)
    if data == NULL:
        return False
    data = get_short(data, &record.key_length)
    if data == NULL:
        return False
    if record.key_length > 0:
        data += record.key_length
        if data > record.end:
            return False
    data = get_short(data, &record.value_length)
    if data == NULL:
        return False
    if record.value_length > 0:
        data += record.value_length
    return data + 1 == record.end and data[0] == 0


cdef inline int walk_batch(
    const uint8_t* data,
    const uint8_t* end,
    int32_t count,
    int64_t base_timestamp,
    const WalkLimits* limits,
    Walk* walk,
) noexcept nogil:
    """NO_FAULT or the fault of the record at `walk.index`."""
    cdef RawRecord raw
    cdef int64_t timestamp
    cdef int64_t max_timestamp = -1
    cdef int32_t out_of_place = 0
    cdef int32_t i
    cdef int fault
    walk.index = 0
    walk.refused_count = 0
    walk.consecutive = True
    walk.max_timestamp = -1
    if count > (end - data) // SMALLEST_RECORD:
        # One that claims more than fit is not walked through: the first record beyond them is missing for sure.
        walk.index = <int32_t>((end - data) // SMALLEST_RECORD)
        return RECORDS_END
    for i in range(count):
        if not get_plain_record(data, end, &raw):
            fault = get_record(data, end, &raw)
            if fault != NO_FAULT:
                walk.index = i
                return fault
        data = raw.end
        timestamp = wrapping_sum(base_timestamp, raw.timestamp_delta)
        if timestamp > max_timestamp:
            max_timestamp = timestamp
        out_of_place |= raw.offset_delta ^ i
        if limits.key_needed and raw.key_length < 0:
            note_refused(walk, i, timestamp, True)
        elif (timestamp < limits.earliest or timestamp > limits.latest) and timestamp != -1:
            note_refused(walk, i, timestamp, False)
    walk.max_timestamp = max_timestamp
    walk.consecutive = out_of_place == 0
    if data != end:
        walk.index = count - 1
        return BYTES_FOLLOW
    return NO_FAULT
