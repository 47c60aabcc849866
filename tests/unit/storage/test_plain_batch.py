"""Batches that are recognised as plain: both twins alike, and never one that the full checks would refuse."""

import importlib
import struct
from types import ModuleType

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.config.topic import TopicConfig
from barnabas.records.builder import BatchBuilder
from barnabas.records.compression import CompressionType
from barnabas.records.header import TRANSACTIONAL_MASK, read_header, write_crc
from barnabas.storage import plain_batch_pure
from barnabas.storage.append_checks import check_batch, check_timestamps
from barnabas.storage.producer_state import AppendOrigin

try:
    NATIVE: ModuleType | None = importlib.import_module("barnabas.storage.plain_batch_native")
except ImportError:
    NATIVE = None
TWINS = [pytest.param(plain_batch_pure, id="pure")]
TWINS.append(pytest.param(NATIVE, id="native", marks=pytest.mark.skipif(NATIVE is None, reason="not compiled")))

NOW_MS = 1_700_000_000_000
FIELDS = {  # name: (position, format)
    "base_offset": (0, ">q"),
    "batch_length": (8, ">i"),
    "magic": (16, ">b"),
    "attributes": (21, ">h"),
    "last_offset_delta": (23, ">i"),
    "base_timestamp": (27, ">q"),
    "max_timestamp": (35, ">q"),
    "producer_id": (43, ">q"),
    "producer_epoch": (51, ">h"),
    "base_sequence": (53, ">i"),
    "record_count": (57, ">i"),
}


def batch(size: int, codec: CompressionType = CompressionType.NONE) -> bytearray:
    builder = BatchBuilder(codec)
    builder.append(NOW_MS, b"key", bytes(number % 251 for number in range(size)))
    return bytearray(builder.build())


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("codec", CompressionType)
def test_a_plain_batch_gives_its_header(twin: ModuleType, codec: CompressionType) -> None:
    for size in [*range(40), 400, 430, 440, 450, 1000, 100_000]:
        data = memoryview(batch(size, codec))
        header = twin.read_plain_header(data)
        assert header == read_header(data)
        assert type(header) is type(read_header(data))


@pytest.mark.parametrize("twin", TWINS)
@pytest.mark.parametrize("size", [1, 100, 5000])
def test_one_wrong_bit_is_always_seen(twin: ModuleType, size: int) -> None:
    whole = batch(size)
    for position in range(21, len(whole), 1 + len(whole) // 300):
        data = bytearray(whole)
        data[position] ^= 1 << position % 8
        assert twin.read_plain_header(memoryview(data)) is None


@pytest.mark.parametrize("twin", TWINS)
def test_no_cut_is_read(twin: ModuleType) -> None:
    whole = batch(50)
    for length in range(len(whole)):
        assert twin.read_plain_header(memoryview(whole)[:length]) is None
    assert twin.read_plain_header(memoryview(whole + b"\0")) is None


@pytest.mark.parametrize("twin", TWINS)
@given(data=st.data())
def test_what_passes_would_pass_the_full_checks(twin: ModuleType, data: st.DataObject) -> None:
    changed = batch(data.draw(st.sampled_from([5, 600])))
    for _ in range(data.draw(st.integers(0, 2))):
        position, code = FIELDS[data.draw(st.sampled_from(sorted(FIELDS)))]
        bits = 8 * struct.calcsize(code) - 1
        near = [-1, 0, 1, 2, 3, 4, 5, 8, 16, 32, 64]
        value = data.draw(st.sampled_from([*near, 2**bits - 1, -(2**bits)]) if bits > 7 else st.sampled_from(near))
        struct.pack_into(code, changed, position, value)
    if data.draw(st.booleans()):
        write_crc(changed, 0, len(changed))
    view = memoryview(changed)
    header = twin.read_plain_header(view)
    assert header == plain_batch_pure.read_plain_header(view)
    if header is not None:
        assert header == read_header(view)
        assert not header.attributes & TRANSACTIONAL_MASK
        check_batch(view, header, TopicConfig(), AppendOrigin.CLIENT)
        check_timestamps(header._replace(max_timestamp=NOW_MS), TopicConfig(), NOW_MS)


@pytest.mark.parametrize("twin", TWINS)
@given(st.binary(max_size=200))
def test_noise_is_not_a_batch(twin: ModuleType, noise: bytes) -> None:
    assert twin.read_plain_header(memoryview(noise)) is None
