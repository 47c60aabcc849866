"""Checks each record of a producer's batch, and rewrites the batch where the topic requires another form.

`storage` calls this on append for all batches but those that `plain_batch` has walked through: compressed ones, and
those of topics that are compacted or have a compression.type or timestamps of their own. Kafka's LogValidator is the
reference; differences: the batch that was given is never changed, the check of offsets is the same for compressed and
plain batches, the output of decompression is limited, and a record whose bytes are wrong is named in record_errors.

It can take long. Whoever calls on the event loop says so (`on_loop`) and gets TakesLongerError, before much has been
done, for what would hold up the loop for a millisecond or more; it then calls again in a thread. The work is done
without the GIL.
"""

from typing import Final, NamedTuple, NoReturn

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import assemble
from barnabas.records.compression import (
    DEFAULT_MAX_OUTPUT_BYTES,
    CompressionType,
    OutputLimitError,
    compress,
    compression_type,
    is_quick_to_decompress,
    max_output_for,
)
from barnabas.records.header import (
    COMPRESSION_MASK,
    HEADER_SIZE,
    BatchHeader,
    Buffer,
    TimestampType,
    read_header,
    set_max_timestamp,
)
from barnabas.records.reader import payload_view
from barnabas.records.record_walk import renumber, walk_records
from barnabas.records.walk_result import (
    FAULT_TEXTS,
    INT64_MAX,
    INT64_MIN,
    NO_FAULT,
    SMALLEST_RECORD,
    RecordsWalk,
)

_SHOWN_ERRORS: Final = 3


LOOP_COMPRESSED_BYTES: Final = 64 * 1024
LOOP_OUTPUT_BYTES: Final = 256 * 1024
LOOP_RECOMPRESSED_BYTES: Final = 16 * 1024
"""What is decompressed and compressed on the event loop at most; measured to take well under a millisecond."""


class TakesLongerError(Exception):
    """The work would block the event loop. Nothing has changed; it must be done in a thread."""


class RecordError(NamedTuple):
    """One entry of record_errors in a produce response."""

    batch_index: int
    message: str


class InvalidRecordsError(KafkaError):
    """Some records of a batch were rejected, and so the whole batch; lists which ones."""

    def __init__(self, code: ErrorCode, record_errors: tuple[RecordError, ...], count: int = 1) -> None:
        """`count` of all rejected records; the first of them are named."""
        shown = "; ".join(f"record {index}: {message}" for index, message in record_errors[:_SHOWN_ERRORS])
        super().__init__(code, f"{count} record{'' if count == 1 else 's'} rejected: {shown}")
        self.record_errors = record_errors


class RecordChecks(NamedTuple):
    """What a topic requires of each record."""

    compacted: bool = False
    timestamp_type: TimestampType = TimestampType.CREATE_TIME
    now_ms: int = 0
    timestamp_before_max_ms: int = (1 << 63) - 1
    timestamp_after_max_ms: int = (1 << 63) - 1


class CheckedRecords(NamedTuple):
    max_timestamp: int
    consecutive: bool
    """Whether the offsets are 0, 1, 2 from the base offset. Some clients get it wrong; then they are rewritten."""


def check_batch_header(header: BatchHeader) -> None:
    """The form of a client's batch, checked before its records."""
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


def check_records(batch: Buffer, checks: RecordChecks, on_loop: bool = False) -> CheckedRecords:
    """Proves count, sizes and structure; raises InvalidRecordsError for what is wrong, with the records' numbers."""
    header = read_header(batch)
    return _check_payload(header, open_payload(batch, header, on_loop), checks)


def open_payload(batch: Buffer, header: BatchHeader, on_loop: bool = False) -> Buffer:
    """The records of a producer's batch, decompressed within the limits for clients."""
    block_bytes = header.size_in_bytes - HEADER_SIZE
    codec = compression_type(header.compression)
    if codec is CompressionType.NONE:
        return payload_view(batch, header)
    limit = max_output_for(block_bytes)
    if header.record_count > limit // SMALLEST_RECORD:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"{header.record_count} records cannot be in {block_bytes} bytes")
    return _payload_within(batch, header, limit, on_loop)


def stored_payload(batch: Buffer, header: BatchHeader, on_loop: bool = False) -> Buffer:
    """The same for a batch in the log, which may come from a broker that has other limits."""
    if not header.compression:
        return payload_view(batch, header)
    return _payload_within(batch, header, DEFAULT_MAX_OUTPUT_BYTES, on_loop)


