"""Columns as Arrow lays them out, except that nulls are a byte a row: filled by arrow_reader.pyx."""

from libc.stdint cimport int32_t, int64_t, uint8_t
from libc.string cimport memmove

from barnabas.records._native.memory cimport Block, drop, reserve


cdef struct BinaryColumn:
    Block offsets
    Block data
    Block valid
    int64_t null_count


cdef inline void put_int32(Block* block, int32_t value) noexcept nogil:
    (<int32_t*>(block.data + block.size))[0] = value
    block.size += 4


cdef inline void put_int64(Block* block, int64_t value) noexcept nogil:
    (<int64_t*>(block.data + block.size))[0] = value
    block.size += 8


cdef inline void drop_binary(BinaryColumn* column) noexcept nogil:
    drop(&column.offsets)
    drop(&column.data)
    drop(&column.valid)
    column.null_count = 0


cdef inline bint reserve_offsets(Block* offsets, size_t rows) noexcept nogil:
    """Arrow has one offset more than rows; the first is there from the start."""
    if not reserve(offsets, 4 * (rows + 1)):
        return False
    if not offsets.size:
        put_int32(offsets, 0)
    return True


cdef inline bint reserve_binary(BinaryColumn* column, size_t rows, size_t more) noexcept nogil:
    return reserve_offsets(&column.offsets, rows) and reserve(&column.data, more) and reserve(&column.valid, rows)


cdef inline void put_binary(BinaryColumn* column, const uint8_t* data, int32_t length) noexcept nogil:
    """The room is reserved. In a column that is filled in place it overlaps what is read."""
    column.valid.data[column.valid.size] = length >= 0
    column.valid.size += 1
    if length > 0:
        memmove(column.data.data + column.data.size, data, <size_t>length)
        column.data.size += <size_t>length
    elif length < 0:
        column.null_count += 1
    put_int32(&column.offsets, <int32_t>column.data.size)
