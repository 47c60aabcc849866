from libc.stdint cimport int32_t, int64_t, uint8_t

from barnabas.records._native.columns cimport BinaryColumn
from barnabas.records._native.fetched_batches cimport FetchedBatches
from barnabas.records._native.memory cimport Block, MemoryPool
from barnabas.records._native.repeated_columns cimport RepeatedColumns
from barnabas.records._native.wire cimport RawRecord

cdef enum:
    NO_MEMORY = -20
    COLUMN_FULL = -21


cdef class RecordColumns:
    cdef object pyarrow
    cdef object schema
    cdef list types
    cdef MemoryPool pool
    cdef int64_t payload_bytes
    cdef int64_t max_column_bytes
    cdef BinaryColumn key
    cdef BinaryColumn value
    cdef BinaryColumn header_key
    cdef BinaryColumn header_value
    cdef Block header_ends
    cdef Block offset
    cdef Block timestamp
    cdef Block timestamp_type
    cdef bint header_keys_are_ascii
    cdef int32_t header_count
    cdef Py_ssize_t append_time_count
    cdef Py_ssize_t count
    # Values in place are in the buffer of these batches.
    cdef bint in_place
    cdef FetchedBatches place
    cdef RepeatedColumns repeated

    cdef void drop_all(self) noexcept
    cdef void fill_in_place(self, FetchedBatches batches) noexcept
    cdef int leave_place(self) except -1
    cdef int prepare(self, FetchedBatches batches, bint opened) except -1
    cdef int add_batch(self, FetchedBatches batches) noexcept nogil
    cdef object finish(self, list runs)
    cdef int _grow_binary(self, BinaryColumn* column, size_t rows, size_t payload_bytes) except -1
    cdef int _add_record(self, FetchedBatches batches) noexcept nogil
    cdef bint _add_headers(self, const RawRecord* raw) noexcept nogil
    cdef bint _reserve(self, size_t rows, size_t payload_bytes) noexcept nogil
    cdef bint _reserve_values(self, size_t rows, size_t payload_bytes) noexcept nogil
    cdef void _restart_empty(self) noexcept
    cdef void _give_back(self, BinaryColumn* column) noexcept
    cdef object _keys_array(self)
    cdef object _timestamp_types_array(self)
    cdef object _fixed_array(self, Block* block, type_)
    cdef object _binary_array(self, BinaryColumn* column, type_, Py_ssize_t rows)
    cdef object _array_over(self, BinaryColumn* column, type_, Py_ssize_t rows, data)
    cdef object _values_in_place(self)
    cdef object _headers_array(self)
    cdef object _header_keys(self, Py_ssize_t total)
    cdef object _bitmap(self, const uint8_t* valid, Py_ssize_t rows)
    cdef object _buffer(self, Block* block)
