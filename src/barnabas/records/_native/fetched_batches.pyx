# cython: language_level=3, boundscheck=False, wraparound=False
"""The batches of one partition in a fetch response, one after the other; see _pure/fetched_batches.py.

`step` does all it can without Python: skip, check, open a batch that is not compressed. Where Python is needed (a
codec, an aborted transaction, an exception) it says so and `finish_step` does the rest for the batch at the position.
"""

cimport cython
from cpython.buffer cimport PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cpython.bytes cimport PyBytes_AS_STRING, PyBytes_GET_SIZE
from libc.stdint cimport int32_t, int64_t, uint8_t, uint32_t

from barnabas.records._native.wire cimport (
    BAD_HEADERS,
    HEADER_SIZE,
    LOG_OVERHEAD,
    NO_FAULT,
    PARTS_DO_NOT_ADD_UP,
    RawRecord,
    get_int16,
    get_int32,
    get_int64,
    get_record,
)

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import compression_type, decompress
from barnabas.records.control import is_abort_marker
from barnabas.records.header import check_batch_start

cdef extern from "crc32c.h":
    void crc32c_prepare() noexcept
    uint32_t crc32c(const void* data, size_t length) noexcept nogil

cdef enum:
    MAGIC_OFFSET = 16
    COMPRESSION_MASK = 0x07
    TRANSACTIONAL_MASK = 0x10
    CONTROL_MASK = 0x20
    OFFSET_OUTSIDE = -10
    BYTES_FOLLOW = -11

cdef int64_t MAX_OFFSET = 0x7FFFFFFFFFFFFFFF

crc32c_prepare()


