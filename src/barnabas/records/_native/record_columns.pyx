# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""The columns of one Arrow record batch while they are filled, and the arrays that are made of them; see arrow_reader.pyx.

Columns are plain memory that grows, laid out as Arrow wants it except for the null bitmaps: those are a byte a row until
`finish` packs them. Values may be filled in place: moved to the front of the very buffer they are read from, so that
nothing is written to memory that was not in the cache a moment ago.
"""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memcpy, memset

from barnabas.records._native.columns cimport (
    BinaryColumn,
    drop_binary,
    put_binary,
    put_int32,
    put_int64,
    reserve_binary,
    reserve_offsets,
)
from barnabas.records._native.fetched_batches cimport FetchedBatches
from barnabas.records._native.memory cimport Block, MemoryPool, drop, reserve
from barnabas.records._native.repeated_columns cimport RepeatedColumns
from barnabas.records._native.wire cimport NO_FAULT, RawHeader, RawRecord, get_header, wrapping_sum

from barnabas.records.arrow_columns import load_pyarrow, record_schema

cdef enum:
    TIMESTAMP_TYPE_MASK = 0x08
    BYTES_FOLLOW = -11
    SHORTEST_RECORD = 7
    MAX_COLUMN_BYTES = 0x7FFFFFFF


cdef class RecordColumns:
    def __cinit__(self, int64_t max_column_bytes):
        self.pool = MemoryPool()
        self.max_column_bytes = min(max_column_bytes, <int64_t>MAX_COLUMN_BYTES)
        self.header_keys_are_ascii = True
        self.pyarrow = load_pyarrow()
        self.schema = record_schema(self.pyarrow)
        self.types = self.schema.types
        self.repeated = RepeatedColumns(self.pyarrow, self.types, self.pool)

    def __dealloc__(self):
        self.drop_all()

    cdef void drop_all(self) noexcept:
        if self.in_place:  # not `place`, which the collector may have taken away
            self.value.data = Block(NULL, 0, 0)
            self.in_place = False
        drop_binary(&self.key)
        drop_binary(&self.value)
        drop_binary(&self.header_key)
        drop_binary(&self.header_value)
        drop(&self.header_ends)
        drop(&self.offset)
        drop(&self.timestamp)
        drop(&self.timestamp_type)
        self.payload_bytes = 0
        self.header_keys_are_ascii = True
        self.header_count = 0
        self.append_time_count = 0
        self.count = 0

    # values in place

    cdef void fill_in_place(self, FetchedBatches batches) noexcept:
        """Nothing has been added yet, and the buffer is nobody else's."""
        drop(&self.value.data)
        self.value.data.data = <uint8_t*>batches.view.buf
        self.place = batches
        self.in_place = True

    cdef int leave_place(self) except -1:
        """Values into a block of their own."""
        cdef Block place
        if not self.in_place:
            return 0
        place = self.value.data
        self.value.data = Block(NULL, 0, 0)
        self.pool.grow(&self.value.data, place.size)
        memcpy(self.value.data.data, place.data, place.size)
        self.value.data.size = place.size
        self.in_place = False
        self.place = None
        return 0

    # filling

    cdef int prepare(self, FetchedBatches batches, bint opened) except -1:
        """Takes memory from the pool for all that is read at once; if a header is wrong, `add_batch` takes more."""
        cdef size_t rows = 0
        cdef size_t payload_bytes = 0
        if opened:
            payload_bytes = batches.payload_end - batches.payload
            rows = min(<size_t>batches.records_left, payload_bytes // SHORTEST_RECORD)
        else:
            batches.estimate(&rows, &payload_bytes)
        payload_bytes = min(payload_bytes, <size_t>self.max_column_bytes)
        for column in range(2):
            self._grow_binary(&self.value if column else &self.key, rows, payload_bytes)
        self.pool.grow(&self.header_ends, 4 * (rows + 1))
        self.pool.grow(&self.offset, 8 * rows)
        self.pool.grow(&self.timestamp, 8 * rows)
        self.pool.grow(&self.timestamp_type, 4 * rows)
        return 0

    cdef int _grow_binary(self, BinaryColumn* column, size_t rows, size_t payload_bytes) except -1:
        self.pool.grow(&column.offsets, 4 * (rows + 1))
        self.pool.grow(&column.valid, rows)
        if not self.in_place or column != &self.value:
            self.pool.grow(&column.data, payload_bytes)
        return 0

    cdef int add_batch(self, FetchedBatches batches) noexcept nogil:
        cdef size_t payload_bytes = batches.payload_end - batches.payload
        cdef int fault
        # A count that would need more is false, which shows before so many are read.
        cdef size_t rows = min(<size_t>batches.records_left, payload_bytes // SHORTEST_RECORD)
        if self.payload_bytes + <int64_t>payload_bytes > self.max_column_bytes and self.count:
            return COLUMN_FULL
        if not self._reserve(rows, payload_bytes):
            return NO_MEMORY
        self.payload_bytes += payload_bytes
        while batches.records_left:
            fault = self._add_record(batches)
            if fault != NO_FAULT:
                return fault
        if batches.payload != batches.payload_end:
            return BYTES_FOLLOW
        batches.passed()
        return NO_FAULT

    cdef int _add_record(self, FetchedBatches batches) noexcept nogil:
        cdef RawRecord raw
        cdef int fault = batches.next_record(&raw)
        cdef int64_t offset
        cdef bint append_time = (batches.attributes & TIMESTAMP_TYPE_MASK) != 0
        if fault != NO_FAULT:
            return fault
        offset = batches.base_offset + raw.offset_delta
        if offset < batches.next_offset:
            return NO_FAULT
        put_binary(&self.key, raw.key, raw.key_length)
        put_binary(&self.value, raw.value, raw.value_length)
        if raw.header_count and not self._add_headers(&raw):
            return NO_MEMORY
        put_int32(&self.header_ends, self.header_count)
        put_int64(&self.offset, offset)
        put_int64(
            &self.timestamp,
            batches.max_timestamp if append_time else wrapping_sum(batches.base_timestamp, raw.timestamp_delta),
        )
        put_int32(&self.timestamp_type, append_time)
        self.append_time_count += append_time
        self.count += 1
        batches.next_offset = offset + 1
        batches.leader_epoch = batches.batch_epoch
        return NO_FAULT

    cdef bint _add_headers(self, const RawRecord* raw) noexcept nogil:
        cdef RawHeader header
        cdef const uint8_t* data = raw.headers
        cdef size_t size = raw.end - raw.headers
        cdef int32_t index
        if not reserve_binary(&self.header_key, raw.header_count, size):
            return False
        if not reserve_binary(&self.header_value, raw.header_count, size):
            return False
        for _ in range(raw.header_count):
            data = get_header(data, raw.end, &header)
            if data == NULL:
                break  # cannot be: the record was checked
            for index in range(header.key_length):
                if header.key[index] >= 0x80:
                    self.header_keys_are_ascii = False
            put_binary(&self.header_key, header.key, header.key_length)
            put_binary(&self.header_value, header.value, header.value_length)
            self.header_count += 1
        return True

    cdef bint _reserve(self, size_t rows, size_t payload_bytes) noexcept nogil:
        return (
            reserve_binary(&self.key, rows, payload_bytes)
            and self._reserve_values(rows, payload_bytes)
            and reserve_offsets(&self.header_ends, rows)
            and reserve(&self.offset, 8 * rows)
            and reserve(&self.timestamp, 8 * rows)
            and reserve(&self.timestamp_type, 4 * rows)
        )

    cdef bint _reserve_values(self, size_t rows, size_t payload_bytes) noexcept nogil:
        if self.in_place:
            return reserve_offsets(&self.value.offsets, rows) and reserve(&self.value.valid, rows)
        return reserve_binary(&self.value, rows, payload_bytes)

    # arrays

    cdef object finish(self, list runs):
        """A pyarrow.RecordBatch of all that was added: `runs` of (topic, partition, number of rows)."""
        # Also makes sure that every column has its first offset.
        if not self._reserve(0, 0) or not reserve_binary(&self.header_key, 0, 0):
            raise MemoryError("no memory for Arrow columns")
        if not reserve_binary(&self.header_value, 0, 0):
            raise MemoryError("no memory for Arrow columns")
        types = self.types
        topics, partitions = self.repeated.topics_and_partitions(runs)
        values = self._values_in_place() if self.in_place else self._buffer(&self.value.data)
        columns = [
            self._keys_array(),
            self._array_over(&self.value, types[1], self.count, values),
            self._headers_array(),
            topics,
            partitions,
            self._fixed_array(&self.offset, types[5]),
            self._fixed_array(&self.timestamp, types[6]),
            self._timestamp_types_array(),
        ]
        self._restart_empty()
        return self.pyarrow.RecordBatch.from_arrays(columns, schema=self.schema)

    cdef void _restart_empty(self) noexcept:
        """Returns memory that no array has taken to the pool."""
        if self.in_place:
            self.value.data = Block(NULL, 0, 0)
            self.in_place = False
        self._give_back(&self.key)
        self._give_back(&self.value)
        self._give_back(&self.header_key)
        self._give_back(&self.header_value)
        self.pool.give_back(&self.header_ends)
        self.pool.give_back(&self.offset)
        self.pool.give_back(&self.timestamp)
        self.pool.give_back(&self.timestamp_type)
        self.drop_all()
        self.place = None

    cdef void _give_back(self, BinaryColumn* column) noexcept:
        self.pool.give_back(&column.offsets)
        self.pool.give_back(&column.data)
        self.pool.give_back(&column.valid)

    cdef object _keys_array(self):
        if self.key.null_count == self.count:
            return self.repeated.no_keys(self.count)
        return self._binary_array(&self.key, self.types[0], self.count)

    cdef object _timestamp_types_array(self):
        if self.append_time_count in (0, self.count):
            return self.repeated.timestamp_types(self.append_time_count > 0, self.count)
        return self._fixed_array(&self.timestamp_type, self.types[7])

    cdef object _fixed_array(self, Block* block, type_):
        return self.pyarrow.Array.from_buffers(type_, self.count, [None, self._buffer(block)], 0)

    cdef object _binary_array(self, BinaryColumn* column, type_, Py_ssize_t rows):
        return self._array_over(column, type_, rows, self._buffer(&column.data))

    cdef object _array_over(self, BinaryColumn* column, type_, Py_ssize_t rows, data):
        nulls = column.null_count
        valid = self._bitmap(column.valid.data if nulls < rows else NULL, rows) if nulls else None
        self.pool.give_back(&column.valid)
        return self.pyarrow.Array.from_buffers(type_, rows, [valid, self._buffer(&column.offsets), data], nulls)

    cdef object _values_in_place(self):
        """The values where they were received. Whoever keeps them keeps the buffer, so they must fill most of it."""
        if <Py_ssize_t>self.value.data.size < self.place.view.len // 2:
            self.leave_place()
            return self._buffer(&self.value.data)
        return self.pyarrow.py_buffer(memoryview(self.place.source).cast("B")[: self.value.data.size])

    cdef object _headers_array(self):
        cdef Py_ssize_t total = self.header_count
        cdef Py_ssize_t row
        cdef int64_t nulls = 0
        cdef Block valid = Block(NULL, 0, 0)
        pyarrow = self.pyarrow
        type_ = self.types[2]
        if not total:
            return self.repeated.no_headers(self.count)
        self.pool.grow(&valid, self.count)
        cdef const int32_t* ends = <const int32_t*>self.header_ends.data
        for row in range(self.count):
            valid.data[row] = ends[row + 1] != ends[row]
            nulls += ends[row + 1] == ends[row]
        try:
            bitmap = self._bitmap(valid.data, self.count)
        finally:
            self.pool.give_back(&valid)
        keys = self._header_keys(total)
        values = self._binary_array(&self.header_value, pyarrow.binary(), total)
        pairs = pyarrow.StructArray.from_arrays([keys, values], fields=list(type_.value_type))
        buffers = [bitmap, self._buffer(&self.header_ends)]
        return pyarrow.Array.from_buffers(type_, self.count, buffers, nulls, 0, [pairs])

    cdef object _header_keys(self, Py_ssize_t total):
        if self.header_keys_are_ascii:
            return self._binary_array(&self.header_key, self.pyarrow.string(), total)
        # They may be no UTF-8 at all, which a column of strings must not hold.
        raw = self._binary_array(&self.header_key, self.pyarrow.binary(), total)
        return self.pyarrow.array([name.decode("utf-8", "replace") for name in raw.to_pylist()], self.pyarrow.string())

    cdef object _bitmap(self, const uint8_t* valid, Py_ssize_t rows):
        """`valid` is NULL where no row is, as with the keys of many topics."""
        cdef Block bits = Block(NULL, 0, 0)
        cdef Py_ssize_t row
        self.pool.grow(&bits, rows // 8 + 1)
        bits.size = rows // 8 + 1
        memset(bits.data, 0, bits.size)
        if valid != NULL:
            for row in range(rows):
                bits.data[row >> 3] |= valid[row] << (row & 7)
        return self._buffer(&bits)

    cdef object _buffer(self, Block* block):
        return self.pyarrow.py_buffer(self.pool.to_object(block))
