"""Blocks of plain memory that columns are filled into without Python, and the objects that own them in the end."""

from libc.stdint cimport uint8_t
from libc.stdlib cimport free, realloc

cdef enum:
    MAX_POOLED_BLOCKS = 32


cdef struct Block:
    uint8_t* data
    size_t size
    size_t capacity


cdef inline bint reserve(Block* block, size_t more) noexcept nogil:
    """Room for so many more bytes; False if there is no memory."""
    cdef size_t capacity
    cdef void* data
    if block.size + more <= block.capacity:
        return True
    capacity = max(block.size + more, 2 * block.capacity)
    data = realloc(block.data, capacity)
    if data == NULL:
        return False
    block.data = <uint8_t*>data
    block.capacity = capacity
    return True


cdef inline void drop(Block* block) noexcept nogil:
    free(block.data)
    block.data = NULL
    block.size = 0
    block.capacity = 0


cdef class MemoryPool:
    cdef Block blocks[MAX_POOLED_BLOCKS]
    cdef int count
    cdef size_t kept_bytes
    cdef size_t max_kept_bytes

    cdef int grow(self, Block* block, size_t more) except -1
    cdef void give_back(self, Block* block) noexcept
    cdef object to_object(self, Block* block)
    cdef int _take(self, Block* block, size_t capacity) except -1
    cdef void _forget(self, int index) noexcept


cdef class Memory:
    cdef Block block
    cdef MemoryPool pool
