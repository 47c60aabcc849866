# cython: language_level=3, binding=True
"""The fast path of a record into its batch, and the handle it leaves behind, compiled; the twin is `_fast_pure.py`.

`SendPath.send` takes no lock: from reading a batch's limit to the end of the append nothing here runs Python code,
so with the GIL it is one step for all other threads. Whoever closes a batch sets its limit first and reads its size
afterwards. What takes longer is in `delivery` and in the slow path, which both twins share.
"""

cimport cython
from libc.time cimport time_t

from barnabas.client.producer import delivery as calls
from barnabas.records.codec import partition_for_key

cdef extern from "<time.h>" nogil:
    cdef struct timespec:
        time_t tv_sec
        long tv_nsec
    int CLOCK_REALTIME
    int clock_gettime(int clock, timespec* now)


cdef long long MAX_TIMESTAMP = 1LL << 62


cdef inline long long now_ms() noexcept:
    cdef timespec now
    clock_gettime(CLOCK_REALTIME, &now)
    return <long long>now.tv_sec * 1000 + now.tv_nsec // 1000000


cdef class BatchSlot:
    """The part of a batch that the fast path uses."""

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


cdef BatchSlot open_batch(TopicSlot topic, object key, object partition):
    """Where the record goes, if there is an open batch for it."""
    cdef Py_ssize_t number
    if partition is None:
        if key is None:
            return topic.current
        number = partition_for_key(key, len(topic.partitions))
    elif type(partition) is int and 0 <= partition < len(topic.partitions):
        number = partition
    else:
        return None
    return (<PartitionSlot>topic.partitions[number]).open


cdef Delivery append(BatchSlot batch, object key, object value, object headers, object timestamp):
    """The handle of the record, or None if it does not fit."""
    cdef Delivery delivery
    cdef long long time_ms
    cdef int index
    if timestamp is None:
        time_ms = now_ms()
    elif type(timestamp) is int and 0 <= timestamp < MAX_TIMESTAMP:
        time_ms = timestamp
    else:
        return None
    index = batch.buffer.try_append(time_ms, key, value, headers, batch.limit)
    if index < 0:
        return None
    delivery = Delivery.__new__(Delivery)
    delivery.batch = batch
    delivery.index = index
    delivery.timestamp = time_ms
    return delivery


cdef class SendPath:
    """Base of the blocking producer: the fast path, and `_send_slowly` for all that does not fit in here."""

    cdef dict _topics
    cdef object _lock

    def _open_path(self, dict topics, object lock):
        """`topics`: those whose records may go straight into an open batch."""
        self._topics = topics
        self._lock = lock

    def send(
        self,
        topic,
        value=None,
        key=None,
        *,
        partition=None,
        timestamp=None,
        headers=None,
        on_delivery=None,
        deliver_at=None,
        deliver_after=None,
    ):
        """Puts a record into a batch and returns at once; the delivery reports its outcome.

        Waits up to max.block.ms if the topic is not known yet or buffer.memory is full, then raises. `on_delivery` is
        called with the delivery on the I/O thread. `timestamp` is in milliseconds. `deliver_at` (a datetime, or
        milliseconds since 1970) or `deliver_after` (a timedelta, milliseconds, or "10m") make it a delayed message.
        """
        cdef BatchSlot batch
        cdef Delivery delivery
        if deliver_at is not None or deliver_after is not None:
            record = (topic, value, key, partition, timestamp, headers)
            return self._send_delayed(record, on_delivery, deliver_at, deliver_after)
        if (key is None or type(key) is bytes) and (value is None or type(value) is bytes):
            found = self._topics.get(topic)
            if found is not None:
                if headers is None and on_delivery is None:
                    batch = open_batch(<TopicSlot>found, key, partition)
                    delivery = None if batch is None else append(batch, key, value, None, timestamp)
                else:
                    delivery = self._append_with(<TopicSlot>found, value, key, partition, timestamp, headers, on_delivery)
                if delivery is not None:
                    return delivery
        return self._send_slowly(topic, value, key, partition, timestamp, headers, on_delivery)

    cdef Delivery _append_with(self, TopicSlot topic, value, key, partition, timestamp, headers, on_delivery):
        """Looking at headers and hanging a callback runs Python code: here the lock is needed."""
        cdef BatchSlot batch
        cdef Delivery delivery
        if headers is not None and type(headers) is not list:
            return None
        with self._lock:
            batch = open_batch(topic, key, partition)
            if batch is None:
                return None
            try:
                delivery = append(batch, key, value, headers, timestamp)
            except (TypeError, ValueError):
                return None  # the slow path says what is wrong with them
            if delivery is not None and on_delivery is not None:
                batch.add_callback(delivery, on_delivery)
        return delivery
