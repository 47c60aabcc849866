# cython: language_level=3, binding=True
"""The short way of a record into its batch, and the handle it leaves behind, compiled; the twin is `_fast_pure.py`.

`SendPath.send` takes no lock: from the look at a batch's limit to the end of the append nothing here runs Python code,
so with the GIL it is one step for all other threads. Whoever closes a batch sets its limit first and reads its size
afterwards. What takes longer is in `delivery_calls` and in the long way, which both twins share.
"""

cimport cython
from libc.time cimport time_t

from barnabas.client.producer import delivery_calls as calls
from barnabas.records.codec import partition_for_key

cdef extern from "<time.h>" nogil:
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int CLOCK_REALTIME
    int clock_gettime(int clock, timespec* now)


cdef inline long long now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <long long>now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef class BatchSlot:
    """The part of a batch that the short way looks at."""

    cdef public object buffer
    cdef public Py_ssize_t limit


cdef class PartitionSlot:
    """The open batch of a partition."""

    cdef public BatchSlot open


cdef class TopicSlot:
    """The open batch of the sticky partition, and the partitions."""

    cdef public BatchSlot current
    cdef public list partitions


# A delivery and its batch refer to each other only until the batch is done, so no cycle has to be looked for.
@cython.no_gc
@cython.freelist(512)
cdef class Delivery:
    """What becomes of a record: `result()`, `await`, or a callback. Shares the completion of its batch."""

    cdef readonly object batch
    cdef readonly long long timestamp
    cdef readonly int index

    def __init__(self, object batch, int index, long long timestamp):
        self.batch = batch
        self.index = index
        self.timestamp = timestamp

    def done(self):
        """Whether the record was acknowledged or has failed for good."""
        return calls.done(self)

    def result(self, timeout=None):
        """Waits (seconds) for the acknowledgement; raises what the record failed with, or ClientTimeoutError."""
        return calls.result(self, timeout)

    def exception(self, timeout=None):
        """Waits like `result` and returns what the record failed with, None if it was acknowledged."""
        return calls.exception(self, timeout)

    def add_callback(self, callback):
        """Calls `callback(delivery)` on the I/O thread when the record is done; at once if it is done already."""
        calls.add_callback(self, callback)

    def __await__(self):
        return calls.wait_in_loop(self).__await__()

    def __repr__(self):
        return calls.text(self)


cdef class SendPath:
    """Base of the blocking producer: the short way, and `_send_slowly` for all that does not fit in here."""

    cdef dict _topics

    def _open_path(self, dict topics, object lock):
        """`topics`: those whose records may go straight into an open batch."""
        self._topics = topics

    def send(self, topic, value=None, key=None, *, partition=None, timestamp=None, headers=None, on_delivery=None):
        """Puts a record into a batch and returns at once; the delivery tells what becomes of it.

        Waits up to max.block.ms if the topic is not known yet or buffer.memory is full, then raises. `on_delivery` is
        called with the delivery on the I/O thread. `timestamp` is in milliseconds.
        """
        cdef TopicSlot slot
        cdef BatchSlot batch
        cdef Delivery delivery
        cdef long long now
        cdef int index
        if partition is None and timestamp is None and on_delivery is None:
            found = self._topics.get(topic)
            if found is not None:
                slot = <TopicSlot>found
                if key is None:
                    batch = slot.current
                elif type(key) is bytes:
                    batch = (<PartitionSlot>slot.partitions[partition_for_key(key, len(slot.partitions))]).open
                else:
                    batch = None
                if batch is not None and (value is None or type(value) is bytes) and headers is None:
                    now = now_ms()
                    index = batch.buffer.try_append(now, key, value, None, batch.limit)
                    if index >= 0:
                        delivery = Delivery.__new__(Delivery)
                        delivery.batch = batch
                        delivery.index = index
                        delivery.timestamp = now
                        return delivery
        return self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)
