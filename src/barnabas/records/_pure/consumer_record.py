"""One record as a consumer hands it to the application."""

from typing import Any

from barnabas.records.header import TimestampType
from barnabas.records.record import Headers


class ConsumerRecord:
    """`key` and `value` are bytes or None as read, and whatever the deserializers made of them later.

    The sizes are those of the bytes on the wire, -1 for null. `leader_epoch` is None if the batch does not have one.
    """

    __slots__ = (
        "headers",
        "key",
        "leader_epoch",
        "offset",
        "partition",
        "serialized_key_size",
        "serialized_value_size",
        "timestamp",
        "timestamp_type",
        "topic",
        "value",
    )

    def __init__(
        self,
        topic: str,
        partition: int,
        offset: int,
        timestamp: int = -1,
        timestamp_type: TimestampType = TimestampType.CREATE_TIME,
        key: Any = None,
        value: Any = None,
        headers: Headers = (),
        leader_epoch: int | None = None,
        serialized_key_size: int | None = None,
        serialized_value_size: int | None = None,
    ) -> None:
        self.topic = topic
        self.partition = partition
        self.offset = offset
        self.timestamp = timestamp
        self.timestamp_type = timestamp_type
        self.key = key
        self.value = value
        self.headers = headers
        self.leader_epoch = leader_epoch
        if serialized_key_size is None:
            serialized_key_size = len(key) if isinstance(key, bytes) else -1
        if serialized_value_size is None:
            serialized_value_size = len(value) if isinstance(value, bytes) else -1
        self.serialized_key_size = serialized_key_size
        self.serialized_value_size = serialized_value_size

    def deserialized(self, key: Any, value: Any) -> "ConsumerRecord":
        """The same record with these in place of the bytes."""
        fields = self._fields()
        changed = (*fields[:5], key, value, *fields[7:])
        return ConsumerRecord(*changed)

    def _fields(self) -> tuple[Any, ...]:
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

    __hash__ = None  # type: ignore[assignment]

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, ConsumerRecord):
            return NotImplemented
        return self._fields() == other._fields()

    def __reduce__(self) -> tuple[Any, ...]:
        # By a function of codec.py, so that the process that unpickles may use the other twin.
        from barnabas.records.codec import restore_record

        return restore_record, self._fields()

    def __repr__(self) -> str:
        return (
            f"ConsumerRecord(topic={self.topic!r}, partition={self.partition}, offset={self.offset}, "
            f"timestamp={self.timestamp}, timestamp_type={self.timestamp_type.name}, key={self.key!r}, "
            f"value={self.value!r}, headers={self.headers!r}, leader_epoch={self.leader_epoch})"
        )
