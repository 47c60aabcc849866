"""Fetch responses for tests of the readers: batches glued together, and what a consumer must see of them."""

from collections.abc import Sequence
from typing import Any

from barnabas.records import (
    BatchBuilder,
    CompressionType,
    ControlType,
    EndTxnMarker,
    build_end_marker,
    set_max_timestamp,
)
from barnabas.records.header import TimestampType

Record = tuple[int, bytes | None, bytes | None, tuple[tuple[str, bytes | None], ...]]


def batch(
    base_offset: int,
    records: Sequence[Record],
    *,
    codec: CompressionType = CompressionType.NONE,
    producer_id: int = -1,
    transactional: bool = False,
    offsets: Sequence[int] | None = None,
    last_offset: int | None = None,
    append_time: int | None = None,
    leader_epoch: int = 3,
) -> bytes:
    builder = BatchBuilder(
        codec,
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=0 if producer_id >= 0 else -1,
        transactional=transactional,
        leader_epoch=leader_epoch,
    )
    for index, record in enumerate(records):
        builder.append(*record, offset=None if offsets is None else offsets[index])
    built = builder.build(last_offset)
    if append_time is not None:
        set_max_timestamp(built, 0, TimestampType.LOG_APPEND_TIME, append_time)
    return bytes(built)


def values(base_offset: int, *contents: bytes, **options: Any) -> bytes:
    """A batch of records that have nothing but a value, one millisecond apart."""
    return batch(base_offset, [(1000 + index, None, value, ()) for index, value in enumerate(contents)], **options)


def marker(base_offset: int, producer_id: int, kind: ControlType) -> bytes:
    return bytes(build_end_marker(EndTxnMarker(kind, 0), producer_id, 0, 1, base_offset=base_offset, leader_epoch=3))
