"""From records to the bytes of one batch.

Used by clients, by the coordinators for their internal topics and by the cleaner. The builder holds one batch and is
used once; it does not know about limits of size, the caller checks `size_estimate`.
"""

from collections.abc import Iterable
from typing import Final

from barnabas.records.compression import CompressionType, compress
from barnabas.records.header import (
    CONTROL_MASK,
    CURRENT_MAGIC,
    DELETE_HORIZON_MASK,
    HEADER,
    HEADER_SIZE,
    LOG_OVERHEAD,
    TIMESTAMP_TYPE_MASK,
    TRANSACTIONAL_MASK,
    BatchHeader,
    write_crc,
)
from barnabas.records.varint import encode_varint, wrap_int64
from barnabas.types import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP

_NULL: Final = encode_varint(-1)
_NO_HEADERS: Final = encode_varint(0)
_NO_ATTRIBUTES: Final = b"\x00"


class BatchBuilder:
    __slots__ = (
        "_attributes",
        "_base_timestamp",
        "_last_offset",
        "_max_timestamp",
        "_parts",
        "_payload_bytes",
        "base_offset",
        "base_sequence",
        "compression",
        "compression_level",
        "leader_epoch",
        "log_append_time",
        "producer_epoch",
        "producer_id",
        "record_count",
    )

    def __init__(
        self,
        compression: CompressionType = CompressionType.NONE,
        compression_level: int | None = None,
        *,
        base_offset: int = 0,
        log_append_time: int | None = None,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
        transactional: bool = False,
        control: bool = False,
        delete_horizon_ms: int | None = None,
        leader_epoch: int = NO_LEADER_EPOCH,
    ) -> None:
        """`log_append_time` also sets the timestamp type; `delete_horizon_ms` replaces the base timestamp."""
        self.compression = compression
        self.compression_level = compression_level
        self.base_offset = base_offset
        self.log_append_time = log_append_time
        self.producer_id = producer_id
        self.producer_epoch = producer_epoch
        self.base_sequence = base_sequence
        self.leader_epoch = leader_epoch
        self.record_count = 0
        self._attributes = _attributes(
            log_append_time is not None, transactional, control, delete_horizon_ms is not None
        )
        self._base_timestamp = delete_horizon_ms
        self._max_timestamp = NO_TIMESTAMP
        self._last_offset = base_offset - 1
        self._parts: list[bytes] = []
        self._payload_bytes = 0

    def append(
        self,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Iterable[tuple[str, bytes | None]] = (),
        offset: int | None = None,
    ) -> int:
        """Adds a record and returns its offset: the one after the last, unless the caller names a later one."""
        offset = self._last_offset + 1 if offset is None else offset
        if offset <= self._last_offset:
            raise ValueError(f"offset {offset} does not come after {self._last_offset}")
        if self._base_timestamp is None:
            self._base_timestamp = timestamp
        body = encode_body(timestamp - self._base_timestamp, offset - self.base_offset, key, value, headers)
        length = encode_varint(len(body))
        self._parts.append(length)
        self._parts.append(body)
        self._payload_bytes += len(length) + len(body)
        self._last_offset = offset
        self._max_timestamp = max(self._max_timestamp, timestamp)
        self.record_count += 1
        return offset

    @property
    def size_estimate(self) -> int:
        """Bytes of the batch before compression."""
        return HEADER_SIZE + self._payload_bytes

    def build(self, last_offset: int | None = None) -> bytearray:
        """The batch. The cleaner names a `last_offset` beyond the last record, to keep the producer's sequence."""
        max_timestamp = self._max_timestamp if self.log_append_time is None else self.log_append_time
        last_offset = self._last_offset if last_offset is None else last_offset
        header = BatchHeader(
            base_offset=self.base_offset,
            batch_length=0,
            partition_leader_epoch=self.leader_epoch,
            magic=CURRENT_MAGIC,
            crc=0,
            attributes=self._attributes | self.compression,
            last_offset_delta=last_offset - self.base_offset,
            base_timestamp=NO_TIMESTAMP if self._base_timestamp is None else self._base_timestamp,
            max_timestamp=max_timestamp,
            producer_id=self.producer_id,
            producer_epoch=self.producer_epoch,
            base_sequence=self.base_sequence,
            record_count=self.record_count,
        )
        return assemble(header, compress(self.compression, b"".join(self._parts), self.compression_level))


def assemble(header: BatchHeader, block: bytes) -> bytearray:
    """A batch of this header and the (already compressed) records; batch length and CRC are computed."""
    batch = bytearray(HEADER_SIZE)
    HEADER.pack_into(batch, 0, *header._replace(batch_length=HEADER_SIZE - LOG_OVERHEAD + len(block), crc=0))
    batch += block
    write_crc(batch, 0, len(batch))
    return batch


def batch_of_encoded(block: bytes, record_count: int, timestamp: int) -> bytearray:
    """Of records that are encoded already, all of one time, with offsets from 0 on."""
    header = BatchHeader(
        base_offset=0,
        batch_length=0,
        partition_leader_epoch=NO_LEADER_EPOCH,
        magic=CURRENT_MAGIC,
        crc=0,
        attributes=0,
        last_offset_delta=record_count - 1,
        base_timestamp=timestamp,
        max_timestamp=timestamp,
        producer_id=NO_PRODUCER_ID,
        producer_epoch=NO_PRODUCER_EPOCH,
        base_sequence=NO_SEQUENCE,
        record_count=record_count,
    )
    return assemble(header, block)


def empty_batch(header: BatchHeader) -> bytearray:
    """What the cleaner keeps of a batch without records: offsets, producer and sequences (Kafka's empty header)."""
    kept = TIMESTAMP_TYPE_MASK | TRANSACTIONAL_MASK | CONTROL_MASK
    return assemble(
        header._replace(attributes=header.attributes & kept, base_timestamp=NO_TIMESTAMP, record_count=0), b""
    )


def encode_body(
    timestamp_delta: int,
    offset_delta: int,
    key: bytes | None,
    value: bytes | None,
    headers: Iterable[tuple[str, bytes | None]],
) -> bytes:
    """A record without the length in front of it."""
    parts = [_NO_ATTRIBUTES, encode_varint(wrap_int64(timestamp_delta)), encode_varint(offset_delta)]
    for data in (key, value):
        if data is None:
            parts.append(_NULL)
        else:
            parts += (encode_varint(len(data)), data)
    encoded_headers = encode_headers(headers) if headers else _NO_HEADERS
    parts.append(encoded_headers)
    return b"".join(parts)


def encode_headers(headers: Iterable[tuple[str, bytes | None]]) -> bytes:
    """As they stand at the end of a record."""
    parts: list[bytes] = []
    count = 0
    for name, value in headers:
        key = name.encode("utf-8", "surrogateescape")
        parts += (encode_varint(len(key)), key)
        parts += (_NULL,) if value is None else (encode_varint(len(value)), value)
        count += 1
    return encode_varint(count) + b"".join(parts)


def _attributes(log_append_time: bool, transactional: bool, control: bool, delete_horizon: bool) -> int:
    return (
        (TIMESTAMP_TYPE_MASK if log_append_time else 0)
        | (TRANSACTIONAL_MASK if transactional else 0)
        | (CONTROL_MASK if control else 0)
        | (DELETE_HORIZON_MASK if delete_horizon else 0)
    )
