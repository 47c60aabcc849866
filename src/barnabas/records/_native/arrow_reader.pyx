# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Fetched batches into the columns of one Arrow record batch, without an object a record; see _pure/arrow_reader.py.

Columns are plain memory that grows, laid out as Arrow wants it except for the null bitmaps: those are a byte a row until
`finish` packs them. All that is not compressed is read without the GIL, in one go.
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
from barnabas.records._native.fetched_batches cimport AT_END, NEEDS_PYTHON, OPENED, FetchedBatches, Step
from barnabas.records._native.memory cimport Block, MemoryPool, drop, reserve
from barnabas.records._native.wire cimport NO_FAULT, RawHeader, RawRecord, get_header, wrapping_sum

from barnabas.errors import KafkaError
from barnabas.records.arrow_columns import load_pyarrow, record_schema
from barnabas.records.read_fault import read_fault

cdef enum:
    TIMESTAMP_TYPE_MASK = 0x08
    BYTES_FOLLOW = -11
    NO_MEMORY = -20
    SHORTEST_RECORD = 7
    COLUMN_FULL = -21
    MAX_COLUMN_BYTES = 0x7FFFFFFF
    # Less is read before another thread would be awake, and to get the GIL back may take milliseconds.
    WORTH_RELEASING = 65536


