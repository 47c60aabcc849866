"""Batches and logs for the tests of storage."""

import os
from pathlib import Path

from barnabas.config.topic import TopicConfig
from barnabas.records.builder import BatchBuilder
from barnabas.records.control import ControlType, EndTxnMarker, build_end_marker
from barnabas.records.header import BatchHeader, iter_headers
from barnabas.storage.by_time import TimestampOffset, first_at_or_after
from barnabas.storage.deletion_queue import DeletionQueue
from barnabas.storage.files import Files
from barnabas.storage.log import AppendInfo, AppendOrigin, Log
from barnabas.storage.recovery import LogCheckpoints, open_log
from barnabas.types import TopicPartition

PARTITION = TopicPartition("orders", 0)
NOW = 1_700_000_000_000


def make_batch(
    count: int = 1,
    *,
    size: int = 10,
    timestamp: int = NOW,
    key: bytes | None = b"k",
    producer_id: int = -1,
    epoch: int = -1,
    sequence: int = -1,
    transactional: bool = False,
) -> memoryview:
    builder = BatchBuilder(
        producer_id=producer_id, producer_epoch=epoch, base_sequence=sequence, transactional=transactional
    )
    for number in range(count):
        builder.append(timestamp + number, key, bytes([65 + number % 26]) * size)
    return memoryview(builder.build())


def make_marker(*, abort: bool, producer_id: int, epoch: int = 0, coordinator_epoch: int = 0) -> memoryview:
    kind = ControlType.ABORT if abort else ControlType.COMMIT
    return memoryview(build_end_marker(EndTxnMarker(kind, coordinator_epoch), producer_id, epoch, NOW))


def small_config(**settings: object) -> TopicConfig:
    values: dict[str, object] = {"segment_bytes": 1000, "index_interval_bytes": 150}
    return TopicConfig(**{**values, **settings})  # type: ignore[arg-type]


def open_test_log(
    folder: Path | str,
    config: TopicConfig | None = None,
    *,
    files: Files | None = None,
    clean: bool = False,
    checkpoints: LogCheckpoints = LogCheckpoints(),  # noqa: B008
    now_ms: int = NOW,
) -> Log:
    """The log in `folder`, made if there is none."""
    layer = Files() if files is None else files
    os.makedirs(folder, exist_ok=True)
    log = Log(layer, str(folder), PARTITION, small_config() if config is None else config, DeletionQueue(layer))
    open_log(log, checkpoints, clean=clean, now_ms=now_ms)
    return log


def append(log: Log, batch: memoryview, *, epoch: int = 0, now_ms: int = NOW, commit: bool = True) -> AppendInfo:
    info = log.append_as_leader(batch, epoch, now_ms)
    if commit:
        log.update_high_watermark(log.log_end_offset)
    return info


def append_marker(log: Log, batch: memoryview, *, epoch: int = 0, now_ms: int = NOW) -> AppendInfo:
    info = log.append_as_leader(batch, epoch, now_ms, AppendOrigin.COORDINATOR)
    log.update_high_watermark(log.log_end_offset)
    return info


def read_all(log: Log, offset: int | None = None, max_bytes: int = 1 << 20) -> list[BatchHeader]:
    """Headers of all batches from an offset, fetched as a consumer does."""
    position = log.log_start_offset if offset is None else offset
    headers: list[BatchHeader] = []
    while position < log.log_end_offset:
        data = log.read(position, max_bytes, log.log_end_offset, True)
        assert data.slice is not None, position
        some = [header for _, header in iter_headers(data.slice.read())]
        assert some and some[-1].next_offset <= data.next_offset
        assert sum(header.size_in_bytes for header in some) == data.slice.length
        headers += some
        position = data.next_offset
    return headers


def log_bytes(log: Log) -> bytes:
    return b"".join(segment.file.pread(segment.size, 0) for segment in log.segments)


def offset_for_timestamp(log: Log, timestamp: int) -> TimestampOffset | None:
    """The first record with that timestamp or a later one, found as ListOffsets does."""
    after = -1
    while (batch := log.batch_for_timestamp(timestamp, after)) is not None:
        found = first_at_or_after(batch, timestamp)
        if found is not None:
            return found
        after = batch.header.last_offset
    return None


def max_timestamp_offset(log: Log) -> TimestampOffset | None:
    """The first record that has the highest timestamp of the log."""
    newest = log.max_timestamp()
    return None if newest is None else offset_for_timestamp(log, newest)
