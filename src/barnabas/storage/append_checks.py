"""What a leader checks in a batch before it is written, and how it is converted to the topic's settings.

`LogAppender.append_as_leader` calls this for what `plain_batch` has not handled. The records of every batch are
checked: there, or here with barnabas.records.conversion. That can take longer than the event loop may be blocked;
`prepare` does all of it in a thread.
"""

from typing import NamedTuple

from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.compression import CompressionType
from barnabas.records.conversion import RecordChecks, TakesLongerError, check_batch_header, convert_for_append
from barnabas.records.due_time import check_due_times
from barnabas.records.header import (
    COMPRESSION_MASK,
    CONTROL_MASK,
    CURRENT_MAGIC,
    TIMESTAMP_TYPE_MASK,
    BatchHeader,
    TimestampType,
    crc_matches,
    read_header,
    set_max_timestamp,
)
from barnabas.storage.producer_state import AppendOrigin
from barnabas.types import NO_TIMESTAMP

INT64_MAX = (1 << 63) - 1
LOOP_DUE_RECORDS = 500
"""So many records of an intake of delayed messages are looked into on the event loop; more in a thread."""


class PreparedBatch(NamedTuple):
    """A client's batch, checked and converted for the topic: everything that does not depend on the log's state."""

    data: memoryview
    header: BatchHeader
    append_time_ms: int


def prepare(data: memoryview, config: TopicConfig, now_ms: int) -> PreparedBatch:
    """For threads, and for batches that raised TakesLongerError. Raises KafkaError with the code for the response."""
    header = read_header(data)
    check_batch(data, header, config, AppendOrigin.CLIENT)
    return convert(data, header, config, now_ms, on_loop=False)


def needs_record_checks(config: TopicConfig) -> bool:
    """Whether the records of this topic need more checks than that they are whole."""
    return (
        config.compression_type != "producer"
        or config.message_timestamp_type != "CreateTime"
        or "compact" in config.cleanup_policy
        or config.message_timestamp_before_max_ms != INT64_MAX
        or config.delay_target_topic is not None
    )


def check_batch(data: memoryview, header: BatchHeader, config: TopicConfig, origin: AppendOrigin) -> None:
    """Format, size, CRC and the fields that contradict each other, in Kafka's order."""
    magic = header.magic
    if magic != CURRENT_MAGIC:
        if magic in (0, 1):
            raise KafkaError(ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, f"message format {magic} is not taken")
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"there is no magic {magic}")
    size = header.batch_length + 12
    is_client = origin is AppendOrigin.CLIENT
    if size != len(data):
        _raise_wrong_length(size, len(data))
    if is_client and header.base_offset != 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a producer's batch has base offset 0, not {header.base_offset}")
    if size > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE, f"{size} bytes exceed the topic's max.message.bytes {config.max_message_bytes}"
        )
    if not crc_matches(data, 0, header):
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, "the batch does not match its CRC")
    if size > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE, f"{size} bytes exceed the topic's segment.bytes {config.segment_bytes}"
        )
    if is_client and (
        header.last_offset_delta + 1 != header.record_count
        or header.record_count <= 0
        or header.attributes & CONTROL_MASK
        or header.attributes & COMPRESSION_MASK > CompressionType.ZSTD
        or (header.producer_id >= 0 and header.base_sequence < 0)
    ):
        check_batch_header(header)


def _raise_wrong_length(size: int, available: int) -> None:
    if 12 < size < available:
        raise KafkaError(ErrorCode.INVALID_RECORD, "a partition takes one batch per request, this has more")
    raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"a batch of {size} bytes in {available} bytes")


def check_timestamps(header: BatchHeader, config: TopicConfig, now_ms: int) -> None:
    """By the header alone: the highest timestamp against message.timestamp.after.max.ms."""
    if header.attributes & TIMESTAMP_TYPE_MASK:
        raise KafkaError(ErrorCode.INVALID_TIMESTAMP, "a producer may not set the timestamp type to LogAppendTime")
    latest = now_ms + config.message_timestamp_after_max_ms
    if header.max_timestamp > latest:
        raise KafkaError(
            ErrorCode.INVALID_TIMESTAMP, f"timestamp {header.max_timestamp} is after {latest}, the latest accepted"
        )


def convert(
    data: memoryview, header: BatchHeader, config: TopicConfig, now_ms: int, on_loop: bool = True
) -> PreparedBatch:
    """Checks the records and converts the batch to what the topic requires. Raises TakesLongerError only `on_loop`."""
    log_append_time = config.message_timestamp_type == "LogAppendTime"
    checks = RecordChecks(
        compacted="compact" in config.cleanup_policy,
        timestamp_type=TimestampType.LOG_APPEND_TIME if log_append_time else TimestampType.CREATE_TIME,
        now_ms=now_ms,
        timestamp_before_max_ms=config.message_timestamp_before_max_ms,
        timestamp_after_max_ms=config.message_timestamp_after_max_ms,
    )
    converted = convert_for_append(data, checks, *target_codec(config), on_loop)
    if config.delay_target_topic is not None:
        if on_loop and header.record_count > LOOP_DUE_RECORDS:
            raise TakesLongerError
        check_due_times(data, now_ms, config.delay_max_ms, log_append_time)
    if converted is not None:
        data = _checked_size(memoryview(converted), config)
    if not log_append_time:
        return PreparedBatch(data, header if converted is None else read_header(data), NO_TIMESTAMP)
    set_max_timestamp(data, 0, TimestampType.LOG_APPEND_TIME, now_ms)
    return PreparedBatch(data, read_header(data), now_ms)


def _checked_size(data: memoryview, config: TopicConfig) -> memoryview:
    """Another codec may have made the batch larger than the topic allows."""
    if len(data) > config.max_message_bytes:
        raise KafkaError(
            ErrorCode.MESSAGE_TOO_LARGE,
            f"{len(data)} bytes after recompression exceed the topic's max.message.bytes {config.max_message_bytes}",
        )
    if len(data) > config.segment_bytes:
        raise KafkaError(
            ErrorCode.RECORD_LIST_TOO_LARGE,
            f"{len(data)} bytes after recompression exceed the topic's segment.bytes {config.segment_bytes}",
        )
    return data


def target_codec(config: TopicConfig) -> tuple[CompressionType | None, int | None]:
    """The codec and level of compression.type; None keeps the producer's."""
    match config.compression_type:
        case "producer":
            return None, None
        case "gzip":
            return CompressionType.GZIP, config.compression_gzip_level
        case "lz4":
            return CompressionType.LZ4, config.compression_lz4_level
        case "zstd":
            return CompressionType.ZSTD, config.compression_zstd_level
        case "snappy":
            return CompressionType.SNAPPY, None
        case _:
            return CompressionType.NONE, None
