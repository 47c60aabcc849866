"""Batches of the coordinators' logs: the quick way for one record gives the bytes of the slow one; reading back."""

import logging

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.machines.coordinator import ApplyContext, CoordinatorRecord, ProducerIdAndEpoch
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.protocol.versioned import encode_record_key, encode_versioned
from barnabas.records import BatchBuilder, CompressionType, ControlType, EndTxnMarker, build_end_marker, read_header
from barnabas.server.coordinator_codec import AppliedMarker, CoordinatorCodec, read_marker

CODEC = CoordinatorCodec([(OffsetCommitKey, OffsetCommitValue)]).read_also({0: 1})
LIMIT = 1_000_000


def record(topic: str, metadata: str | None = "") -> CoordinatorRecord:
    key = OffsetCommitKey(group="g", topic=topic, partition=3)
    if metadata is None:
        return CoordinatorRecord(key, None)
    return CoordinatorRecord(key, OffsetCommitValue(offset=5, metadata=metadata, commit_timestamp=77), 4)


@given(
    topic=st.text(max_size=300),
    metadata=st.one_of(st.none(), st.text(max_size=20_000)),
    transaction=st.one_of(st.none(), st.just(ProducerIdAndEpoch(9, 4))),
)
def test_one_record_is_encoded_as_the_builder_does(
    topic: str, metadata: str | None, transaction: ProducerIdAndEpoch | None
) -> None:
    written = record(topic, metadata)
    ((_, batch),) = CODEC.encode_batches([written], 1234, LIMIT, transaction=transaction)
    options = {} if transaction is None else {"producer_id": 9, "producer_epoch": 4, "transactional": True}
    builder = BatchBuilder(**options)
    value = None if written.value is None else encode_versioned(written.value, 4)
    builder.append(1234, encode_record_key(written.key), value)
    assert batch == builder.build()


@pytest.mark.parametrize("count", [1, 3])
@pytest.mark.parametrize("compression", [CompressionType.NONE, CompressionType.ZSTD])
def test_what_is_written_is_read_back(count: int, compression: CompressionType) -> None:
    records = [record(f"t{number}", None if number == 1 else "m") for number in range(count)]
    transaction = ProducerIdAndEpoch(9, 4)
    ((_, batch),) = CODEC.encode_batches(records, 1234, LIMIT, compression, transaction)
    read = list(CODEC.decode_batch(batch, read_header(batch)))
    assert read == [
        (written.key, written.value, ApplyContext(number, 1234, 9, 4, True)) for number, written in enumerate(records)
    ]


def test_removals_are_divided_and_values_are_not() -> None:
    removals = [record(f"t{number}", None) for number in range(100)]
    batches = CODEC.encode_batches(removals, 1234, 1000)
    assert len(batches) >= 3 and all(len(batch) <= 1000 for _, batch in batches)
    assert [each for some, _ in batches for each in some] == removals
    for some, batch in batches:
        assert [each.key for each in some] == [key for key, _, _ in CODEC.decode_batch(batch, read_header(batch))]
    mixed = [*removals, record("last")]
    assert [some for some, _ in CODEC.encode_batches(mixed, 1234, 1000)] == [mixed]


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_markers_are_read(kind: ControlType) -> None:
    batch = build_end_marker(EndTxnMarker(kind, 2), 9, 4, 1234)
    assert read_marker(batch, read_header(batch)) == AppliedMarker(9, 4, kind is ControlType.COMMIT)


def test_what_cannot_be_read_is_skipped(caplog: pytest.LogCaptureFixture) -> None:
    builder = BatchBuilder()
    key = encode_record_key(record("t").key)
    builder.append(1, None, b"no key")
    builder.append(1, b"\x00", b"half a type")
    builder.append(1, b"\x00\x63" + key[2:], b"a type of the future")
    builder.append(1, key[:-1], None)
    builder.append(1, key, b"\x00\x63a version of the future")
    builder.append(1, b"\x00\x00" + key[2:], encode_versioned(record("t").value, 3))
    batch = builder.build()
    with caplog.at_level(logging.WARNING):
        read = list(CODEC.decode_batch(batch, read_header(batch)))
    assert [context.offset for _, _, context in read] == [5]
    assert len(caplog.records) == 5
