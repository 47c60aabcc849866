"""The fixed 61 bytes at the start of a record batch (magic 2): read, patch and check them without reading a record.

The broker's append and fetch paths, recovery and the cleaner call this for each batch, so every function here is one or
two struct calls and the CRC runs in C. Nothing here decodes a record; see reader.py for that.

    offset size field
         0    8 base offset              not covered by the CRC: the leader fills it in
         8    4 batch length             bytes that follow this field
        12    4 partition leader epoch   not covered by the CRC: the leader fills it in
        16    1 magic                    2; formats 0 and 1 have their magic at this place too
        17    4 CRC32C                   of everything from the attributes to the end of the batch
        21    2 attributes               see below
        23    4 last offset delta
        27    8 base timestamp           or the delete horizon, if attribute bit 6 is set (KIP-534)
        35    8 max timestamp
        43    8 producer id
        51    2 producer epoch
        53    4 base sequence
        57    4 record count
        61    - records                  compressed as one block if the attributes name a codec

    attribute bits: 0-2 codec, 3 timestamp type, 4 transactional, 5 control, 6 base timestamp is the delete horizon
"""

import struct
from collections.abc import Iterator
from enum import IntEnum
from typing import Final, NamedTuple

from crc32c import crc32c

from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import NO_SEQUENCE

Buffer = bytes | bytearray | memoryview

HEADER_SIZE: Final = 61
LOG_OVERHEAD: Final = 12
"""Bytes of base offset and batch length, which the batch length does not count."""
MAGIC_OFFSET: Final = 16
CRC_OFFSET: Final = 17
ATTRIBUTES_OFFSET: Final = 21
CURRENT_MAGIC: Final = 2
SMALLEST_LEGACY_LENGTH: Final = 14
"""A message of format 0 with no key and no value; no format has anything shorter."""
MAX_SEQUENCE: Final = 0x7FFF_FFFF

COMPRESSION_MASK: Final = 0x07
TIMESTAMP_TYPE_MASK: Final = 0x08
TRANSACTIONAL_MASK: Final = 0x10
CONTROL_MASK: Final = 0x20
DELETE_HORIZON_MASK: Final = 0x40

HEADER: Final = struct.Struct(">qiibIhiqqqhii")
_BASE_OFFSET: Final = struct.Struct(">q")
_LENGTH: Final = struct.Struct(">i")
_LEADER_EPOCH: Final = struct.Struct(">i")
_CRC: Final = struct.Struct(">I")
_ATTRIBUTES: Final = struct.Struct(">h")
_MAX_TIMESTAMP: Final = struct.Struct(">q")

_unpack_header = HEADER.unpack_from


class TimestampType(IntEnum):
    CREATE_TIME = 0
    LOG_APPEND_TIME = 1


class BatchHeader(NamedTuple):
    base_offset: int
    batch_length: int
    partition_leader_epoch: int
    magic: int
    crc: int
    attributes: int
    last_offset_delta: int
    base_timestamp: int
    max_timestamp: int
    producer_id: int
    producer_epoch: int
    base_sequence: int
    record_count: int

    @property
    def size_in_bytes(self) -> int:
        return self.batch_length + LOG_OVERHEAD

    @property
    def last_offset(self) -> int:
        return self.base_offset + self.last_offset_delta

    @property
    def next_offset(self) -> int:
        return self.base_offset + self.last_offset_delta + 1

    @property
    def last_sequence(self) -> int:
        """Sequence numbers start again at 0 after 2^31 - 1."""
        if self.base_sequence == NO_SEQUENCE:
            return NO_SEQUENCE
        return (self.base_sequence + self.last_offset_delta) & MAX_SEQUENCE

    @property
    def compression(self) -> int:
        """A CompressionType, or one of 5 to 7, which no codec has, if the sender is broken."""
        return self.attributes & COMPRESSION_MASK

    @property
    def timestamp_type(self) -> TimestampType:
        return TimestampType.LOG_APPEND_TIME if self.attributes & TIMESTAMP_TYPE_MASK else TimestampType.CREATE_TIME

    @property
    def is_transactional(self) -> bool:
        return bool(self.attributes & TRANSACTIONAL_MASK)

    @property
    def is_control(self) -> bool:
        return bool(self.attributes & CONTROL_MASK)

    @property
    def has_producer_id(self) -> bool:
        return self.producer_id >= 0

    @property
    def delete_horizon_ms(self) -> int | None:
        """When tombstones and transaction markers of this batch may be removed, once the cleaner has set it."""
        return self.base_timestamp if self.attributes & DELETE_HORIZON_MASK else None


