from barnabas.records._native.memory cimport MemoryPool


cdef class RepeatedColumns:
    cdef object pyarrow
    cdef list types
    cdef MemoryPool pool
    cdef list kept
    cdef tuple kept_of

    cdef object no_keys(self, Py_ssize_t rows)
    cdef object no_headers(self, Py_ssize_t rows)
    cdef object timestamp_types(self, bint append_time, Py_ssize_t rows)
    cdef tuple topics_and_partitions(self, list runs)
    cdef object _nulls(self, int kind, type_, Py_ssize_t rows)
    cdef object _kept(self, int kind, Py_ssize_t rows)
    cdef object _topics(self, list runs)
    cdef object _integers(self, list runs)
