"""The records of one partition in a fetch response, decoded on demand."""

from collections.abc import Iterator, Sequence

from barnabas.errors import KafkaError
from barnabas.records._pure.consumer_record import ConsumerRecord
from barnabas.records._pure.fetched_batches import FetchedBatches, offset_outside
from barnabas.records.header import BatchHeader, Buffer
from barnabas.records.read_fault import read_fault
from barnabas.records.reader import decode_records
from barnabas.records.record import Record


class RecordReader:
    def __init__(
        self,
        buffer: Buffer,
        topic: str,
        partition: int,
        start_offset: int = 0,
        *,
        aborted: Sequence[tuple[int, int]] | None = None,
        check_crcs: bool = True,
    ) -> None:
        """`aborted` is the response's list of (producer id, first offset), for read_committed consumers."""
        self.topic = topic
        self.partition = partition
        self.size_in_bytes = memoryview(buffer).nbytes
        self._batches = FetchedBatches(buffer, start_offset, aborted, check_crcs)
        self._header: BatchHeader | None = None
        self._records: Iterator[Record] = iter(())
        self._left = 0
        self._fault: KafkaError | None = None

    @property
    def next_offset(self) -> int:
        """The position after what was taken, beyond what a consumer does not see."""
        return self._batches.next_offset

    @property
    def leader_epoch(self) -> int | None:
        """Of the batch that `next_offset` comes from; None before the first, or if it has none."""
        return self._batches.leader_epoch

    @property
    def exhausted(self) -> bool:
        """True when nothing is left, not even a fault that was not raised yet."""
        return self._fault is None and self._header is None and self._batches.at_end

    def take(self, n: int) -> list[ConsumerRecord]:
        """The next records, at most n; fewer only at the end, or before a fault, which the next call raises."""
        if self._fault is not None:
            raise self._fault
        taken: list[ConsumerRecord] = []
        try:
            while len(taken) < n and self._open_batch():
                self._take_from_batch(taken, n)
        except KafkaError as error:
            self._fault = read_fault(self.topic, self.partition, self.next_offset, error)
            if not taken:
                raise self._fault from None
        return taken

    def _open_batch(self) -> bool:
        if self._header is None:
            batch = self._batches.next_batch()
            if batch is None:
                return False
            self._header = batch[0]
            self._records = decode_records(*batch)
            self._left = self._header.record_count
        return True

    def _take_from_batch(self, taken: list[ConsumerRecord], n: int) -> None:
        header = self._header
        assert header is not None
        topic, partition, timestamp_type = self.topic, self.partition, header.timestamp_type
        leader_epoch = header.partition_leader_epoch if header.partition_leader_epoch >= 0 else None
        next_offset = self._batches.next_offset
        next_record = self._records.__next__
        first, last = header.base_offset, header.last_offset
        left, room = self._left, n - len(taken)
        try:
            while left and room:
                offset, timestamp, key, value, headers = next_record()
                if not first <= offset <= last:
                    raise offset_outside(header, offset)
                left -= 1
                if offset < next_offset:
                    continue
                taken.append(
                    ConsumerRecord(
                        topic, partition, offset, timestamp, timestamp_type, key, value, headers, leader_epoch
                    )
                )
                next_offset = offset + 1
                room -= 1
        finally:
            self._left = left
            self._batches.seen(header, next_offset)
        if not left:
            next(self._records, None)  # raises if bytes follow the last record
            self._batches.passed(header)
            self._header = None