def read_header(buffer: Buffer, position: int = 0) -> BatchHeader:
    """The header as it stands. The caller checks `magic` first: formats 0 and 1 fill the later fields with noise."""
    try:
        return tuple.__new__(BatchHeader, _unpack_header(buffer, position))
    except struct.error:
        raise _short_header(buffer, position) from None


def _short_header(buffer: Buffer, position: int) -> KafkaError:
    """A whole message of format 0 or 1 can be shorter than 61 bytes; it is old rather than corrupt."""
    available = len(buffer) - position
    if available > MAGIC_OFFSET and buffer[position + MAGIC_OFFSET] in (0, 1):
        return KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, "message formats 0 and 1 are not taken")
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch header needs {HEADER_SIZE} bytes, {available} are left")


def crc_matches(buffer: Buffer, position: int, header: BatchHeader) -> bool:
    end = position + header.batch_length + LOG_OVERHEAD
    return crc32c(memoryview(buffer)[position + ATTRIBUTES_OFFSET : end]) == header.crc


def patch_in_place(buffer: bytearray | memoryview, position: int, base_offset: int, leader_epoch: int) -> None:
    """Gives the batch its place in the log. Neither field is under the CRC, so that stays as the producer made it."""
    _BASE_OFFSET.pack_into(buffer, position, base_offset)
    _LEADER_EPOCH.pack_into(buffer, position + 12, leader_epoch)


def set_max_timestamp(
    buffer: bytearray | memoryview, position: int, timestamp_type: TimestampType, max_timestamp: int
) -> None:
    """Stamps the batch, as for message.timestamp.type=LogAppendTime, and recomputes its CRC."""
    header = read_header(buffer, position)
    if header.timestamp_type == timestamp_type and header.max_timestamp == max_timestamp:
        return
    attributes = header.attributes & ~TIMESTAMP_TYPE_MASK
    if timestamp_type == TimestampType.LOG_APPEND_TIME:
        attributes |= TIMESTAMP_TYPE_MASK
    _ATTRIBUTES.pack_into(buffer, position + ATTRIBUTES_OFFSET, attributes)
    _MAX_TIMESTAMP.pack_into(buffer, position + 35, max_timestamp)
    write_crc(buffer, position, header.size_in_bytes)


def write_crc(buffer: bytearray | memoryview, position: int, size_in_bytes: int) -> None:
    """Computes the CRC of a batch whose other bytes are final, and stores it."""
    covered = memoryview(buffer)[position + ATTRIBUTES_OFFSET : position + size_in_bytes]
    _CRC.pack_into(buffer, position + CRC_OFFSET, crc32c(covered))


def iter_headers(buffer: Buffer) -> Iterator[tuple[int, BatchHeader]]:
    """Each whole batch as (position, header); a batch that the buffer holds only in part ends it silently.

    That partial tail is normal: a fetch response and a torn segment both may end in the middle of a batch.
    """
    position = 0
    end = len(buffer)
    while end - position > MAGIC_OFFSET:
        check_batch_start(buffer, position)
        length: int = _LENGTH.unpack_from(buffer, position + 8)[0]
        if position + LOG_OVERHEAD + length > end:
            return
        yield position, read_header(buffer, position)
        position += LOG_OVERHEAD + length


def check_batch_start(buffer: Buffer, position: int) -> None:
    """Raises unless the 17 bytes at `position` can be the start of a batch of magic 2."""
    length: int = _LENGTH.unpack_from(buffer, position + 8)[0]
    magic = buffer[position + MAGIC_OFFSET]
    if length < SMALLEST_LEGACY_LENGTH:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch length {length} is below the smallest possible")
    if magic < CURRENT_MAGIC:
        raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format {magic} is not taken")
    if magic != CURRENT_MAGIC:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no magic {magic}")
    if length < HEADER_SIZE - LOG_OVERHEAD:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"batch length {length} cannot hold a header")
