"""One batch under construction, on a producer's side.

Appended to by whoever calls send (under the accumulator's lock), finished and sent by the sender, then reset for the
next batch. Unlike BatchBuilder it can be used again, reports its size before each append and lets the producer's id,
epoch and sequence be set late or again: a retry under a new epoch changes them.
"""

import struct
from collections.abc import Sequence
from typing import Final

from barnabas.records.builder import assemble, encode_body
from barnabas.records.compression import CompressionType, compress
from barnabas.records.header import (
    CURRENT_MAGIC,
    HEADER_SIZE,
    TRANSACTIONAL_MASK,
    BatchHeader,
    Buffer,
    write_crc,
)
from barnabas.records.reader import decode_records
from barnabas.records.record import Headers
from barnabas.records.varint import encode_varint
from barnabas.types import NO_LEADER_EPOCH, NO_PRODUCER_EPOCH, NO_PRODUCER_ID, NO_SEQUENCE, NO_TIMESTAMP

RecordHeaders = Sequence[tuple[str, Buffer | None]]

_MAX_RECORD_OVERHEAD: Final = 31
"""Length, attributes, timestamp delta, offset delta and the lengths of key and value, each at its longest."""
_MAX_LENGTH_BYTES: Final = 5
_MAX_BATCH_BYTES: Final = 0x7FFF_FFFF
_PRODUCER: Final = struct.Struct(">qhi")
_PRODUCER_OFFSET: Final = 43


class BatchBuffer:
    __slots__ = ("_capacity", "_finished", "_parts", "base_timestamp", "count", "max_timestamp", "size")

    def __init__(self, capacity: int) -> None:
        """`capacity` in bytes is what the buffer holds without growing; it is no limit."""
        self._capacity = capacity
        self.reset()

    def reset(self) -> None:
        """Empty again, for another batch; a view returned by `finish` is not changed."""
        self._parts: list[bytes] = []
        self._finished: bytearray | None = None
        self.count = 0
        self.size = HEADER_SIZE
        self.base_timestamp = NO_TIMESTAMP
        self.max_timestamp = NO_TIMESTAMP

    def append(
        self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: RecordHeaders | None = None
    ) -> int:
        """Adds a record and returns its index in the batch. A rejected record leaves the batch unchanged."""
        return self._append(timestamp, key, value, headers, _MAX_BATCH_BYTES)

    def try_append(
        self,
        timestamp: int,
        key: Buffer | None,
        value: Buffer | None,
        headers: RecordHeaders | None,
        limit: int,
    ) -> int:
        """As `append`, but -1 if the record would take the batch over `limit`; an empty batch takes any record."""
        return self._append(timestamp, key, value, headers, limit if self.count else _MAX_BATCH_BYTES)

    def _append(
        self, timestamp: int, key: Buffer | None, value: Buffer | None, headers: RecordHeaders | None, limit: int
    ) -> int:
        if self._finished is not None:
            raise ValueError("the batch is finished: reset it first")
        if not -(1 << 63) <= timestamp < 1 << 63:
            raise OverflowError(f"timestamp {timestamp} needs more than 64 bits")
        checked = _checked_headers(headers) if headers else ()
        base_timestamp = self.base_timestamp if self.count else timestamp
        body = encode_body(
            timestamp - base_timestamp, self.count, _checked("key", key), _checked("value", value), checked
        )
        length = encode_varint(len(body))
        size = self.size + len(length) + len(body)
        if size > limit:
            if size <= _MAX_BATCH_BYTES:
                return -1
            raise OverflowError(f"a batch of {size} bytes: more than 2 GiB")
        self._parts.append(length)
        self._parts.append(body)
        self.size = size
        self.base_timestamp = base_timestamp
        self.max_timestamp = max(self.max_timestamp, timestamp)
        self.count += 1
        return self.count - 1

    def would_fit(self, key: Buffer | None, value: Buffer | None, headers: RecordHeaders | None, limit: int) -> bool:
        """Whether the batch stays within `limit` bytes, by an upper bound; an empty batch takes any record."""
        if not self.count:
            return True
        bound = self.size + _MAX_RECORD_OVERHEAD + 1 + _length(key) + _length(value)
        if not headers:
            return bound <= limit
        bound += _MAX_LENGTH_BYTES
        for name, data in headers:
            bound += 2 * _MAX_LENGTH_BYTES + len(name.encode("utf-8", "surrogateescape")) + _length(data)
        return bound <= limit

    def finish(
        self,
        *,
        codec: CompressionType = CompressionType.NONE,
        level: int | None = None,
        transactional: bool = False,
        producer_id: int = NO_PRODUCER_ID,
        producer_epoch: int = NO_PRODUCER_EPOCH,
        base_sequence: int = NO_SEQUENCE,
    ) -> memoryview:
        """The whole batch, compressed, with its CRC. Nothing can be appended until `reset`."""
        if not self.count:
            raise ValueError("the batch has no records")
        header = self._header(codec, transactional)._replace(
            producer_id=producer_id, producer_epoch=producer_epoch, base_sequence=base_sequence
        )
        self._finished = assemble(header, compress(codec, b"".join(self._parts), level))
        return memoryview(self._finished)

    def set_producer(self, producer_id: int, producer_epoch: int, base_sequence: int) -> None:
        """Changes the finished batch in place, and its CRC; views of it see the change."""
        if self._finished is None:
            raise ValueError("the batch is not finished")
        _PRODUCER.pack_into(self._finished, _PRODUCER_OFFSET, producer_id, producer_epoch, base_sequence)
        write_crc(self._finished, 0, len(self._finished))

    def records(self) -> list[tuple[int, bytes | None, bytes | None, Headers]]:
        """Timestamp, key, value and headers of all records, to append them to smaller batches."""
        header = self._header(CompressionType.NONE, False)
        return [record[1:] for record in decode_records(header, b"".join(self._parts))]

    def _header(self, codec: CompressionType, transactional: bool) -> BatchHeader:
        return BatchHeader(
            base_offset=0,
            batch_length=0,
            partition_leader_epoch=NO_LEADER_EPOCH,
            magic=CURRENT_MAGIC,
            crc=0,
            attributes=codec | (TRANSACTIONAL_MASK if transactional else 0),
            last_offset_delta=self.count - 1,
            base_timestamp=self.base_timestamp,
            max_timestamp=self.max_timestamp,
            producer_id=NO_PRODUCER_ID,
            producer_epoch=NO_PRODUCER_EPOCH,
            base_sequence=NO_SEQUENCE,
            record_count=self.count,
        )


def _checked(what: str, data: Buffer | None) -> bytes | None:
    if data is None or type(data) is bytes:
        return data
    if not isinstance(data, bytes | bytearray | memoryview):
        raise TypeError(f"a record's {what} must be bytes-like or None, not {type(data).__name__}")
    return bytes(data)


def _checked_headers(headers: RecordHeaders) -> list[tuple[str, bytes | None]]:
    checked = []
    for name, data in headers:
        if not isinstance(name, str):
            raise TypeError(f"a record header's key must be str, not {type(name).__name__}")
        checked.append((name, _checked("header value", data)))
    return checked


def _length(data: Buffer | None) -> int:
    if data is None:
        return 0
    return data.nbytes if isinstance(data, memoryview) else len(data)