def _payload_within(batch: Buffer, header: BatchHeader, limit: int, on_loop: bool) -> Buffer:
    if not on_loop:
        return payload_view(batch, header, limit)
    block = memoryview(batch)[HEADER_SIZE : header.size_in_bytes]
    if (
        len(block) > LOOP_COMPRESSED_BYTES
        or header.record_count > LOOP_OUTPUT_BYTES // SMALLEST_RECORD
        or not is_quick_to_decompress(compression_type(header.compression), block)
    ):
        raise TakesLongerError
    try:
        return payload_view(batch, header, min(limit, LOOP_OUTPUT_BYTES))
    except OutputLimitError:
        raise TakesLongerError from None


def _check_payload(header: BatchHeader, payload: Buffer, checks: RecordChecks) -> CheckedRecords:
    if checks.timestamp_type == TimestampType.CREATE_TIME:
        earliest = max(checks.now_ms - checks.timestamp_before_max_ms, INT64_MIN)
        latest = min(checks.now_ms + checks.timestamp_after_max_ms, INT64_MAX)
    else:
        earliest, latest = INT64_MIN, INT64_MAX
    walk = walk_records(payload, header.record_count, header.base_timestamp, checks.compacted, earliest, latest)
    if walk.fault != NO_FAULT:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, (RecordError(walk.record_index, FAULT_TEXTS[walk.fault]),))
    if header.timestamp_type == TimestampType.LOG_APPEND_TIME:
        fault = RecordError(0, "a producer may not set the timestamp type to LogAppendTime")
        raise InvalidRecordsError(ErrorCode.INVALID_TIMESTAMP, (fault,), header.record_count)
    if walk.refused_count:
        _refuse(walk, earliest, latest)
    return CheckedRecords(walk.max_timestamp, walk.consecutive)


def _refuse(walk: RecordsWalk, earliest: int, latest: int) -> NoReturn:
    bad_timestamps = any(timestamp is not None for _, timestamp in walk.refused)
    errors = tuple(
        RecordError(
            index,
            "a compacted topic cannot take a record without a key"
            if timestamp is None
            else f"timestamp {timestamp} is not within [{earliest}, {latest}]",
        )
        for index, timestamp in walk.refused
    )
    code = ErrorCode.INVALID_TIMESTAMP if bad_timestamps else ErrorCode.INVALID_RECORD
    raise InvalidRecordsError(code, errors, walk.refused_count)


def convert_for_append(
    batch: Buffer,
    checks: RecordChecks,
    target: CompressionType | None = None,
    level: int | None = None,
    on_loop: bool = False,
) -> bytearray | None:
    """Checks the records of a client's batch and rewrites it where the topic requires that.

    `target` None means compression.type=producer. Returns None if the bytes may be appended as they are (with base
    offset, leader epoch and an append time patched in, as for any batch), else the batch to append in their place.
    """
    header = read_header(batch)
    payload = open_payload(batch, header, on_loop)
    checked = _check_payload(header, payload, checks)
    source = compression_type(header.compression)
    codec = source if target is None or (header.is_control and source is CompressionType.NONE) else target
    create_time = checks.timestamp_type == TimestampType.CREATE_TIME
    if codec is not source or not checked.consecutive:
        if on_loop and len(payload) > LOOP_RECOMPRESSED_BYTES:
            raise TakesLongerError
        return _rewrite(header, payload, codec, level, checked, create_time)
    if create_time and header.max_timestamp != checked.max_timestamp:
        # A wrong max timestamp would break look-ups by time, so it is corrected, as in Kafka.
        corrected = bytearray(memoryview(batch)[: header.size_in_bytes])
        set_max_timestamp(corrected, 0, TimestampType.CREATE_TIME, checked.max_timestamp)
        return corrected
    return None


def _rewrite(
    header: BatchHeader,
    payload: Buffer,
    codec: CompressionType,
    level: int | None,
    checked: CheckedRecords,
    create_time: bool,
) -> bytearray:
    if not checked.consecutive:
        payload = renumber(payload, header.record_count)
    replaced = header._replace(
        attributes=header.attributes & ~COMPRESSION_MASK | codec,
        max_timestamp=checked.max_timestamp if create_time else header.max_timestamp,
        last_offset_delta=header.record_count - 1,
    )
    return assemble(replaced, compress(codec, payload, level))
