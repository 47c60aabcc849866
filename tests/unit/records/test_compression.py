import random
import struct
import tracemalloc

import cramjam
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import CompressionType, compress, compression_type, decompress

CODECS = list(CompressionType)
REAL_CODECS = CODECS[1:]


def refused(codec: CompressionType, data: bytes, limit: int = 1 << 20) -> str:
    with pytest.raises(KafkaError) as error:
        decompress(codec, data, limit)
    assert error.value.code is ErrorCode.CORRUPT_MESSAGE
    return error.value.message


@pytest.mark.parametrize("codec", CODECS)
@settings(max_examples=40)
@given(data=st.binary(max_size=2_000), repeat=st.integers(1, 60))
def test_round_trip(codec: CompressionType, data: bytes, repeat: int) -> None:
    whole = data * repeat
    assert decompress(codec, compress(codec, whole), len(whole)) == whole
    assert decompress(codec, memoryview(compress(codec, memoryview(whole)))) == whole


@pytest.mark.parametrize(
    ("codec", "levels"),
    [
        (CompressionType.GZIP, [-1, 1, 6, 9]),
        (CompressionType.LZ4, [1, 9, 12, 17]),
        (CompressionType.ZSTD, [-131_072, -1, 1, 3, 22]),
    ],
)
def test_levels_are_honoured(codec: CompressionType, levels: list[int]) -> None:
    words = random.Random(5)
    text = b" ".join(b"%d" % words.randrange(500) for _ in range(20_000))
    sizes = [len(compress(codec, text, level)) for level in levels]
    assert sizes[1] > sizes[-1]
    for level in levels:
        assert decompress(codec, compress(codec, text, level)) == text


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_output_is_bounded(codec: CompressionType) -> None:
    bomb = compress(codec, bytes(64 << 20))
    limit = 1 << 20
    tracemalloc.start()
    try:
        assert "more than" in refused(codec, bomb, limit)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 4 * limit


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_output_may_reach_the_bound_exactly(codec: CompressionType) -> None:
    data = bytes(100_000)
    assert decompress(codec, compress(codec, data), 100_000) == data
    refused(codec, compress(codec, data), 99_999)


@pytest.mark.parametrize("codec", REAL_CODECS)
def test_cut_or_garbled_input_gives_only_kafka_errors(codec: CompressionType) -> None:
    data = compress(codec, b"some text that repeats, some text that repeats " * 9)
    for cut in range(len(data)):
        try:
            decompress(codec, data[:cut], 1 << 16)
        except KafkaError as error:
            assert error.code is ErrorCode.CORRUPT_MESSAGE
        for mask in (0x01, 0x80, 0xFF):
            garbled = bytearray(data)
            garbled[cut] ^= mask
            try:
                decompress(codec, garbled, 1 << 16)
            except KafkaError as error:
                assert error.code is ErrorCode.CORRUPT_MESSAGE


def test_bare_snappy_is_read_and_framed_snappy_written() -> None:
    data = bytes(range(256)) * 500
    assert decompress(CompressionType.SNAPPY, bytes(cramjam.snappy.compress_raw(data))) == data
    framed = compress(CompressionType.SNAPPY, data)
    assert framed[:16] == b"\x82SNAPPY\x00" + struct.pack(">ii", 1, 1)
    first_block = struct.unpack_from(">i", framed, 16)[0]
    assert bytes(cramjam.snappy.decompress_raw(framed[20 : 20 + first_block])) == data[: 32 * 1024]
    assert decompress(CompressionType.SNAPPY, framed + framed) == data * 2


def test_snappy_that_announces_too_much_is_refused_before_memory_is_taken() -> None:
    assert "announces" in refused(CompressionType.SNAPPY, b"\xff\xff\xff\x07" + b"x" * 20, 1 << 30)


def test_glued_gzip_members_are_read_as_java_does() -> None:
    member = compress(CompressionType.GZIP, b"half")
    assert decompress(CompressionType.GZIP, member + member) == b"halfhalf"


def test_lz4_blocks_are_independent_because_java_takes_no_others() -> None:
    flags = compress(CompressionType.LZ4, b"data" * 50_000)[4]
    assert flags & 0x20 and flags >> 6 == 1


def test_lz4_by_default_is_the_fast_one_as_in_kafka() -> None:
    words = random.Random(5)
    text = b" ".join(b"%d" % words.randrange(500) for _ in range(20_000))
    fast = compress(CompressionType.LZ4, text)
    assert fast == compress(CompressionType.LZ4, text, 9)
    assert len(fast) > len(compress(CompressionType.LZ4, text, 8)) > len(compress(CompressionType.LZ4, text, 10))


def test_unknown_codec_is_corrupt() -> None:
    assert [compression_type(code) for code in range(5)] == CODECS
    with pytest.raises(KafkaError):
        compression_type(5)
