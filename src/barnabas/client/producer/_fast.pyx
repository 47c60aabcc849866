# cython: language_level=3, binding=True
"""`Delivery`, compiled: one is made for each record. The twin is `_fast_pure.py`; what both do is in `delivery_calls`."""

from barnabas.client.producer import delivery_calls as calls


cdef class Delivery:
    """What becomes of a record: `result()`, `await`, or a callback. Shares the completion of its batch."""

    cdef readonly object batch
    cdef readonly long long timestamp
    cdef readonly int index

    def __cinit__(self, object batch, int index, long long timestamp):
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
