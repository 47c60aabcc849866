from libc.stdint cimport int32_t, int64_t


cdef class ConsumerRecord:
    cdef readonly object topic
    cdef readonly object timestamp_type
    cdef readonly object key
    cdef readonly object value
    cdef readonly object headers
    cdef readonly int64_t offset
    cdef readonly int64_t timestamp
    cdef readonly int32_t partition
    cdef readonly int32_t serialized_key_size
    cdef readonly int32_t serialized_value_size
    cdef int32_t epoch

    cdef tuple _fields(self)
