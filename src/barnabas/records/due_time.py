"""When a record of an intake of delayed messages is due: its headers, and the check before it is acknowledged.

    deliver-at     milliseconds since 1970, as text or as a big-endian int64
    deliver-after  from the record's timestamp on: milliseconds (text or int64), or with a unit: 250ms 30s 5m 2h 1d
    schedule-id    a later record with the same id replaces this one; one with a null value cancels it
    cancel-offset  with a null value: the record at this offset of the same partition is not delivered, nor is this one

Without the first two a record is due at once. Text is tried first: eight digits are no int64 that makes sense.
"""

import re
from typing import Final

from barnabas.errors import ErrorCode
from barnabas.records.conversion import InvalidRecordsError, RecordError
from barnabas.records.header import Buffer
from barnabas.records.reader import iter_records
from barnabas.records.record import Record

DELIVER_AT: Final = "deliver-at"
DELIVER_AFTER: Final = "deliver-after"
SCHEDULE_ID: Final = "schedule-id"
CANCEL_OFFSET: Final = "cancel-offset"
AT_ONCE: Final = 0
"""Due before anything else: of a record without a due time."""

_LATEST_MS: Final = (1 << 63) - 1
"""Kept as 64 bits (machines/delayed/pending)."""
_UNITS: Final = {"ms": 1, "s": 1000, "m": 60_000, "h": 3_600_000, "d": 86_400_000}
_NUMBER: Final = re.compile(rb"[0-9]{1,18}")
_DELAY: Final = re.compile(rb"([0-9]{1,15})(ms|s|m|h|d)?")
_ALLOWED: Final = {
    DELIVER_AT: "milliseconds since 1970",
    DELIVER_AFTER: "milliseconds, or a number with ms, s, m, h or d",
    CANCEL_OFFSET: "the offset of a record in the same partition",
}
_MOST_ERRORS: Final = 100


def due_time(record: Record) -> int:
    """Milliseconds since 1970, or AT_ONCE. Raises ValueError with what is wrong with the headers."""
    at = after = None
    for name, value in record.headers:
        if name == DELIVER_AT:
            at = value or b""
        elif name == DELIVER_AFTER:
            after = value or b""
    if at is not None:
        if after is not None:
            raise ValueError("has both deliver-at and deliver-after")
        return _number(at, DELIVER_AT)
    if after is None:
        return AT_ONCE
    if record.timestamp < 0:
        raise ValueError("deliver-after needs a timestamp to count from")
    due_ms = record.timestamp + delay_ms(after)
    if due_ms > _LATEST_MS:
        raise ValueError(f"is due at {due_ms}, which no clock will ever show")
    return due_ms


def schedule_id(record: Record) -> bytes | None:
    for name, value in record.headers:
        if name == SCHEDULE_ID:
            return value or b""
    return None


def cancelled_offset(record: Record) -> int | None:
    """The offset that the record cancels. Raises ValueError if it names none, or has a value that would be lost."""
    for name, value in record.headers:
        if name == CANCEL_OFFSET:
            if record.value is not None:
                raise ValueError("cancel-offset needs a null value")
            return _number(value or b"", CANCEL_OFFSET)
    return None


def delay_ms(value: bytes) -> int:
    """A delay as in `deliver-after`."""
    match = _DELAY.fullmatch(value)
    if match is None:
        return _number(value, DELIVER_AFTER)
    return int(match[1]) * _UNITS[(match[2] or b"ms").decode()]


def text_delay_ms(text: str) -> int:
    """A delay as people write it. Raises ValueError."""
    match = _DELAY.fullmatch(text.encode())
    if match is None:
        raise ValueError(f"a delay is {text!r}: give milliseconds, or a number with ms, s, m, h or d")
    return int(match[1]) * _UNITS[(match[2] or b"ms").decode()]


def _number(value: bytes, name: str) -> int:
    if _NUMBER.fullmatch(value):
        return int(value)
    if len(value) == 8 and value[0] < 0x80:
        return int.from_bytes(value, "big")
    shown = value[:40].decode("utf-8", "backslashreplace")
    raise ValueError(f"{name} is {shown!r}: give {_ALLOWED[name]}")


def check_due_times(batch: Buffer, now_ms: int, max_delay_ms: int, log_append_time: bool) -> None:
    """Raises InvalidRecordsError (INVALID_RECORD) that names each record with a due time that cannot be taken."""
    errors: list[RecordError] = []
    count = 0
    for index, record in enumerate(iter_records(batch)):
        if not record.headers:
            continue
        try:
            due_ms = due_time(record._replace(timestamp=now_ms) if log_append_time else record)
            cancelled_offset(record)
            if due_ms > now_ms + max_delay_ms:
                raise ValueError(f"is due in {due_ms - now_ms} ms, later than delay.max.ms ({max_delay_ms}) allows")
        except ValueError as fault:
            count += 1
            if len(errors) < _MOST_ERRORS:
                errors.append(RecordError(index, str(fault)))
    if errors:
        raise InvalidRecordsError(ErrorCode.INVALID_RECORD, tuple(errors), count)