# Out of the collector's sight: it would clear a memoryview in a cycle while its buffer is still held here, and crash
# when that is released. Nothing in here can lead back to it, so nothing is leaked.
@cython.no_gc
cdef class FetchedBatches:
    def __cinit__(self, buffer, int64_t start_offset, aborted, bint check_crcs):
        PyObject_GetBuffer(buffer, &self.view, PyBUF_SIMPLE)
        self.source = buffer
        self.next_offset = start_offset
        self.leader_epoch = -1
        self.check_crcs = check_crcs
        if aborted:
            self.tracks_aborted = True
            self.to_abort = sorted(aborted, key=_first_offset, reverse=True)
            self.aborted_producers = set()

    def __dealloc__(self):
        PyBuffer_Release(&self.view)

    cdef bint at_end(self) noexcept nogil:
        """No whole batch follows."""
        cdef Py_ssize_t left = self.view.len - self.position
        if left <= MAGIC_OFFSET:
            return True
        return left < LOG_OVERHEAD + <Py_ssize_t>get_int32(<const uint8_t*>self.view.buf + self.position + 8)

    cdef void estimate(self, size_t* records, size_t* payload_bytes) noexcept nogil:
        """Upper bounds for the whole batches that follow and are not compressed, by their unchecked headers."""
        cdef const uint8_t* data = <const uint8_t*>self.view.buf + self.position
        cdef Py_ssize_t left = self.view.len - self.position
        cdef Py_ssize_t size
        while left >= HEADER_SIZE:
            size = LOG_OVERHEAD + <Py_ssize_t>get_int32(data + 8)
            if size < HEADER_SIZE or size > left:
                return
            if not get_int16(data + 21) & COMPRESSION_MASK:
                records[0] += min(<size_t>max(get_int32(data + 57), 0), <size_t>size // 7)
                payload_bytes[0] += <size_t>(size - HEADER_SIZE)
            data += size
            left -= size

    cdef bint next_batch(self) except -1:
        """Opens the next batch with records to see; False at the end."""
        cdef Step step
        while True:
            step = self.step()
            if step == OPENED:
                return True
            if step == AT_END:
                return False
            if self.finish_step():
                return True

    cdef Step step(self) noexcept nogil:
        cdef const uint8_t* data
        while not self.at_end():
            data = <const uint8_t*>self.view.buf + self.position
            if not self._read_header():
                return NEEDS_PYTHON
            if self.tracks_aborted and self.producer_id >= 0:
                return NEEDS_PYTHON
            if self.attributes & CONTROL_MASK or self.last_offset < self.next_offset or not self.records_left:
                self._skip()
            elif self.attributes & COMPRESSION_MASK:
                return NEEDS_PYTHON
            else:
                self._open(data + HEADER_SIZE, self.batch_end - self.position - HEADER_SIZE)
                return OPENED
        return AT_END

    cdef bint finish_step(self) except -1:
        """After NEEDS_PYTHON: opens the batch at the position or passes it; False if it was passed."""
        if self.failed:
            self._raise_batch_fault()
        if self.tracks_aborted and self.producer_id >= 0 and self._is_aborted():
            self._skip()
            return False
        if self.attributes & CONTROL_MASK or self.last_offset < self.next_offset or not self.records_left:
            self._skip()
            return False
        cdef const uint8_t* data = <const uint8_t*>self.view.buf + self.position + HEADER_SIZE
        cdef Py_ssize_t size = self.batch_end - self.position - HEADER_SIZE
        cdef bytes payload
        if size and self.attributes & COMPRESSION_MASK:
            codec = compression_type(self.attributes & COMPRESSION_MASK)
            block = memoryview(self.source).cast("B")[self.position + HEADER_SIZE : self.batch_end]
            payload = decompress(codec, block)
            self.payload_owner = payload
            data = <const uint8_t*>PyBytes_AS_STRING(payload)
            size = PyBytes_GET_SIZE(payload)
        self._open(data, size)
        return True

    cdef int next_record(self, RawRecord* record) noexcept nogil:
        """One of the `records_left`; a negative number says what is wrong with it."""
        cdef int fault = get_record(self.payload, self.payload_end, record)
        if fault != NO_FAULT:
            return fault
        if record.offset_delta < 0 or record.offset_delta > self.last_offset - self.base_offset:
            return OFFSET_OUTSIDE
        self.payload = record.end
        self.records_left -= 1
        return NO_FAULT

    cdef void passed(self) noexcept nogil:
        """All records of the batch were seen."""
        if self.last_offset >= self.next_offset:
            self.next_offset = self.last_offset + 1
            self.leader_epoch = self.batch_epoch

    cdef int raise_record_fault(self, int fault) except -1:
        if fault == OFFSET_OUTSIDE:
            raise _corrupt("a record's offset delta is outside its batch")
        if fault == PARTS_DO_NOT_ADD_UP:
            raise _corrupt("the parts of a record do not add up to its length")
        if fault == BAD_HEADERS:
            raise _corrupt("the headers of a record do not fit into it")
        if fault == BYTES_FOLLOW:
            raise _corrupt(f"{self.payload_end - self.payload} bytes follow the last record")
        raise _corrupt("the records end before the last one is complete")

    cdef bint _fail(self) noexcept nogil:
        self.failed = True
        return False

    cdef bint _read_header(self) noexcept nogil:
        """The header at the position, checked; False (and `failed`) if anything is wrong with the batch."""
        cdef const uint8_t* data = <const uint8_t*>self.view.buf + self.position
        cdef int32_t length = get_int32(data + 8)
        if length < HEADER_SIZE - LOG_OVERHEAD or data[MAGIC_OFFSET] != 2:
            return self._fail()
        self.batch_end = self.position + LOG_OVERHEAD + length
        self.base_offset = get_int64(data)
        self.batch_epoch = get_int32(data + 12)
        self.attributes = get_int16(data + 21)
        self.base_timestamp = get_int64(data + 27)
        self.max_timestamp = get_int64(data + 35)
        self.producer_id = get_int64(data + 43)
        self.records_left = get_int32(data + 57)
        cdef int32_t delta = get_int32(data + 23)
        if self.base_offset < 0 or delta < 0 or self.base_offset >= MAX_OFFSET - delta:
            return self._fail()
        self.last_offset = self.base_offset + delta
        if self.records_left < 0 or <int64_t>self.records_left > <int64_t>delta + 1:
            return self._fail()
        if self.last_offset < self.next_offset and not self.attributes & CONTROL_MASK:
            return True  # not checked
        if self.check_crcs and crc32c(data + 21, <size_t>(LOG_OVERHEAD + length - 21)) != <uint32_t>get_int32(data + 17):
            return self._fail()
        return True

    cdef void _open(self, const uint8_t* payload, Py_ssize_t size) noexcept nogil:
        self.payload = payload
        self.payload_end = payload + size
        self.position = self.batch_end

    cdef void _skip(self) noexcept nogil:
        self.position = self.batch_end
        self.passed()

    cdef int _raise_batch_fault(self) except -1:
        """Looks again, slowly, for what was wrong."""
        cdef const uint8_t* data = <const uint8_t*>self.view.buf + self.position
        check_batch_start(memoryview(self.source).cast("B"), self.position)
        cdef int32_t delta = get_int32(data + 23)
        if self.base_offset < 0 or delta < 0 or self.base_offset >= MAX_OFFSET - delta:
            raise _corrupt(f"offset {self.base_offset} and delta {delta} cannot be")
        if self.records_left < 0 or <int64_t>self.records_left > <int64_t>delta + 1:
            raise _corrupt(f"{self.records_left} records in {<int64_t>delta + 1} offsets")
        raise _corrupt("the CRC does not match")

    cdef bint _is_aborted(self) except -1:
        while self.to_abort and self.to_abort[len(self.to_abort) - 1][1] <= self.last_offset:
            self.aborted_producers.add(self.to_abort.pop()[0])
        if self.producer_id not in self.aborted_producers or not self.attributes & TRANSACTIONAL_MASK:
            return False
        if self.attributes & CONTROL_MASK:
            if is_abort_marker(memoryview(self.source).cast("B")[self.position : self.batch_end]):
                self.aborted_producers.discard(self.producer_id)
        return True


def _first_offset(entry):
    return entry[1]


cdef object _corrupt(str message):
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)


def batch_span(records):
    """The offset after the last whole batch, and its leader epoch; None if there is no whole batch.

    Found by skipping over the others; only their lengths are checked.
    """
    cdef const uint8_t[::1] view = records
    cdef const uint8_t* data = &view[0] if view.shape[0] else NULL
    cdef const uint8_t* last = NULL
    cdef Py_ssize_t left = view.shape[0]
    cdef Py_ssize_t size
    while left >= HEADER_SIZE:
        size = LOG_OVERHEAD + <Py_ssize_t>get_int32(data + 8)
        if size < HEADER_SIZE or size > left:
            break
        last = data
        data += size
        left -= size
    if last == NULL:
        return None
    return get_int64(last) + <object>max(0, get_int32(last + 23)) + 1, get_int32(last + 12)
