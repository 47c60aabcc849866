"""The record codec of the clients, compiled or pure. `_native/__init__.pyi` declares the interface of both."""

from typing import TYPE_CHECKING, Any, Final

from barnabas.twins import choose_twin

_twin: Final = choose_twin("barnabas.records._native", "barnabas.records._pure")
NATIVE: Final[bool] = _twin.__name__ == "barnabas.records._native"

if TYPE_CHECKING:
    from barnabas.records._native import (
        ArrowReader,
        BatchBuffer,
        ConsumerRecord,
        RecordReader,
        batch_span,
        murmur2,
        partition_for_key,
    )
else:
    ArrowReader = _twin.ArrowReader
    BatchBuffer = _twin.BatchBuffer
    ConsumerRecord = _twin.ConsumerRecord
    RecordReader = _twin.RecordReader
    batch_span = _twin.batch_span
    murmur2 = _twin.murmur2
    partition_for_key = _twin.partition_for_key


def restore_record(*fields: Any) -> ConsumerRecord:
    """Unpickles a ConsumerRecord, whichever twin pickled it."""
    return ConsumerRecord(*fields)


__all__ = [
    "NATIVE",
    "ArrowReader",
    "BatchBuffer",
    "ConsumerRecord",
    "RecordReader",
    "batch_span",
    "murmur2",
    "partition_for_key",
    "restore_record",
]
