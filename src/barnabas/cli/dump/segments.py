"""A segment, or a snapshot of the metadata log, from its first batch to its last, in the requested form.

A batch that cannot be read is reported and skipped: its length says where the next one begins.
"""

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Protocol

from barnabas.cli.dump import files
from barnabas.cli.dump.faults import Faults
from barnabas.cli.dump.files import Batch
from barnabas.errors import KafkaError, ProtocolError
from barnabas.records import Record

DAMAGED: Final = (KafkaError, ProtocolError, ValueError, IndexError)
"""What bytes that are no records raise."""


class Form(Protocol):
    """How the parts of a segment look: Kafka's lines, or JSON."""

    def title(self, path: Path) -> Iterator[str]: ...

    def batch(self, path: Path, batch: Batch) -> str: ...

    def record(self, batch: Batch, record: Record) -> str: ...

    def damage(self, path: Path, batch: Batch, reason: str) -> Iterator[str]: ...

    def invalid_tail(self, path: Path, position: int, count: int) -> str: ...


def segment_lines(path: Path, form: Form, faults: Faults, *, deep: bool, max_bytes: int) -> Iterator[str]:
    yield from form.title(path)
    content = files.read_content(path, max_bytes)
    valid_bytes, last_offset = 0, -1
    for batch in files.batches(content):
        valid_bytes = batch.position + batch.header.size_in_bytes
        try:
            yield form.batch(path, batch)
            if not batch.is_valid:
                faults.wrong_crc(path, batch)
            for record in batch.records() if deep else ():
                if last_offset not in (-1, record.offset - 1):
                    faults.gaps.setdefault(path, []).append((last_offset, record.offset))
                last_offset = record.offset
                yield form.record(batch, record)
        except DAMAGED as error:
            reason = reason_of(error)
            faults.unreadable_batch(path, batch, reason)
            yield from form.damage(path, batch, reason)
            last_offset = batch.header.last_offset
    if len(content) > valid_bytes and max_bytes == files.ALL:
        faults.invalid_tail(path, valid_bytes, len(content) - valid_bytes)
        yield form.invalid_tail(path, valid_bytes, len(content) - valid_bytes)


def reason_of(error: Exception) -> str:
    return error.message if isinstance(error, KafkaError) else str(error)
