# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Columns that say the same in every row: topic and partition, no key, no headers, one type of timestamp.

The last one of a kind serves as long as it is long enough. But not if it is far longer: whoever keeps the rows, or sends
them to another process, has all of it.
"""

from libc.stdint cimport int32_t, int64_t

from barnabas.records._native.columns cimport BinaryColumn, drop_binary, put_binary, put_int32
from barnabas.records._native.memory cimport Block, MemoryPool, drop

cdef enum:
    NO_KEYS
    NO_HEADERS
    CREATE_TIME
    APPEND_TIME
    TOPICS
    PARTITIONS
    KINDS

cdef int64_t MAX_COLUMN_BYTES = 0x7FFFFFFF


cdef class RepeatedColumns:
    def __cinit__(self, pyarrow, list types, MemoryPool pool):
        self.pyarrow = pyarrow
        self.types = types
        self.pool = pool
        self.kept = [None] * KINDS

    cdef object no_keys(self, Py_ssize_t rows):
        return self._nulls(NO_KEYS, self.types[0], rows)

    cdef object no_headers(self, Py_ssize_t rows):
        return self._nulls(NO_HEADERS, self.types[2], rows)

    cdef object timestamp_types(self, bint append_time, Py_ssize_t rows):
        cdef int kind = APPEND_TIME if append_time else CREATE_TIME
        column = self._kept(kind, rows)
        if column is None:
            column = self.kept[kind] = self._integers([(None, append_time, rows)])
        return column

    cdef tuple topics_and_partitions(self, list runs):
        """`runs` of (topic, partition, number of rows)."""
        if len(runs) != 1:
            return self._topics(runs), self._integers(runs)
        cdef Py_ssize_t rows = runs[0][2]
        topics = self._kept(TOPICS, rows) if self.kept_of == runs[0][:2] else None
        if topics is not None:
            return topics, self._kept(PARTITIONS, rows)
        # Both or, if there is no memory, none: they are kept together.
        topics, partitions = self._topics(runs), self._integers(runs)
        self.kept[TOPICS], self.kept[PARTITIONS], self.kept_of = topics, partitions, runs[0][:2]
        return topics, partitions

    cdef object _nulls(self, int kind, type_, Py_ssize_t rows):
        column = self._kept(kind, rows)
        if column is None:
            column = self.kept[kind] = self.pyarrow.nulls(rows, type_)
        return column

    cdef object _kept(self, int kind, Py_ssize_t rows):
        column = self.kept[kind]
        if column is None:
            return None
        cdef Py_ssize_t length = len(column)
        if length == rows:
            return column
        return column.slice(0, rows) if rows < length <= 2 * rows else None

    cdef object _topics(self, list runs):
        cdef BinaryColumn topics = BinaryColumn(
            offsets=Block(NULL, 0, 0), data=Block(NULL, 0, 0), valid=Block(NULL, 0, 0), null_count=0
        )
        cdef Py_ssize_t rows
        cdef Py_ssize_t total = 0
        cdef bytes name
        try:
            self.pool.grow(&topics.offsets, 4)
            self.pool.grow(&topics.data, 0)
            put_int32(&topics.offsets, 0)
            for topic, _, rows in runs:
                name = topic.encode()
                if <int64_t>topics.data.size + rows * len(name) > MAX_COLUMN_BYTES:
                    raise OverflowError("the topic names of a record batch take more than 2 GiB")
                self.pool.grow(&topics.offsets, 4 * rows)
                self.pool.grow(&topics.valid, rows)
                self.pool.grow(&topics.data, rows * len(name))
                for _ in range(rows):
                    put_binary(&topics, name, <int32_t>len(name))
                total += rows
            py_buffer = self.pyarrow.py_buffer
            offsets = py_buffer(self.pool.to_object(&topics.offsets))
            data = py_buffer(self.pool.to_object(&topics.data))
            return self.pyarrow.Array.from_buffers(self.types[3], total, [None, offsets, data], 0)
        finally:
            drop_binary(&topics)

    cdef object _integers(self, list runs):
        cdef Block numbers = Block(NULL, 0, 0)
        cdef Py_ssize_t rows
        cdef int32_t number
        try:
            for _, number, rows in runs:
                self.pool.grow(&numbers, 4 * rows)
                for _ in range(rows):
                    put_int32(&numbers, number)
            buffer = self.pyarrow.py_buffer(self.pool.to_object(&numbers))
            return self.pyarrow.Array.from_buffers(self.pyarrow.int32(), len(buffer) // 4, [None, buffer], 0)
        finally:
            drop(&numbers)
