"""The .snapshot file: producer state as it was at the offset in the file's name.

    int16 version (1) · uint32 CRC32C of all that follows · int32 count, then for each producer:
    int64 producer id · int16 epoch · int32 last sequence · int64 last offset · int32 offset delta of the last batch
    int64 timestamp · int32 coordinator epoch · int64 first offset of the open transaction or -1

A damaged file costs time, not data: the caller drops it, takes an older one and replays the log from there.
"""

import struct
from collections.abc import Collection
from typing import Final

from crc32c import crc32c

from barnabas.storage.producer_state import BatchMetadata, ProducerEntry
from barnabas.types import NO_SEQUENCE

VERSION: Final = 1
_HEAD: Final = struct.Struct(">hI")
_COUNT: Final = struct.Struct(">i")
_ENTRY: Final = struct.Struct(">qhiqiqiq")


class CorruptSnapshotError(Exception):
    """The bytes are not a snapshot of version 1."""


def encode_snapshot(entries: Collection[ProducerEntry]) -> bytes:
    parts = [_COUNT.pack(len(entries))]
    for entry in entries:
        last = entry.batches[-1] if entry.batches else BatchMetadata(NO_SEQUENCE, -1, 0, entry.last_timestamp)
        parts.append(
            _ENTRY.pack(
                entry.producer_id,
                entry.epoch,
                last.last_sequence,
                last.last_offset,
                last.offset_delta,
                entry.last_timestamp,
                entry.coordinator_epoch,
                entry.current_txn_first_offset,
            )
        )
    body = b"".join(parts)
    return _HEAD.pack(VERSION, crc32c(body)) + body


def decode_snapshot(data: bytes) -> list[ProducerEntry]:
    if len(data) < _HEAD.size + _COUNT.size:
        raise CorruptSnapshotError(f"{len(data)} bytes are too few")
    version, crc = _HEAD.unpack_from(data)
    body = data[_HEAD.size :]
    if version != VERSION:
        raise CorruptSnapshotError(f"version {version} is not known")
    if crc32c(body) != crc:
        raise CorruptSnapshotError("the CRC does not match")
    (count,) = _COUNT.unpack_from(body)
    if len(body) != _COUNT.size + count * _ENTRY.size:
        raise CorruptSnapshotError(f"{len(body)} bytes do not hold {count} producers")
    return [_decode_entry(*fields) for fields in _ENTRY.iter_unpack(body[_COUNT.size :])]


def _decode_entry(
    producer_id: int,
    epoch: int,
    last_sequence: int,
    last_offset: int,
    offset_delta: int,
    timestamp: int,
    coordinator_epoch: int,
    current_txn_first_offset: int,
) -> ProducerEntry:
    entry = ProducerEntry(producer_id, epoch)
    entry.coordinator_epoch = coordinator_epoch
    entry.last_timestamp = timestamp
    entry.current_txn_first_offset = current_txn_first_offset
    if last_offset >= 0:
        entry.batches.append(BatchMetadata(last_sequence, last_offset, offset_delta, timestamp))
    return entry
