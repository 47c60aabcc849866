"""The lines of Kafka's dump tool: scripts parse them, so they are the same to the letter."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from barnabas.cli.dump import files
from barnabas.cli.dump.decoders import Decoder
from barnabas.cli.dump.files import Batch, Row
from barnabas.cli.dump.quorum import control_words
from barnabas.records import Record, TimestampType
from barnabas.records.compression import compression_type
from barnabas.records.control import control_type, read_marker
from barnabas.storage.producer_snapshot import decode_snapshot
from barnabas.storage.transaction_index import ENTRY as TRANSACTION_ENTRY

_SEQUENCES: Final = 1 << 31
_NO_SEQUENCE: Final = -1


class TextForm:
    """The form of a segment that Kafka's command prints."""

    def __init__(self, decoder: Decoder | None, skip_metadata: bool) -> None:
        self._decoder = decoder
        self._skip_metadata = skip_metadata

    def title(self, path: Path) -> Iterator[str]:
        yield _title(path)

    def batch(self, path: Path, batch: Batch) -> str:
        return batch_line(batch)

    def record(self, batch: Batch, record: Record) -> str:
        return record_line(batch, record, self._decoder, self._skip_metadata)

    def damage(self, path: Path, batch: Batch, reason: str) -> Iterator[str]:
        return iter(())

    def invalid_tail(self, path: Path, position: int, count: int) -> str:
        return f"Found {count} invalid bytes at the end of {path.name}"


def _title(path: Path) -> str:
    if path.suffix == ".log":
        return f"Log starting offset: {files.base_offset_of(path)}"
    if path.name == "bootstrap.checkpoint":
        return "KRaft bootstrap snapshot"
    offset, _, epoch = path.stem.partition("-")
    return f"Snapshot end offset: {int(offset)}, epoch: {int(epoch)}"


def batch_line(batch: Batch) -> str:
    header = batch.header
    return (
        f"baseOffset: {header.base_offset} lastOffset: {header.last_offset} count: {header.record_count} "
        f"baseSequence: {header.base_sequence} lastSequence: {sequence(batch, header.last_offset_delta)} "
        f"producerId: {header.producer_id} producerEpoch: {header.producer_epoch} "
        f"partitionLeaderEpoch: {header.partition_leader_epoch} isTransactional: {_word(header.is_transactional)} "
        f"isControl: {_word(header.is_control)} deleteHorizonMs: {_optional(header.delete_horizon_ms)} "
        f"position: {batch.position} {timestamp_name(batch)}: {header.max_timestamp} size: {header.size_in_bytes} "
        f"magic: {header.magic} compresscodec: {compression_type(header.compression).name.lower()} crc: {header.crc} "
        f"isvalid: {_word(batch.is_valid)}"
    )


def record_line(batch: Batch, record: Record, decoder: Decoder | None, skip_metadata: bool) -> str:
    line = "" if skip_metadata else f"| {_record_metadata(batch, record)}"
    if decoder is None or batch.header.is_control:
        return line
    key, payload = decoder(record)
    if key is not None:
        line += f" key: {key}" if line else f"| key: {key}"
    return line if payload is None else f"{line} payload: {payload}"


def _record_metadata(batch: Batch, record: Record) -> str:
    keys = ",".join(key for key, _ in record.headers)
    line = (
        f"offset: {record.offset} {timestamp_name(batch)}: {record.timestamp} keySize: {_size(record.key)} "
        f"valueSize: {_size(record.value)} sequence: {sequence(batch, record.offset - batch.header.base_offset)} "
        f"headerKeys: [{keys}]"
    )
    if not batch.header.is_control:
        return line
    marker = read_marker(record)
    if marker is not None:
        return f"{line} endTxnMarker: {marker.control_type.name} coordinatorEpoch: {marker.coordinator_epoch}"
    return f"{line} {control_words(control_type(record.key), record)}"


def sequence(batch: Batch, delta: int) -> int:
    """Sequences start again at 0 after the largest number."""
    first = batch.header.base_sequence
    return _NO_SEQUENCE if first == _NO_SEQUENCE else (first + delta) % _SEQUENCES


def timestamp_name(batch: Batch) -> str:
    return "LogAppendTime" if batch.header.timestamp_type is TimestampType.LOG_APPEND_TIME else "CreateTime"


def transaction_index_rows(path: Path) -> Iterator[Row]:
    content = path.read_bytes()
    whole = len(content) // TRANSACTION_ENTRY.size * TRANSACTION_ENTRY.size
    for version, producer_id, first, last, stable in TRANSACTION_ENTRY.iter_unpack(content[:whole]):
        line = (
            f"version: {version} producerId: {producer_id} firstOffset: {first} lastOffset: {last} "
            f"lastStableOffset: {stable}"
        )
        ends = {"first_offset": first, "last_offset": last, "last_stable_offset": stable}
        yield Row(line, {"version": version, "producer_id": producer_id, **ends})


def producer_snapshot_rows(path: Path) -> Iterator[Row]:
    """Raises CorruptSnapshotError."""
    for entry in decode_snapshot(path.read_bytes()):
        first = None if entry.current_txn_first_offset < 0 else entry.current_txn_first_offset
        line = (
            f"producerId: {entry.producer_id} producerEpoch: {entry.epoch} coordinatorEpoch: {entry.coordinator_epoch} "
            f"currentTxnFirstOffset: {_optional(first)} lastTimestamp: {entry.last_timestamp} "
        )
        fields = {
            "producer_id": entry.producer_id,
            "producer_epoch": entry.epoch,
            "coordinator_epoch": entry.coordinator_epoch,
            "current_txn_first_offset": first,
            "last_timestamp": entry.last_timestamp,
        }
        if entry.batches:
            batch = entry.batches[0]
            line += (
                f"firstSequence: {batch.first_sequence} lastSequence: {batch.last_sequence} "
                f"lastOffset: {batch.last_offset} offsetDelta: {batch.offset_delta} timestamp: {batch.timestamp}"
            )
            fields |= {
                "first_sequence": batch.first_sequence,
                "last_sequence": batch.last_sequence,
                "last_offset": batch.last_offset,
                "offset_delta": batch.offset_delta,
                "timestamp": batch.timestamp,
            }
        yield Row(line, fields)


def _size(content: bytes | None) -> int:
    return -1 if content is None else len(content)


def _word(truth: bool) -> str:
    return "true" if truth else "false"


def _optional(value: int | None) -> str:
    return "OptionalLong.empty" if value is None else f"OptionalLong[{value}]"
