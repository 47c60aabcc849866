"""From fetched bytes to what poll returns; runs in the user's thread, one reader per partition, nothing decoded twice.

`take` gives records up to a number and leaves the reader where it stopped; `take_arrow` gives whole responses as
columns, decoded without the GIL while the I/O thread receives the next, or by that thread already (`rows`). Positions
move as records are given out. An error comes up only when nothing else is left to give, so that what was read before it
is not lost.
"""

from collections.abc import Callable
from typing import Any, NamedTuple

from barnabas.client.consumer.fetch_buffer import CompletedFetch, FetchBuffer
from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.rows import make_rows
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import DeserializationError
from barnabas.errors import KafkaError
from barnabas.records.codec import ArrowReader, ConsumerRecord, RecordReader

Deserializer = Callable[[bytes], Any]
"""Null is never given to it: a null key or value stays None."""


_Positions = list[tuple[PartitionState, int, int, int]]
"""Partitions, each with the version, offset and epoch that it had."""


class Chunk(NamedTuple):
    """Records of one partition, in order, and where its position was moved to by taking them."""

    state: PartitionState
    version: int
    records: list[ConsumerRecord]
    next_offset: int
    next_epoch: int


class Collector:
    """Turns buffered fetches into what poll and poll_arrow return. In the user's thread."""

    def __init__(
        self,
        subscription: SubscriptionState,
        buffer: FetchBuffer,
        *,
        key_deserializer: Deserializer | None = None,
        value_deserializer: Deserializer | None = None,
        check_crcs: bool = True,
        on_change: Callable[[], None] = lambda: None,
    ) -> None:
        self._lock = subscription.lock
        self._on_change = on_change
        self._buffer = buffer
        self._key_deserializer = key_deserializer
        self._value_deserializer = value_deserializer
        self._check_crcs = check_crcs
        self._arrow: ArrowReader | None = None
        self._no_rows: Any = None
        """To make arrays of nothing takes as long as a turn of poll, and there is one for each time it waits."""
        self._gave_columns = False

    # records

    def take(self, max_records: int) -> list[Chunk]:
        self._gave_columns = self._buffer.reads_columns = False
        before: _Positions = []
        try:
            return self._take(max_records, before)
        except Exception:
            raise
        except BaseException:  # Ctrl-C: what nobody will get is fetched again
            self._rewind(before)
            raise

    def _rewind(self, positions: _Positions, *, always: bool = False) -> None:
        with self._lock:
            for state, version, offset, epoch in positions:
                if state.version == version and (always or state.offset != offset):
                    state.seek(offset, epoch)
        self._buffer.drop_void()
        self._on_change()

    def _fetch_again(self, fetch: CompletedFetch) -> None:
        """From the user's position: the bytes that are there have been written over."""
        with self._lock:
            if not fetch.is_stale:
                fetch.state.fetch_again()
        self._buffer.drop_void()
        self._on_change()

    def _take(self, max_records: int, before: _Positions) -> list[Chunk]:
        chunks: list[Chunk] = []
        left = max_records
        while left > 0:
            fetch = self._buffer.head()
            if fetch is None or (fetch.error is not None and chunks):
                break
            before.append((fetch.state, fetch.version, fetch.state.offset, fetch.state.offset_epoch))
            try:
                chunk = self._take_from(fetch, left)
            except Exception:
                if chunks:
                    break
                raise
            if chunk is not None and chunk.records:
                chunks.append(chunk)
                left -= len(chunk.records)
        return chunks

    def _take_from(self, fetch: CompletedFetch, max_records: int) -> Chunk | None:
        if fetch.error is not None:
            self._raise(fetch)
            return None
        if fetch.rows is not None:
            self._fetch_again(fetch)
            return None
        reader = fetch.reader
        if reader is None:
            topic, partition = fetch.state.topic_partition
            reader = fetch.reader = RecordReader(
                fetch.records,
                topic,
                partition,
                fetch.state.offset,
                aborted=fetch.aborted,
                check_crcs=self._check_crcs,
            )
        records = reader.take(max_records)
        next_offset, epoch = reader.next_offset, reader.leader_epoch
        if self._key_deserializer is not None or self._value_deserializer is not None:
            whole = len(records)
            records = self._deserialize(fetch, records)
            if len(records) < whole:
                next_offset, epoch = records[-1].offset + 1, records[-1].leader_epoch
                fetch.reader = None  # the next poll starts at the record that failed
        if not self._advance(fetch, next_offset, -1 if epoch is None else epoch):
            return None  # the log was found truncated while these were read
        if fetch.reader is not None and reader.exhausted:
            self._buffer.remove(fetch)
        return Chunk(fetch.state, fetch.version, records, fetch.state.offset, fetch.state.offset_epoch)

    def _deserialize(self, fetch: CompletedFetch, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """All of them, or those before the one that cannot be read; that one raises when it is the first."""
        key_of, value_of = self._key_deserializer, self._value_deserializer
        made: list[ConsumerRecord] = []
        for record in records:
            key, value = record.key, record.value
            part = "key"
            try:
                if key_of is not None and key is not None:
                    key = key_of(key)
                part = "value"
                if value_of is not None and value is not None:
                    value = value_of(value)
            except Exception as error:
                if made:
                    return made
                fetch.reader = None
                raise _deserialization_error(record, part, fetch, error) from error
            made.append(record.deserialized(key, value))
        return made

    def _advance(self, fetch: CompletedFetch, next_offset: int, epoch: int) -> bool:
        """Whether the fetch still counts."""
        state = fetch.state
        with self._lock:
            if fetch.is_stale:
                return False
            if next_offset > state.offset:
                state.offset = next_offset
                if epoch >= 0:
                    state.offset_epoch = epoch
            return True

    def _raise(self, fetch: CompletedFetch) -> None:
        """The error's function may recover by itself (a reset); then there is nothing to raise."""
        assert fetch.error is not None
        self._buffer.remove(fetch)
        with self._lock:
            fetch.state.blocked = False
            error = None if fetch.is_stale else fetch.error(fetch.state)
        self._on_change()
        if error is not None:
            raise error

    # columns

    def take_arrow(self, max_records: int | None, max_bytes: int) -> Any:
        """Whole responses until either bound is reached; the last one is cut where `max_records` ends.

        A large one is a record batch by itself: its values stay in the buffer that they were received in.
        """
        before: _Positions = []
        try:
            rows = self._take_arrow(max_records, max_bytes, before)
            if rows.num_rows:
                self._buffer.reads_columns = self._gave_columns
                self._gave_columns = True
            return rows
        except Exception:
            raise
        except BaseException:
            self._arrow = None
            self._rewind(before, always=True)  # bytes may have been written over before positions have moved
            raise

    def _take_arrow(self, max_records: int | None, max_bytes: int, before: _Positions) -> Any:
        if self._arrow is None:
            self._arrow = ArrowReader(check_crcs=self._check_crcs)
        reader = self._arrow
        size = 0
        cut = None
        while size < max_bytes and (max_records is None or reader.count < max_records):
            fetch = self._buffer.head()
            if fetch is None or ((fetch.error is not None or fetch.is_large) and reader.count):
                break
            before.append((fetch.state, fetch.version, fetch.state.offset, fetch.state.offset_epoch))
            if fetch.is_large:
                rows = self._take_rows(reader, fetch, max_records)
                if rows is None or not rows.num_rows:
                    continue
                return rows
            try:
                complete, offset = self._add_to_arrow(reader, fetch)
            except Exception:
                if reader.count:
                    break
                reader.finish()
                raise
            size += fetch.size
            if max_records is not None and reader.count > max_records:
                cut = fetch
                break
            self._finish_arrow_fetch(fetch, complete, offset, reader.leader_epoch)
            if reader.full:
                break
        if not before and self._no_rows is not None:
            return self._no_rows
        epoch = reader.leader_epoch
        rows = reader.finish()
        if not rows.num_rows:
            self._no_rows = rows
        return rows if cut is None or max_records is None else self._cut(rows, max_records, cut, epoch)

    def _take_rows(self, reader: ArrowReader, fetch: CompletedFetch, max_records: int | None) -> Any:
        """Of a large fetch, or what an earlier call has left of it; None if the log was found truncated meanwhile."""
        if fetch.rows is None:
            self._make_rows(reader, fetch)
        rows, left, next_offset = fetch.rows, None, fetch.next_offset
        if max_records is not None and rows.num_rows > max_records:
            rows, left = rows.slice(0, max_records), rows.slice(max_records)
            next_offset = left.column("offset")[0].as_py()
        if not self._advance(fetch, next_offset, fetch.last_epoch):
            return None
        fetch.rows = left
        if left is None:
            if fetch.is_cut_short:
                self._fetch_again(fetch)
            self._buffer.remove(fetch)
        return rows

    def _make_rows(self, reader: ArrowReader, fetch: CompletedFetch) -> None:
        fetch.reader = None
        try:
            make_rows(reader, fetch, fetch.state.offset)
        except KafkaError:
            raise
        except Exception:
            self._arrow = None
            self._fetch_again(fetch)
            raise

    def _add_to_arrow(self, reader: ArrowReader, fetch: CompletedFetch) -> tuple[bool, int]:
        """Whether all of the fetch was read, and the position after what was."""
        if fetch.error is not None:
            self._raise(fetch)
            return False, fetch.state.offset
        topic, partition = fetch.state.topic_partition
        offset = reader.add(fetch.records, topic, partition, fetch.state.offset, aborted=fetch.aborted)
        return offset >= fetch.next_offset, offset

    def _finish_arrow_fetch(self, fetch: CompletedFetch, complete: bool, offset: int, epoch: int | None) -> None:
        fetch.reader = None  # columns and records may alternate; positions say where to continue
        self._advance(fetch, offset, -1 if epoch is None else epoch)
        if complete:
            self._buffer.remove(fetch)

    def _cut(self, rows: Any, max_records: int, fetch: CompletedFetch, epoch: int | None) -> Any:
        """The first rows only; the position of the last partition goes back to the first row that is left out."""
        offset: int = rows.column("offset")[max_records].as_py()
        self._finish_arrow_fetch(fetch, False, offset, epoch)
        return rows.slice(0, max_records)


def _deserialization_error(
    record: ConsumerRecord, part: str, fetch: CompletedFetch, error: Exception
) -> DeserializationError:
    where = fetch.state.topic_partition
    return DeserializationError(
        f"the {part} of the record at {where} offset {record.offset} cannot be deserialized: {error!r}; "
        f"to skip it call seek(({where.topic!r}, {where.partition}), {record.offset + 1})",
        where,
        record.offset,
    )
