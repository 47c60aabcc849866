# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Memory for columns, used again and again.

Fresh pages cost several times what it takes to fill them, so a block goes back to its pool when the last Arrow array
over it is gone. The pool keeps a bounded number of bytes. All methods run with the GIL, and none of them calls Python
between its first and its last look at the blocks; that is what makes the pool safe between threads.
"""

from cpython.buffer cimport PyBuffer_FillInfo
from libc.stdint cimport uint8_t
from libc.stdlib cimport free, malloc
from libc.string cimport memcpy

cdef enum:
    SMALLEST_BLOCK = 4096
    DEFAULT_MAX_KEPT_BYTES = 33554432


cdef class MemoryPool:
    def __cinit__(self):
        self.max_kept_bytes = DEFAULT_MAX_KEPT_BYTES

    def __dealloc__(self):
        while self.count:
            self.count -= 1
            free(self.blocks[self.count].data)

    cdef int grow(self, Block* block, size_t more) except -1:
        """Room for so many more bytes in the block."""
        cdef Block larger
        if block.size + more <= block.capacity and block.data != NULL:
            return 0
        self._take(&larger, max(block.size + more, block.capacity + block.capacity // 2))
        if block.size:
            memcpy(larger.data, block.data, block.size)
        larger.size = block.size
        self.give_back(block)
        block[0] = larger
        return 0

    cdef void give_back(self, Block* block) noexcept:
        """Keeps the block for later, or frees it; a larger one is worth more than the smallest that is kept."""
        cdef int index
        cdef int smallest = 0
        if block.data == NULL:
            return
        while self.count == MAX_POOLED_BLOCKS or self.kept_bytes + block.capacity > self.max_kept_bytes:
            smallest = 0
            for index in range(self.count):
                if self.blocks[index].capacity < self.blocks[smallest].capacity:
                    smallest = index
            if not self.count or self.blocks[smallest].capacity >= block.capacity:
                drop(block)
                return
            free(self.blocks[smallest].data)
            self._forget(smallest)
        self.blocks[self.count] = block[0]
        self.count += 1
        self.kept_bytes += block.capacity
        block.data = NULL
        block.size = 0
        block.capacity = 0

    cdef object to_object(self, Block* block):
        """Moves the block into an object that shows it by the buffer protocol; the block is empty then.

        Whoever keeps the object for long does not keep much more than the bytes that are used.
        """
        cdef Block smaller
        cdef Memory memory = Memory.__new__(Memory)
        memory.pool = self
        if block.data == NULL or (block.size < block.capacity // 2 and block.capacity > SMALLEST_BLOCK):
            self._take(&smaller, block.size)
            if block.size:
                memcpy(smaller.data, block.data, block.size)
            smaller.size = block.size
            self.give_back(block)
            block[0] = smaller
        memory.block = block[0]
        block.data = NULL
        block.size = 0
        block.capacity = 0
        return memory

    cdef int _take(self, Block* block, size_t capacity) except -1:
        """The smallest kept block that is large enough, unless it is far too large; else a new one."""
        cdef size_t rounded = _rounded(capacity)
        cdef int best = -1
        cdef int index
        for index in range(self.count):
            if rounded <= self.blocks[index].capacity <= 2 * rounded:
                if best < 0 or self.blocks[index].capacity < self.blocks[best].capacity:
                    best = index
        if best >= 0:
            block[0] = self.blocks[best]
            self._forget(best)
        else:
            block.data = <uint8_t*>malloc(rounded)
            block.capacity = rounded
            if block.data == NULL:
                block.capacity = 0
                raise MemoryError(f"{rounded} bytes for an Arrow column")
        block.size = 0
        return 0

    cdef void _forget(self, int index) noexcept:
        """The block has another owner now, or none."""
        self.count -= 1
        self.kept_bytes -= self.blocks[index].capacity
        self.blocks[index] = self.blocks[self.count]


cdef size_t _rounded(size_t capacity) noexcept:
    """Four sizes a doubling, so that a block fits a little more than what it was made for."""
    cdef size_t step = SMALLEST_BLOCK
    while 8 * step < capacity:
        step *= 2
    return max((capacity + step - 1) // step * step, <size_t>SMALLEST_BLOCK)


cdef class Memory:
    def __getbuffer__(self, Py_buffer* view, int flags):
        PyBuffer_FillInfo(view, self, self.block.data, <Py_ssize_t>self.block.size, 1, flags)

    def __dealloc__(self):
        if self.pool is not None:
            self.pool.give_back(&self.block)
        drop(&self.block)
