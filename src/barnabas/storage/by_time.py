"""Finding a record by its timestamp in one batch.

`Log.batch_for_timestamp` finds the batch, on the event loop; what is here needs nothing but its bytes, works without
the GIL and may be called in a thread.
"""

from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.conversion import stored_payload
from barnabas.records.header import BatchHeader, TimestampType
from barnabas.records.record_walk import find_by_time
from barnabas.records.walk_result import INT64_MIN


class TimestampOffset(NamedTuple):
    timestamp: int
    offset: int
    leader_epoch: int


class BatchByTime(NamedTuple):
    header: BatchHeader
    data: bytes
    log_start_offset: int
    """When the batch was read; records below it are gone."""


def first_at_or_after(batch: BatchByTime, timestamp: int, on_loop: bool = False) -> TimestampOffset | None:
    """Raises TakesLongerError, only `on_loop`, and KafkaError (CORRUPT_MESSAGE) for a damaged batch."""
    header, data, log_start_offset = batch
    payload = stored_payload(data, header, on_loop)
    append_time = header.timestamp_type == TimestampType.LOG_APPEND_TIME
    if append_time and header.max_timestamp < timestamp:
        return None
    # With LogAppendTime all records have the same timestamp: the first one is the result.
    wanted = INT64_MIN if append_time else timestamp
    first_delta = max(0, log_start_offset - header.base_offset)
    try:
        found = find_by_time(payload, header.record_count, header.base_timestamp, wanted, first_delta)
    except ValueError as error:
        raise KafkaError(ErrorCode.CORRUPT_MESSAGE, f"the batch at {header.base_offset}: {error}") from None
    if found is None:
        return None
    return TimestampOffset(
        header.max_timestamp if append_time else found[0], header.base_offset + found[1], header.partition_leader_epoch
    )
