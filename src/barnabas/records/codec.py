"""The record codec of the clients: the compiled twin if it is there, the pure one if not. Both have the same API.

BARNABAS_PURE=1 in the environment forces the pure one.
"""

import os
from typing import TYPE_CHECKING, Any

_PURE_WANTED = os.environ.get("BARNABAS_PURE", "0") not in ("", "0")

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

    NATIVE: bool
else:
    try:
        if _PURE_WANTED:
            raise ImportError("BARNABAS_PURE is set")
        from barnabas.records._native import (
            ArrowReader,
            BatchBuffer,
            ConsumerRecord,
            RecordReader,
            batch_span,
            murmur2,
            partition_for_key,
        )

        NATIVE = True
    except ImportError:
        from barnabas.records._pure import (
            ArrowReader,
            BatchBuffer,
            ConsumerRecord,
            RecordReader,
            batch_span,
            murmur2,
            partition_for_key,
        )

        NATIVE = False


def restore_record(*fields: Any) -> ConsumerRecord:
    """How a pickled ConsumerRecord comes back, whichever twin wrote it."""
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