cdef class ArrowReader:
    """`add` fetched bytes of as many partitions as wanted, then `finish`; the reader is empty and ready again."""

    cdef object _pyarrow
    cdef object _schema
    cdef list _types
    cdef MemoryPool _pool
    cdef bint _check_crcs
    cdef bint _busy
    cdef list _runs
    cdef int64_t _payload_bytes
    cdef int64_t _max_column_bytes
    cdef BinaryColumn _key
    cdef BinaryColumn _value
    cdef BinaryColumn _header_key
    cdef BinaryColumn _header_value
    cdef Block _header_ends
    cdef Block _offset
    cdef Block _timestamp
    cdef Block _timestamp_type
    cdef bint _header_keys_are_ascii
    cdef int32_t _header_count
    cdef int32_t _leader_epoch
    cdef readonly Py_ssize_t count
    cdef readonly bint full

    def __init__(self, *, bint check_crcs=True, int64_t max_column_bytes=MAX_COLUMN_BYTES):
        """`max_column_bytes` bounds the records (decompressed) that one record batch takes."""
        self._pyarrow = load_pyarrow()
        self._schema = record_schema(self._pyarrow)
        self._types = self._schema.types
        self._pool = MemoryPool()
        self._check_crcs = check_crcs
        self._max_column_bytes = min(max_column_bytes, <int64_t>MAX_COLUMN_BYTES)
        self._reset()

    def __dealloc__(self):
        self._drop_all()

    cdef void _drop_all(self) noexcept:
        drop_binary(&self._key)
        drop_binary(&self._value)
        drop_binary(&self._header_key)
        drop_binary(&self._header_value)
        drop(&self._header_ends)
        drop(&self._offset)
        drop(&self._timestamp)
        drop(&self._timestamp_type)

    cdef void _reset(self):
        self._drop_all()
        self._runs = []
        self._payload_bytes = 0
        self._header_keys_are_ascii = True
        self._leader_epoch = -1
        self._header_count = 0
        self.count = 0
        self.full = False

    @property
    def leader_epoch(self):
        return self._leader_epoch if self._leader_epoch >= 0 else None

    def add(self, buffer, str topic not None, int32_t partition, int64_t start_offset=0, *, aborted=None):
        """Reads all records from `start_offset` on and returns the position after them.

        Stops early, with `full` set, before a batch that would take a column over its bound: finish, then add again
        from the returned position. Stops early also at a fault after good records; to add again from there raises it.
        `leader_epoch` is then that of the last batch read.
        """
        cdef FetchedBatches batches = FetchedBatches(buffer, start_offset, aborted, self._check_crcs)
        cdef Py_ssize_t count = self.count
        self._check_idle()
        self.full = False
        self._busy = True
        try:
            self._add_all(batches)
        except KafkaError as error:
            if self.count == count:
                raise read_fault(topic, partition, batches.next_offset, error) from None
        finally:
            self._busy = False
            if self.count > count:
                self._runs.append((topic, partition, self.count - count))
        self._leader_epoch = batches.leader_epoch
        return batches.next_offset

    cdef int _check_idle(self) except -1:
        if self._busy:
            raise RuntimeError("the reader is being used in another thread")
        return 0

    cdef int _add_all(self, FetchedBatches batches) except -1:
        cdef int fault
        cdef Step step
        cdef bint opened = False
        cdef Py_ssize_t size
        while True:
            size = batches.payload_end - batches.payload if opened else batches.view.len - batches.position
            self._prepare(batches, opened)
            if size >= WORTH_RELEASING:
                with nogil:
                    fault = self._add_plain(batches, opened, &step)
            else:
                fault = self._add_plain(batches, opened, &step)
            if fault == COLUMN_FULL:
                self.full = True
                return 0
            if fault == NO_MEMORY:
                raise MemoryError("no memory for Arrow columns")
            if fault != NO_FAULT:
                batches.raise_record_fault(fault)
            if step == AT_END:
                return 0
            opened = batches.finish_step()

    cdef int _prepare(self, FetchedBatches batches, bint opened) except -1:
        """Room, from the pool, for all that `_add_plain` is going to read; should a header lie, that gets more itself."""
        cdef size_t rows = 0
        cdef size_t payload_bytes = 0
        if opened:
            payload_bytes = batches.payload_end - batches.payload
            rows = min(<size_t>batches.records_left, payload_bytes // SHORTEST_RECORD)
        else:
            batches.estimate(&rows, &payload_bytes)
        payload_bytes = min(payload_bytes, <size_t>self._max_column_bytes)
        for column in range(2):
            self._grow_binary(&self._value if column else &self._key, rows, payload_bytes)
        self._pool.grow(&self._header_ends, 4 * (rows + 1))
        self._pool.grow(&self._offset, 8 * rows)
        self._pool.grow(&self._timestamp, 8 * rows)
        self._pool.grow(&self._timestamp_type, 4 * rows)
        return 0

    cdef int _grow_binary(self, BinaryColumn* column, size_t rows, size_t payload_bytes) except -1:
        self._pool.grow(&column.offsets, 4 * (rows + 1))
        self._pool.grow(&column.data, payload_bytes)
        self._pool.grow(&column.valid, rows)
        return 0

    cdef int _add_plain(self, FetchedBatches batches, bint opened, Step* step) noexcept nogil:
        """Batches as long as none needs Python; first the open one, if there is one."""
        cdef int fault
        while True:
            if not opened:
                step[0] = batches.step()
                if step[0] != OPENED:
                    return NO_FAULT
            opened = False
            fault = self._add_batch(batches)
            if fault != NO_FAULT:
                return fault

    cdef int _add_batch(self, FetchedBatches batches) noexcept nogil:
        cdef size_t payload_bytes = batches.payload_end - batches.payload
        cdef int fault
        # A count that would need more is a lie, and shows before so many are read.
        cdef size_t rows = min(<size_t>batches.records_left, payload_bytes // SHORTEST_RECORD)
        if self._payload_bytes + <int64_t>payload_bytes > self._max_column_bytes and self.count:
            return COLUMN_FULL
        if not self._reserve(rows, payload_bytes):
            return NO_MEMORY
        self._payload_bytes += payload_bytes
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
        put_binary(&self._key, raw.key, raw.key_length)
        put_binary(&self._value, raw.value, raw.value_length)
        if raw.header_count and not self._add_headers(&raw):
            return NO_MEMORY
        put_int32(&self._header_ends, self._header_count)
        put_int64(&self._offset, offset)
        put_int64(
            &self._timestamp,
            batches.max_timestamp if append_time else wrapping_sum(batches.base_timestamp, raw.timestamp_delta),
        )
        put_int32(&self._timestamp_type, append_time)
        self.count += 1
        batches.next_offset = offset + 1
        batches.leader_epoch = batches.batch_epoch
        return NO_FAULT

    cdef bint _add_headers(self, const RawRecord* raw) noexcept nogil:
        cdef RawHeader header
        cdef const uint8_t* data = raw.headers
        cdef size_t size = raw.end - raw.headers
        cdef int32_t index
        if not reserve_binary(&self._header_key, raw.header_count, size):
            return False
        if not reserve_binary(&self._header_value, raw.header_count, size):
            return False
        for _ in range(raw.header_count):
            data = get_header(data, raw.end, &header)
            if data == NULL:
                break  # cannot be: the record was checked
            for index in range(header.key_length):
                if header.key[index] >= 0x80:
                    self._header_keys_are_ascii = False
            put_binary(&self._header_key, header.key, header.key_length)
            put_binary(&self._header_value, header.value, header.value_length)
            self._header_count += 1
        return True

    cdef bint _reserve(self, size_t rows, size_t payload_bytes) noexcept nogil:
        return (
            reserve_binary(&self._key, rows, payload_bytes)
            and reserve_binary(&self._value, rows, payload_bytes)
            and reserve_offsets(&self._header_ends, rows)
            and reserve(&self._offset, 8 * rows)
            and reserve(&self._timestamp, 8 * rows)
            and reserve(&self._timestamp_type, 4 * rows)
        )

    def finish(self):
        """A pyarrow.RecordBatch of all that was added, with the columns of arrow_columns.py."""
        self._check_idle()
        # Also makes sure that every column has its first offset.
        if not self._reserve(0, 0) or not reserve_binary(&self._header_key, 0, 0):
            raise MemoryError("no memory for Arrow columns")
        if not reserve_binary(&self._header_value, 0, 0):
            raise MemoryError("no memory for Arrow columns")
        types = self._types
        topics, partitions = self._topics_and_partitions()
        columns = [
            self._binary_array(&self._key, types[0], self.count),
            self._binary_array(&self._value, types[1], self.count),
            self._headers_array(),
            topics,
            partitions,
            self._fixed_array(&self._offset, types[5]),
            self._fixed_array(&self._timestamp, types[6]),
            self._fixed_array(&self._timestamp_type, types[7]),
        ]
        self._reset()
        return self._pyarrow.RecordBatch.from_arrays(columns, schema=self._schema)

    cdef object _fixed_array(self, Block* block, type_):
        return self._pyarrow.Array.from_buffers(type_, self.count, [None, self._buffer(block)], 0)

    cdef object _binary_array(self, BinaryColumn* column, type_, Py_ssize_t rows):
        nulls = column.null_count
        valid = self._bitmap(column.valid.data, rows) if nulls else None
        self._pool.give_back(&column.valid)
        buffers = [valid, self._buffer(&column.offsets), self._buffer(&column.data)]
        return self._pyarrow.Array.from_buffers(type_, rows, buffers, nulls)

    cdef object _headers_array(self):
        cdef Py_ssize_t total = self._header_count
        cdef Py_ssize_t row
        cdef int64_t nulls = 0
        cdef Block valid = Block(NULL, 0, 0)
        pyarrow = self._pyarrow
        type_ = self._types[2]
        if not total:
            return pyarrow.nulls(self.count, type_)
        self._pool.grow(&valid, self.count)
        cdef const int32_t* ends = <const int32_t*>self._header_ends.data
        for row in range(self.count):
            valid.data[row] = ends[row + 1] != ends[row]
            nulls += ends[row + 1] == ends[row]
        try:
            bitmap = self._bitmap(valid.data, self.count)
        finally:
            self._pool.give_back(&valid)
        keys = self._header_keys(total)
        values = self._binary_array(&self._header_value, pyarrow.binary(), total)
        pairs = pyarrow.StructArray.from_arrays([keys, values], fields=list(type_.value_type))
        buffers = [bitmap, self._buffer(&self._header_ends)]
        return pyarrow.Array.from_buffers(type_, self.count, buffers, nulls, 0, [pairs])

    cdef object _header_keys(self, Py_ssize_t total):
        if self._header_keys_are_ascii:
            return self._binary_array(&self._header_key, self._pyarrow.string(), total)
        # They may be no UTF-8 at all, which a column of strings must not hold.
        raw = self._binary_array(&self._header_key, self._pyarrow.binary(), total)
        return self._pyarrow.array([name.decode("utf-8", "replace") for name in raw.to_pylist()], self._pyarrow.string())

    cdef tuple _topics_and_partitions(self):
        cdef BinaryColumn topics
        cdef Block partitions = Block(NULL, 0, 0)
        cdef Py_ssize_t rows
        cdef int32_t partition
        cdef bytes name
        memset(&topics, 0, sizeof(BinaryColumn))
        try:
            self._grow_binary(&topics, 0, 0)
            put_int32(&topics.offsets, 0)
            for topic, partition, rows in self._runs:
                name = topic.encode()
                if topics.data.size + <size_t>(rows * len(name)) > MAX_COLUMN_BYTES:
                    raise OverflowError("the topic names of a record batch take more than 2 GiB")
                self._grow_binary(&topics, rows, rows * len(name))
                self._pool.grow(&partitions, 4 * rows)
                for _ in range(rows):
                    put_binary(&topics, <const uint8_t*><const char*>name, <int32_t>len(name))
                    put_int32(&partitions, partition)
            return (
                self._binary_array(&topics, self._pyarrow.string(), self.count),
                self._fixed_array(&partitions, self._pyarrow.int32()),
            )
        finally:
            drop_binary(&topics)
            drop(&partitions)

    cdef object _bitmap(self, const uint8_t* valid, Py_ssize_t rows):
        cdef Block bits = Block(NULL, 0, 0)
        cdef Py_ssize_t row
        self._pool.grow(&bits, rows // 8 + 1)
        bits.size = rows // 8 + 1
        memset(bits.data, 0, bits.size)
        for row in range(rows):
            bits.data[row >> 3] |= valid[row] << (row & 7)
        return self._buffer(&bits)

    cdef object _buffer(self, Block* block):
        return self._pyarrow.py_buffer(self._pool.to_object(block))
