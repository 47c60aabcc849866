"""Records that were taken to be iterated over, handed out one by one; positions move record by record.

So a commit inside a `for` loop covers what the loop has seen, and a loop that is left early loses nothing: the rest
stays here for the next loop or poll. In the user's thread.
"""

from collections import deque
from collections.abc import Iterator

from barnabas.client.consumer.collector import Chunk
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.records.codec import ConsumerRecord


class RecordCursor:
    """Records that are iterated over; each moves the position of its partition."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._lock = subscription.lock
        self._chunks: deque[Chunk] = deque()
        self._index = 0

    @property
    def is_empty(self) -> bool:
        return not self._chunks

    def fill(self, chunks: list[Chunk]) -> None:
        """Takes chunks over; their positions go back to their first records."""
        with self._lock:
            for chunk in reversed(chunks):
                if chunk.records:
                    _move(chunk, chunk.records[0].offset, chunk.state.offset_epoch)
        self._chunks.extend(chunks)

    def __iter__(self) -> Iterator[ConsumerRecord]:
        while self._chunks:
            state, version, records, next_offset, next_epoch = chunk = self._chunks[0]
            while self._index < len(records) and self._is_current(state, version, records[self._index]):
                record = records[self._index]
                self._index += 1
                state.offset = record.offset + 1
                if record.leader_epoch is not None:
                    state.offset_epoch = record.leader_epoch
                yield record
            if not self._chunks or self._chunks[0] is not chunk:
                return  # a poll inside the loop has taken the rest
            if self._index == len(records):
                _move(chunk, next_offset, next_epoch)
            self._chunks.popleft()
            self._index = 0

    def _is_current(self, state: PartitionState, version: int, record: ConsumerRecord) -> bool:
        """A seek or a rebalance makes the rest void. A pause too: it is fetched again when the partition is resumed."""
        if state.version != version:
            return False
        if state.paused:
            with self._lock:
                state.seek(record.offset, state.offset_epoch)
            return False
        return True

    def take(self, max_records: int) -> list[ConsumerRecord]:
        """The same records for a poll."""
        taken: list[ConsumerRecord] = []
        for record in self:
            taken.append(record)
            if len(taken) == max_records:
                break
        self._finish_chunk()
        return taken

    def _finish_chunk(self) -> None:
        """The position after a whole chunk is beyond its last record where markers follow it."""
        if self._chunks and self._index == len(self._chunks[0].records):
            chunk = self._chunks.popleft()
            self._index = 0
            _move(chunk, chunk.next_offset, chunk.next_epoch)

    def give_back(self) -> None:
        """What is left is to be fetched again, from where the positions stand."""
        with self._lock:
            for state, version, *_ in self._chunks:
                if state.version == version:
                    state.seek(state.offset, state.offset_epoch)
        self._chunks.clear()
        self._index = 0


def _move(chunk: Chunk, offset: int, epoch: int) -> None:
    if chunk.state.version == chunk.version:
        chunk.state.offset = offset
        chunk.state.offset_epoch = epoch
