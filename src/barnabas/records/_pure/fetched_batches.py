"""The batches of one partition in a fetch response, one after the other: only those whose records are visible.

What is skipped: batches before the start offset, control batches, batches of aborted transactions, the partial batch at
the end. Positions move past all of these, so that a consumer's position does too.

Aborted transactions are in the response as (producer id, first offset). A transaction counts as aborted from its first
offset until its abort marker; the same producer may be aborted again later.
"""

from collections.abc import Sequence
from typing import Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.records.control import is_abort_marker
from barnabas.records.header import (
    LOG_OVERHEAD,
    MAGIC_OFFSET,
    BatchHeader,
    Buffer,
    check_batch_start,
    crc_matches,
    read_header,
)
from barnabas.records.reader import read_payload

_MAX_OFFSET: Final = (1 << 63) - 1


class FetchedBatches:
    def __init__(
        self,
        buffer: Buffer,
        start_offset: int,
        aborted: Sequence[tuple[int, int]] | None,
        check_crcs: bool,
    ) -> None:
        self.next_offset = start_offset
        self.leader_epoch: int | None = None
        self._view = memoryview(buffer)
        self._position = 0
        self._check_crcs = check_crcs
        self._to_abort = sorted(aborted or (), key=lambda entry: entry[1], reverse=True)
        self._aborted_producers: set[int] = set()

    @property
    def at_end(self) -> bool:
        """No whole batch follows."""
        left = len(self._view) - self._position
        if left <= MAGIC_OFFSET:
            return True
        return left < LOG_OVERHEAD + int.from_bytes(self._view[self._position + 8 : self._position + 12], signed=True)

    def next_batch(self) -> tuple[BatchHeader, bytes] | None:
        """The next batch with records to see: header and decompressed records. None at the end."""
        while not self.at_end:
            check_batch_start(self._view, self._position)
            header = read_header(self._view, self._position)
            self._check(header)
            end = self._position + header.size_in_bytes
            payload = self._payload_to_see(header, end)
            self._position = end
            if payload is not None:
                return header, payload
            self.passed(header)
        return None

    def passed(self, header: BatchHeader) -> None:
        """All records of the batch were seen."""
        self.seen(header, header.next_offset)

    def seen(self, header: BatchHeader, next_offset: int) -> None:
        """The records of the batch before this offset were seen."""
        if next_offset > self.next_offset:
            self.next_offset = next_offset
            self.leader_epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None

    def _check(self, header: BatchHeader) -> None:
        if header.base_offset < 0 or header.last_offset_delta < 0 or header.last_offset >= _MAX_OFFSET:
            raise _corrupt(f"offset {header.base_offset} and delta {header.last_offset_delta} cannot be")
        if not 0 <= header.record_count <= header.last_offset_delta + 1:
            raise _corrupt(f"{header.record_count} records in {header.last_offset_delta + 1} offsets")
        if header.last_offset < self.next_offset and not header.is_control:
            return  # not checked
        if self._check_crcs and not crc_matches(self._view, self._position, header):
            raise _corrupt("the CRC does not match")

    def _payload_to_see(self, header: BatchHeader, end: int) -> bytes | None:
        aborted = self._is_aborted(header, end)
        if aborted or header.is_control or header.last_offset < self.next_offset or not header.record_count:
            return None
        return read_payload(self._view[self._position : end], header)

    def _is_aborted(self, header: BatchHeader, end: int) -> bool:
        if not header.has_producer_id:
            return False
        while self._to_abort and self._to_abort[-1][1] <= header.last_offset:
            self._aborted_producers.add(self._to_abort.pop()[0])
        if header.producer_id not in self._aborted_producers or not header.is_transactional:
            return False
        if header.is_control and is_abort_marker(self._view[self._position : end]):
            self._aborted_producers.discard(header.producer_id)
        return True


def offset_outside(header: BatchHeader, offset: int) -> KafkaError:
    """The error for a record outside of the offsets that its batch claims."""
    return _corrupt(f"a record's offset delta {offset - header.base_offset} is outside its batch")


def _corrupt(message: str) -> KafkaError:
    return KafkaError(ErrorCode.CORRUPT_MESSAGE, message)
