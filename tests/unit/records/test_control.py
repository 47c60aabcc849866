import struct
import warnings

import pytest
from aiokafka.record.control_record import ABORT_MARKER, COMMIT_MARKER, ControlRecord

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records import (
    ControlType,
    EndTxnMarker,
    Record,
    build_end_marker,
    crc_matches,
    read_end_marker,
    read_header,
    read_records,
)
from barnabas.records.builder import empty_batch
from barnabas.records.control import control_type, read_marker

with warnings.catch_warnings():
    warnings.simplefilter("ignore", DeprecationWarning)
    from kafka.record.default_records import DefaultRecordBatch as KafkaPythonBatch


@pytest.mark.parametrize("kind", [ControlType.COMMIT, ControlType.ABORT])
def test_markers_round_trip_and_foreign_readers_know_them(kind: ControlType) -> None:
    batch = build_end_marker(EndTxnMarker(kind, 17), 1001, 4, 5_000, base_offset=30, leader_epoch=2)
    header = read_header(batch)
    assert read_end_marker(batch) == EndTxnMarker(kind, 17)
    assert header.is_control and header.is_transactional and crc_matches(batch, 0, header)
    assert (header.producer_id, header.producer_epoch, header.base_sequence) == (1001, 4, -1)
    assert (header.base_offset, header.last_offset, header.partition_leader_epoch) == (30, 30, 2)
    record = read_records(batch)[0]
    assert record.key == struct.pack(">hh", 0, kind) and record.value == struct.pack(">hi", 0, 17)
    assert ControlRecord.parse(record.key) == (COMMIT_MARKER if kind else ABORT_MARKER)
    theirs = next(KafkaPythonBatch(bytes(batch)))
    assert theirs.commit == (kind is ControlType.COMMIT) and theirs.abort == (kind is ControlType.ABORT)


def test_other_control_records_are_no_markers() -> None:
    assert control_type(struct.pack(">hh", 0, 2)) is ControlType.LEADER_CHANGE
    assert control_type(struct.pack(">hh", 9, 99)) is ControlType.UNKNOWN
    assert read_marker(Record(0, 0, struct.pack(">hh", 0, 2), None)) is None
    with pytest.raises(ValueError, match="LEADER_CHANGE"):
        build_end_marker(EndTxnMarker(ControlType.LEADER_CHANGE, 0), 1, 1, 0)


def test_an_emptied_control_batch_has_no_marker() -> None:
    batch = build_end_marker(EndTxnMarker(ControlType.COMMIT, 1), 1, 1, 0)
    assert read_end_marker(empty_batch(read_header(batch))) is None


@pytest.mark.parametrize(
    ("key", "value"),
    [
        (None, b""),
        (b"\x00\x00\x00", b""),
        (struct.pack(">hh", -1, 1), struct.pack(">hi", 0, 1)),
        (struct.pack(">hh", 0, 1), None),
        (struct.pack(">hh", 0, 1), b"\x00\x00\x00\x00\x00"),
        (struct.pack(">hh", 0, 0), struct.pack(">hi", -1, 1)),
    ],
)
def test_malformed_markers_are_invalid(key: bytes | None, value: bytes | None) -> None:
    with pytest.raises(KafkaError) as error:
        read_marker(Record(0, 0, key, value))
    assert error.value.code is ErrorCode.INVALID_RECORD
