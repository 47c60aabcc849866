"""The four codecs of a record batch, with the output of decompression bounded.

Called by the reader and the builder for the block of records behind the batch header. Compressed bytes come from
strangers: nothing here may take more memory than `max_output_bytes`, and every fault of the input is
KafkaError(CORRUPT_MESSAGE).

Levels: gzip takes 1 to 9 or -1, zstd takes -131072 to 22, lz4 takes 1 to 17 (the library treats everything from 12 up
as its strongest setting; 9, Kafka's default, stands for the fast compressor, as it does there). snappy has no levels.
"""

import struct
import zlib
from enum import IntEnum
from typing import Final

import cramjam

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.header import Buffer


class CompressionType(IntEnum):
    NONE = 0
    GZIP = 1
    SNAPPY = 2
    LZ4 = 3
    ZSTD = 4

    @property
    def config_name(self) -> str:
        """The name as in compression.type."""
        return "uncompressed" if self is CompressionType.NONE else self.name.lower()


DEFAULT_MAX_OUTPUT_BYTES: Final = 128 * 1024 * 1024
ANY_RATIO_BYTES: Final = 16 * 1024 * 1024
MAX_RATIO: Final = 1000

_COMPRESSION_TYPES: Final = tuple(CompressionType)
_DEFAULT_LZ4_LEVEL: Final = 9
_FAST_LZ4_LEVEL: Final = 1
"""What the library calls the fast compressor; Kafka has it under its default level, ten times as quick as a real 9."""
_GZIP_WINDOW_BITS: Final = 31
"""zlib's way of saying: 32 KiB window with gzip header and trailer."""

# snappy-java's stream: a 16-byte header, then blocks of [compressed length int32][raw snappy].
_XERIAL_MAGIC: Final = b"\x82SNAPPY\x00"
_XERIAL_HEADER: Final = _XERIAL_MAGIC + struct.pack(">ii", 1, 1)
_XERIAL_BLOCK_BYTES: Final = 32 * 1024
_XERIAL_LENGTH: Final = struct.Struct(">I")
_SNAPPY_MAX_RATIO: Final = 64
"""No three bytes of snappy describe more than 64 bytes, so a larger claim is false and no memory is allocated."""
_XERIAL_FREE_BLOCKS: Final = 64
_XERIAL_SMALLEST_MEAN: Final = 256
"""Bytes of a compressed block on average, after the first ones. 32 KiB never take less than five times that."""

_ZSTD_LONGEST_HEADER: Final = 18
_STREAM_MAGIC: Final = {
    CompressionType.GZIP: b"\x1f\x8b\x08",
    CompressionType.LZ4: b"\x04\x22\x4d\x18",
    CompressionType.ZSTD: b"\x28\xb5\x2f\xfd",
}
_FEW_STREAMS: Final = 8
_DECOMPRESS_INTO: Final = {
    CompressionType.GZIP: cramjam.gzip.decompress_into,
    CompressionType.LZ4: cramjam.lz4.decompress_into,
    CompressionType.ZSTD: cramjam.zstd.decompress_into,
}

_FIRST_GUESS_RATIO: Final = 8
_SMALL_GUESS_RATIO: Final = 64
_SMALL_GUESS_BYTES: Final = 128 * 1024
"""Up to here memory costs less than a second attempt."""
_GROWTH: Final = 4
_SMALLEST_GUESS: Final = 4096
_OUTPUT_FULL: Final = "failed to write whole buffer"
"""cramjam's message for an output buffer that is too small; all its other errors are about the input."""


def compression_type(code: int) -> CompressionType:
    """The codec that the attributes of a batch name."""
    if code >= len(_COMPRESSION_TYPES):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no compression codec {code}")
    return _COMPRESSION_TYPES[code]


def compress(codec: CompressionType, data: Buffer, level: int | None = None) -> bytes:
    """`level` None is the default that Kafka has for the codec."""
    if codec is CompressionType.NONE:
        return bytes(data)
    if codec is CompressionType.GZIP:
        gzip = zlib.compressobj(-1 if level is None else level, zlib.DEFLATED, _GZIP_WINDOW_BITS)
        return gzip.compress(data) + gzip.flush()
    if codec is CompressionType.SNAPPY:
        return _compress_xerial(data)
    if codec is CompressionType.LZ4:
        # Java's reader takes independent blocks only, and Kafka writes no content checksum: the batch has its CRC.
        lz4 = cramjam.lz4.Compressor(
            level=_FAST_LZ4_LEVEL if level in (None, _DEFAULT_LZ4_LEVEL) else level,
            content_checksum=False,
            block_linked=False,
        )
        lz4.compress(bytes(data))
        return bytes(lz4.finish())
    return bytes(cramjam.zstd.compress(data, level=3 if level is None else level))


class OutputLimitError(KafkaError):
    """The block decompresses to more than was allowed."""


def decompress(codec: CompressionType, data: Buffer, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> bytes:
    return bytes(decompress_view(codec, data, max_output_bytes))


def decompress_view(codec: CompressionType, data: Buffer, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES) -> Buffer:
    """The same without the last copy. The codecs work without the GIL; raises OutputLimitError for too much output."""
    try:
        if codec is CompressionType.NONE:
            return data
        if codec is CompressionType.SNAPPY:
            return _decompress_snappy(data, max_output_bytes)
        return _decompress_growing(codec, data, max_output_bytes)
    except cramjam.DecompressionError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"cannot decompress {codec.name.lower()}: {error}") from None


