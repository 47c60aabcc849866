# cython: language_level=3
"""One record as a consumer hands it to the application; see _pure/consumer_record.py.

Numbers are kept as C has them and become Python's when somebody looks. The record reader fills the fields itself.
"""

cimport cython
from libc.stdint cimport int32_t, int64_t

from barnabas.records.header import TimestampType

_CREATE_TIME = TimestampType.CREATE_TIME


@cython.final
@cython.freelist(512)
cdef class ConsumerRecord:
    """`key` and `value` are bytes or None as read, and whatever the deserializers made of them later.

    The sizes are those of the bytes on the wire, -1 for null. `leader_epoch` is None if the batch does not have one.
    """

    def __init__(
        self,
        str topic not None,
        int32_t partition,
        int64_t offset,
        int64_t timestamp=-1,
        timestamp_type=_CREATE_TIME,
        key=None,
        value=None,
        headers=(),
        leader_epoch=None,
        serialized_key_size=None,
        serialized_value_size=None,
    ):
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.epoch = -1 if leader_epoch is None else leader_epoch
        self.serialized_key_size = _size(key) if serialized_key_size is None else serialized_key_size
        self.serialized_value_size = _size(value) if serialized_value_size is None else serialized_value_size

    @property
    def leader_epoch(self):
        return self.epoch if self.epoch >= 0 else None

    def deserialized(self, key, value):
        """The same record with these in place of the bytes."""
        cdef ConsumerRecord record = ConsumerRecord.__new__(ConsumerRecord)
        record.topic = self.topic
        record.partition = self.partition
        record.offset = self.offset
        record.timestamp = self.timestamp
        record.timestamp_type = self.timestamp_type
        record.key = key
        record.value = value
        record.headers = self.headers
        record.epoch = self.epoch
        record.serialized_key_size = self.serialized_key_size
        record.serialized_value_size = self.serialized_value_size
        return record

    cdef tuple _fields(self):
        return (
            self.topic,
            self.partition,
            self.offset,
            self.timestamp,
            self.timestamp_type,
            self.key,
            self.value,
            self.headers,
            self.leader_epoch,
            self.serialized_key_size,
            self.serialized_value_size,
        )

    def __eq__(self, other):
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self._fields() == (<ConsumerRecord>other)._fields()

    def __reduce__(self):
        # By a function of codec.py, so that the process that unpickles may use the other twin.
        from barnabas.records.codec import restore_record

        return restore_record, self._fields()

    def __repr__(self):
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, timestamp_type={self.timestamp_type.name}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r}, leader_epoch={self.leader_epoch})"
        )


cdef int32_t _size(data) except -2:
    return len(data) if isinstance(data, bytes) else -1
