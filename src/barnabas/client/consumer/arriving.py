"""Reads a large fetch answer into columns while it is still on its way.

For poll_arrow: a piece that has just been received is in the cache, and to check and decode it there takes half of what
it takes later. The values stay where they were received: they are moved to the front of the answer's own buffer, which
so becomes their column. On the I/O thread, a piece at a time, without the GIL; the fetcher makes one for each request
and asks at the end which partitions have become columns. All others, and whatever is wrong with the answer, are left to
those who read the whole of it.
"""

import struct
from collections.abc import Callable, Generator, Mapping
from typing import Final, NamedTuple, TypeVar

from barnabas.client.consumer.fetch_response import PartitionHead, read_partition_head, read_topic, skip_tags
from barnabas.errors import KafkaError, ProtocolError
from barnabas.protocol.primitives import read_compact_length
from barnabas.records.codec import ArrowReader
from barnabas.records.header import ATTRIBUTES_OFFSET, COMPRESSION_MASK, HEADER_SIZE
from barnabas.types import TopicPartition

T = TypeVar("T")

FIRST_FLEXIBLE_VERSION: Final = 12
LEAST_PIECE_BYTES: Final = 128 * 1024
LEAST_RECORDS_BYTES: Final = 256 * 1024
"""Fewer of a partition are worth more when they are read together with the next answers."""
_TOPICS_AT: Final = 10
_CUT_SHORT = (IndexError, struct.error, ProtocolError, UnicodeDecodeError)


class ArrivedColumns(NamedTuple):
    reader: ArrowReader
    next_offset: int


class ArrivingFetch:
    def __init__(
        self,
        reader: ArrowReader,
        version: int,
        names: Mapping[bytes, str],
        offsets: Mapping[TopicPartition, int],
        *,
        read_committed: bool,
    ) -> None:
        """`names` of topic ids, and the offsets that were asked for; columns share their memory with the reader's."""
        self._reader = reader
        self._version = version
        self._names = names
        self._offsets = offsets
        self._read_committed = read_committed
        self._body = self._seen = memoryview(b"")
        self._position = 0
        self._walk = self._read_answer()
        self._columns: dict[TopicPartition, ArrivedColumns] = {}

    def on_part(self, body: memoryview, arrived: int) -> None:
        if arrived - len(self._seen) >= LEAST_PIECE_BYTES:
            self._go_on(body, arrived)

    def finish(self, body: memoryview) -> dict[TopicPartition, ArrivedColumns]:
        """The whole answer is there: the partitions whose records, as bytes, cannot be read any more."""
        if self._seen:
            self._go_on(body, len(body))
        return self._columns

    def _go_on(self, body: memoryview, arrived: int) -> None:
        self._body, self._seen = body, body[:arrived]
        next(self._walk, None)

    # It yields where more has to arrive.

    def _read_answer(self) -> Generator[None, None, None]:
        if self._version < FIRST_FLEXIBLE_VERSION:
            return
        self._position = _TOPICS_AT
        for _ in range((yield from self._read(read_compact_length))):
            topic = yield from self._read(lambda seen, position: read_topic(seen, position, self._version))
            name = topic if isinstance(topic, str) else self._names.get(topic, "")
            for _ in range((yield from self._read(read_compact_length))):
                head = yield from self._read(read_partition_head)
                yield from self._read_records(TopicPartition(name, head.partition), head)
                yield from self._read(_tags)
            yield from self._read(_tags)

    def _read(self, read: Callable[[memoryview, int], tuple[T, int]]) -> Generator[None, None, T]:
        while True:
            try:
                value, position = read(self._seen, self._position)
            except _CUT_SHORT:
                position = len(self._seen) + 1
            if position <= len(self._seen):
                self._position = position
                return value
            yield

    def _read_records(self, where: TopicPartition, head: PartitionHead) -> Generator[None, None, None]:
        start, end = self._position, self._position + max(0, head.records_length)
        while len(self._seen) < min(end, start + HEADER_SIZE):
            yield
        reader = self._begin(where, head, start)
        while True:
            if reader is not None:
                try:
                    next_offset = reader.read(len(self._seen) - start)
                except KafkaError:  # at its first record: nothing is lost yet, and whoever reads it again will say so
                    reader = None
            if len(self._seen) >= end:
                break
            yield
        if reader is not None and reader.count:
            self._columns[where] = ArrivedColumns(reader, next_offset)
        self._position = end

    def _begin(self, where: TopicPartition, head: PartitionHead, start: int) -> ArrowReader | None:
        offset = self._offsets.get(where)
        if offset is None or head.error_code or head.records_length < LEAST_RECORDS_BYTES:
            return None
        if self._seen[start + ATTRIBUTES_OFFSET + 1] & COMPRESSION_MASK:
            return None  # to decompress is work for the user's thread
        reader = self._reader.another()
        reader.begin(
            self._body[start : start + head.records_length],
            where.topic,
            where.partition,
            offset,
            aborted=head.aborted if self._read_committed else None,
            # Whoever keeps the values keeps the whole answer.
            in_place=2 * head.records_length >= len(self._body),
        )
        return reader


def _tags(seen: memoryview, position: int) -> tuple[None, int]:
    return None, skip_tags(seen, position)
