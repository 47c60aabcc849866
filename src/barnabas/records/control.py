"""Control records: the markers that end a transaction in a partition.

A control batch holds one record that no consumer sees. The transaction coordinator has markers written; the producer
state, the transaction index and the cleaner read them.

    key:   version int16 (0) | type int16 (0 abort, 1 commit, 2 and up: metadata quorum)
    value: version int16 (0) | coordinator epoch int32

Versions above 0 are read as 0: later ones may only add fields.
"""

import struct
from enum import IntEnum
from typing import Final, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.builder import BatchBuilder
from barnabas.records.header import Buffer
from barnabas.records.reader import iter_records
from barnabas.records.record import Record
from barnabas.types import NO_LEADER_EPOCH

_KEY: Final = struct.Struct(">hh")
_VALUE: Final = struct.Struct(">hi")
_VERSION: Final = 0


class ControlType(IntEnum):
    UNKNOWN = -1
    ABORT = 0
    COMMIT = 1
    LEADER_CHANGE = 2
    SNAPSHOT_HEADER = 3
    SNAPSHOT_FOOTER = 4
    KRAFT_VERSION = 5
    KRAFT_VOTERS = 6


class EndTxnMarker(NamedTuple):
    control_type: ControlType
    coordinator_epoch: int


def control_type(key: bytes | None) -> ControlType:
    """The type in the key of a control record; UNKNOWN for those of a later version, which readers skip."""
    if key is None or len(key) < _KEY.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the key of a control record is too short")
    version, code = _KEY.unpack_from(key)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a control record of version {version}")
    return ControlType(code) if 0 <= code <= ControlType.KRAFT_VOTERS else ControlType.UNKNOWN


def read_marker(record: Record) -> EndTxnMarker | None:
    """The marker in a record of a control batch; None if the record controls something else."""
    kind = control_type(record.key)
    if kind not in (ControlType.ABORT, ControlType.COMMIT):
        return None
    if record.value is None or len(record.value) < _VALUE.size:
        raise KafkaError(ErrorCode.INVALID_RECORD, "the value of a transaction marker is too short")
    version, coordinator_epoch = _VALUE.unpack_from(record.value)
    if version < 0:
        raise KafkaError(ErrorCode.INVALID_RECORD, f"a transaction marker of version {version}")
    return EndTxnMarker(kind, coordinator_epoch)


def read_end_marker(batch: Buffer) -> EndTxnMarker | None:
    """The marker of a control batch; None if it has none, or if the cleaner has emptied the batch."""
    for record in iter_records(batch):
        return read_marker(record)
    return None


def is_abort_marker(batch: Buffer) -> bool:
    """Whether a control batch ends a transaction by abort; all that a consumer needs to know of it."""
    for record in iter_records(batch):
        return control_type(record.key) is ControlType.ABORT
    return False


def build_end_marker(
    marker: EndTxnMarker,
    producer_id: int,
    producer_epoch: int,
    timestamp: int,
    *,
    base_offset: int = 0,
    leader_epoch: int = NO_LEADER_EPOCH,
) -> bytearray:
    """The control batch that ends a producer's transaction: one record, no sequence number."""
    if marker.control_type not in (ControlType.ABORT, ControlType.COMMIT):
        raise ValueError(f"{marker.control_type.name} does not end a transaction")
    builder = BatchBuilder(
        base_offset=base_offset,
        producer_id=producer_id,
        producer_epoch=producer_epoch,
        transactional=True,
        control=True,
        leader_epoch=leader_epoch,
    )
    key = _KEY.pack(_VERSION, marker.control_type)
    builder.append(timestamp, key, _VALUE.pack(_VERSION, marker.coordinator_epoch))
    return builder.build()
