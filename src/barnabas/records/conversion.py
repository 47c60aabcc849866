"""What a leader does with a batch that it cannot take as it is: look into the records, and write the batch anew.

`storage` calls this on append for compacted topics (each record needs a key), for topics with a compression.type of
their own, and wherever it wants the records themselves checked. Most batches never come here. Kafka's LogValidator is
the reference; differences: the batch that was given is never changed, and the check of offsets is the same for
compressed and plain batches.
"""

from collections.abc import Iterator
from typing import Final, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import BatchBuilder, assemble
from barnabas.records.compression import DEFAULT_MAX_OUTPUT_BYTES, CompressionType, compress, compression_type
from barnabas.records.header import (
    COMPRESSION_MASK,
    BatchHeader,
    Buffer,
    TimestampType,
    read_header,
    set_max_timestamp,
)
from barnabas.records.reader import decode_records, iter_records, read_payload
from barnabas.records.record import Record
from barnabas.types import NO_TIMESTAMP

_SHOWN_ERRORS: Final = 3


class RecordError(NamedTuple):
    """One entry of record_errors in a produce response."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """Some records of a batch were refused, and so the whole batch; says which ones."""

    def __init__(self, code: ErrorCode, record_errors: tuple[RecordError, ...]) -> None:
        shown = "; ".join(f"record {index}: {message}" for index, message in record_errors[:_SHOWN_ERRORS])
        super().__init__(code, f"{len(record_errors)} records were refused: {shown}")
        self.record_errors = record_errors


class RecordChecks(NamedTuple):
    """What a topic asks of each record."""

    compacted: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    now_ms: int = 0
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = (1 << 63) - 1


class CheckedRecords(NamedTuple):
    max_timestamp: int
    consecutive: bool
    """Whether the offsets run 0, 1, 2 from the base offset. Some clients get that wrong; they are then written anew."""


def check_batch_header(header: BatchHeader) -> None:
    """What a client's batch must look like before its records are looked at."""
    count_by_offsets = header.last_offset_delta + 1
    if count_by_offsets <= 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch with last offset delta {header.last_offset_delta}")
    if header.record_count <= 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a batch of {header.record_count} records")
    if count_by_offsets != header.record_count:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"{header.record_count} records on {count_by_offsets} offsets in one batch"
        )
    if header.is_control:
        raise KafkaError(ErrorCode.INVALID_RECORD, "clients may not write control records")
    compression_type(header.attributes & COMPRESSION_MASK)
    if header.has_producer_id and header.base_sequence < 0:
        raise KafkaError(
            ErrorCode.INVALID_RECORD, f"a batch of producer {header.producer_id} without a sequence number"
        )


def has_null_keys(batch: Buffer) -> bool:
    return any(record.key is None for record in iter_records(batch))


def check_records(
    batch: Buffer, checks: RecordChecks, max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES
) -> CheckedRecords:
    """Decodes all records, so count, sizes and structure are proven; raises InvalidRecordsError for refused ones."""
    header = read_header(batch)
    records = decode_records(header, read_payload(batch, header, max_output_bytes))
    return _check_each(header, records, checks)


def _check_each(header: BatchHeader, records: Iterator[Record], checks: RecordChecks) -> CheckedRecords:
    errors: list[RecordError] = []
    bad_timestamps = False
    max_timestamp = NO_TIMESTAMP
    consecutive = True
    for index, record in enumerate(records):
        if checks.compacted and record.key is None:
            errors.append(RecordError(index, "a compacted topic cannot take a record without a key"))
        elif (message := _timestamp_fault(header, record.timestamp, checks)) is not None:
            errors.append(RecordError(index, message))
            bad_timestamps = True
        max_timestamp = max(max_timestamp, record.timestamp)
        consecutive = consecutive and record.offset - header.base_offset == index
    if errors:
        code = ErrorCode.INVALID_TIMESTAMP if bad_timestamps else ErrorCode.INVALID_RECORD
        raise InvalidRecordsError(code, tuple(errors))
    return CheckedRecords(max_timestamp, consecutive)


def _timestamp_fault(header: BatchHeader, timestamp: int, checks: RecordChecks) -> str | None:
    if checks.timestamp_type == TimestampType.CREATE_TIME and timestamp != NO_TIMESTAMP:
        earliest = checks.now_ms - checks.timestamp_before_max_ms
        latest = checks.now_ms + checks.timestamp_after_max_ms
        if not earliest <= timestamp <= latest:
            return f"timestamp {timestamp} is not within [{earliest}, {latest}]"
    elif header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        return "a producer may not set the timestamp type to LogAppendTime"
    return None


def recompress(
    batch: Buffer,
    codec: CompressionType,
    level: int | None = None,
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
) -> bytearray:
    """The same batch with its records under another codec. The records are not decoded, so not checked either."""
    header = read_header(batch)
    payload = read_payload(batch, header, max_output_bytes)
    attributes = header.attributes & ~COMPRESSION_MASK | codec
    return assemble(header._replace(attributes=attributes), compress(codec, payload, level))


def convert_for_append(
    batch: Buffer,
    checks: RecordChecks,
    target: CompressionType | None = None,
    level: int | None = None,
    max_output_bytes: int = DEFAULT_MAX_OUTPUT_BYTES,
) -> bytearray | None:
    """Checks the records of a client's batch and writes it anew where the topic asks for that.

    `target` None means compression.type=producer. Returns None if the bytes may be appended as they are (with base
    offset, leader epoch and an append time patched in, as for any batch), else the batch to append in their place.
    """
    header = read_header(batch)
    payload = read_payload(batch, header, max_output_bytes)
    checked = _check_each(header, decode_records(header, payload), checks)
    source = compression_type(header.compression)
    codec = source if target is None or (header.is_control and source is CompressionType.NONE) else target
    create_time = checks.timestamp_type == TimestampType.CREATE_TIME
    if not checked.consecutive:
        return _renumber(header, payload, codec, level)
    if codec is not source:
        attributes = header.attributes & ~COMPRESSION_MASK | codec
        max_timestamp = checked.max_timestamp if create_time else header.max_timestamp
        replaced = header._replace(attributes=attributes, max_timestamp=max_timestamp)
        return assemble(replaced, compress(codec, payload, level))
    if create_time and header.max_timestamp != checked.max_timestamp:
        # A wrong max timestamp would send look-ups by time astray, so it is put right as Kafka does.
        corrected = bytearray(memoryview(batch)[: header.size_in_bytes])
        set_max_timestamp(corrected, 0, TimestampType.CREATE_TIME, checked.max_timestamp)
        return corrected
    return None


def _renumber(header: BatchHeader, payload: bytes, codec: CompressionType, level: int | None) -> bytearray:
    builder = BatchBuilder(
        codec,
        level,
        base_offset=header.base_offset,
        producer_id=header.producer_id,
        producer_epoch=header.producer_epoch,
        base_sequence=header.base_sequence,
        transactional=header.is_transactional,
        control=header.is_control,
        leader_epoch=header.partition_leader_epoch,
    )
    for record in decode_records(header, payload):
        builder.append(record.timestamp, record.key, record.value, record.headers)
    return builder.build()