def max_output_for(compressed_bytes: int) -> int:
    """What a producer's batch may decompress to: any ratio up to a size that batches have, above it a likely one.

    Apache Kafka has no such limit. Here it bounds the memory that a few bytes from a stranger can take.
    """
    return min(max(ANY_RATIO_BYTES, compressed_bytes * MAX_RATIO), DEFAULT_MAX_OUTPUT_BYTES)


def is_quick_to_decompress(codec: CompressionType, data: Buffer) -> bool:
    """Whether the output alone decides how long it takes. Each of many tiny streams in one block costs a set-up."""
    magic = _STREAM_MAGIC.get(codec)
    return magic is None or bytes(data).count(magic) <= _FEW_STREAMS


def _too_large(max_output_bytes: int) -> OutputLimitError:
    return OutputLimitError(ErrorCode.CORRUPT_MESSAGE, f"a batch decompresses to more than {max_output_bytes} bytes")


def _compress_xerial(data: Buffer) -> bytes:
    view = memoryview(data)
    parts = [_XERIAL_HEADER]
    for start in range(0, len(view), _XERIAL_BLOCK_BYTES):
        block = bytes(cramjam.snappy.compress_raw(view[start : start + _XERIAL_BLOCK_BYTES]))
        parts.append(_XERIAL_LENGTH.pack(len(block)))
        parts.append(block)
    return b"".join(parts)


def _decompress_snappy(data: Buffer, max_output_bytes: int) -> bytes:
    """Java clients frame their snappy, librdkafka sends one bare block: the first bytes show which."""
    view = memoryview(data)
    if bytes(view[: len(_XERIAL_MAGIC)]) != _XERIAL_MAGIC:
        return _decompress_snappy_block(view, max_output_bytes)
    parts: list[bytes] = []
    left = max_output_bytes
    position = len(_XERIAL_HEADER)
    blocks_left = _XERIAL_FREE_BLOCKS + len(view) // _XERIAL_SMALLEST_MEAN
    while position < len(view):
        if not blocks_left:
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a snappy stream is cut into too many blocks")
        blocks_left -= 1
        if bytes(view[position : position + len(_XERIAL_MAGIC)]) == _XERIAL_MAGIC:
            position += len(_XERIAL_HEADER)  # streams may be glued together
            continue
        if position + 4 > len(view):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a snappy stream ends within a block length")
        length: int = _XERIAL_LENGTH.unpack_from(view, position)[0]
        position += 4
        if position + length > len(view):
            raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a snappy block is longer than its stream")
        part = _decompress_snappy_block(view[position : position + length], left)
        left -= len(part)
        parts.append(part)
        position += length
    return b"".join(parts)


def _decompress_snappy_block(block: memoryview, max_output_bytes: int) -> bytes:
    announced: int = cramjam.snappy.decompress_raw_len(block)
    if announced > len(block) * _SNAPPY_MAX_RATIO:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "a snappy block announces more than it can hold")
    if announced > max_output_bytes:
        raise _too_large(max_output_bytes)
    return bytes(cramjam.snappy.decompress_raw(block))


def _decompress_growing(codec: CompressionType, data: Buffer, max_output_bytes: int) -> memoryview:
    """No size that lz4, zstd or gzip announce can be relied on, so the output grows until it fits.

    Nearly all batches fit at once; for the others the earlier attempts add a third.
    """
    decompress_into = _DECOMPRESS_INTO[codec]
    announced = _announced_bytes(codec, data)
    if announced > max_output_bytes:
        raise _too_large(max_output_bytes)
    capacity = min(announced or _first_guess(len(data)), max_output_bytes)
    while True:
        output = bytearray(capacity)
        try:
            written: int = decompress_into(data, output)
        except cramjam.DecompressionError as error:
            if _OUTPUT_FULL not in str(error):
                raise
            if capacity >= max_output_bytes:
                raise _too_large(max_output_bytes) from None
            capacity = min(capacity * _GROWTH, max_output_bytes)
        else:
            return memoryview(output)[:written]


def _first_guess(compressed_bytes: int) -> int:
    small = min(compressed_bytes * _SMALL_GUESS_RATIO, _SMALL_GUESS_BYTES)
    return max(_SMALLEST_GUESS, small, compressed_bytes * _FIRST_GUESS_RATIO)


def _announced_bytes(codec: CompressionType, data: Buffer) -> int:
    """The content size in the header of a zstd frame, or 0. A guess: other frames may follow, and it may be wrong."""
    if codec is not CompressionType.ZSTD or len(data) < _ZSTD_LONGEST_HEADER:
        return 0
    descriptor = data[4]
    size_flag, single_segment = descriptor >> 6, descriptor >> 5 & 1
    width = (single_segment, 2, 4, 8)[size_flag]
    start = 5 + (1 - single_segment) + (0, 1, 2, 4)[descriptor & 3]
    return int.from_bytes(data[start : start + width], "little") + (256 if width == 2 else 0)
