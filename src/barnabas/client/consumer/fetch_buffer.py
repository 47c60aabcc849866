"""Fetched data between the I/O thread, which adds it, and the user's thread, which takes it out.

Bytes are counted, by partition and in total, because the fetcher stops asking when enough is waiting; taking something
out starts it again. All under the lock of the subscription state, so that a seek and an arrival never cross.
"""

import struct
from collections import deque
from collections.abc import Callable
from typing import Any, Final, NamedTuple

from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.errors import KafkaError
from barnabas.records.codec import ArrowReader, RecordReader
from barnabas.records.header import HEADER_SIZE, LOG_OVERHEAD

_BATCH_START: Final = struct.Struct(">qii")
_LAST_OFFSET_DELTA: Final = struct.Struct(">i")
_LAST_OFFSET_DELTA_AT: Final = 23


class BatchSpan(NamedTuple):
    """What whole batches in a response come to."""

    next_offset: int
    leader_epoch: int


def span_of(records: memoryview) -> BatchSpan | None:
    """Where the last whole batch ends, found by hopping over the others; None if there is no whole batch."""
    position = last = 0
    found = False
    end = len(records)
    unpack = _BATCH_START.unpack_from
    while end - position >= HEADER_SIZE:
        length: int = unpack(records, position)[1]
        following = position + LOG_OVERHEAD + length
        if length < HEADER_SIZE - LOG_OVERHEAD or following > end:
            break
        last = position
        found = True
        position = following
    if not found:
        return None
    base_offset, _, leader_epoch = unpack(records, last)
    delta: int = _LAST_OFFSET_DELTA.unpack_from(records, last + _LAST_OFFSET_DELTA_AT)[0]
    return BatchSpan(base_offset + max(0, delta) + 1, leader_epoch)


class CompletedFetch:
    """One partition's part of a response; an `error` stands in its place in the order, to be raised when it is due."""

    __slots__ = (
        "aborted",
        "error",
        "last_epoch",
        "next_offset",
        "reader",
        "records",
        "rows",
        "size",
        "state",
        "version",
    )

    def __init__(
        self,
        state: PartitionState,
        records: memoryview,
        next_offset: int,
        aborted: list[tuple[int, int]] | None = None,
        error: Callable[[PartitionState], KafkaError | None] | None = None,
        rows: Any = None,
        last_epoch: int = -1,
    ) -> None:
        self.state = state
        self.version = state.version
        self.records = records
        self.size = len(records)
        self.next_offset = next_offset
        self.aborted = aborted
        self.error = error
        self.reader: RecordReader | None = None
        self.rows = rows
        """The record batch that has been made of the records on arrival, or what is left of it; the records as bytes
        cannot be read any more then."""
        self.last_epoch = last_epoch

    @property
    def is_stale(self) -> bool:
        return self.version != self.state.version


class FetchBuffer:
    def __init__(self, subscription: SubscriptionState) -> None:
        self._lock = subscription.lock
        self._fetches: deque[CompletedFetch] = deque()
        self.size = 0
        self._starved = False
        self._freed = False
        self.reads_into: ArrowReader | None = None
        """What large answers are read into on arrival, while the user asks for columns."""

    def __len__(self) -> int:
        return len(self._fetches)

    def add(self, fetch: CompletedFetch) -> None:
        """The caller holds the lock."""
        self._fetches.append(fetch)
        self.size += fetch.size

    def head(self) -> CompletedFetch | None:
        """The first that may be given to the user. What a seek or a rebalance made void goes; what is paused stays."""
        with self._lock:
            kept: list[CompletedFetch] = []
            found = None
            while self._fetches:
                fetch = self._fetches[0]
                if fetch.is_stale:
                    self._forget(self._fetches.popleft())
                elif fetch.state.is_deliverable:
                    found = fetch
                    break
                else:
                    kept.append(self._fetches.popleft())
            self._fetches.extendleft(reversed(kept))
            return found

    def remove(self, fetch: CompletedFetch) -> None:
        """Done with it, or it is void by now."""
        with self._lock:
            if fetch in self._fetches:
                self._fetches.remove(fetch)
                self._forget(fetch)

    def drop_void(self) -> None:
        """After a seek or a change of assignment: frees what nobody will read."""
        with self._lock:
            for fetch in [fetch for fetch in self._fetches if fetch.is_stale]:
                self._fetches.remove(fetch)
                self._forget(fetch)

    def starve(self) -> None:
        """The fetcher stops because enough is buffered, and wants to be called when there is room; with the lock."""
        self._starved = True
        self._freed = False

    def made_room(self) -> bool:
        """Whether the fetcher is to be called: it had stopped, and something has been taken out since."""
        with self._lock:
            if not (self._starved and self._freed):
                return False
            self._starved = False
            return True

    def _forget(self, fetch: CompletedFetch) -> None:
        self.size -= fetch.size
        self._freed = True
        if not fetch.is_stale:
            fetch.state.buffered_bytes -= fetch.size
