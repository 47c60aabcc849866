"""Fetched data between the I/O thread, which adds it, and the user's thread, which takes it out.

Bytes are counted, by partition and in total, because the fetcher stops asking when enough is waiting; taking something
out starts it again. All under the lock of the subscription state, so that a seek and an arrival never cross.
"""

from collections import deque
from collections.abc import Callable
from typing import Any, Final

from barnabas.client.consumer.partition_state import PartitionState
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.errors import KafkaError
from barnabas.records.codec import RecordReader

LARGE_BYTES: Final = 256 * 1024


class CompletedFetch:
    """One partition's part of a response; an `error` stands in its place in the order, to be raised when it is due."""

    __slots__ = (
        "aborted",
        "error",
        "first_offset",
        "is_cut_short",
        "is_large",
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
    ) -> None:
        self.state = state
        self.version = state.version
        self.records = records
        self.size = len(records)
        self.first_offset = state.fetch_offset
        """The offset requested. Records before it may have come with their batch."""
        self.next_offset = next_offset
        self.aborted = aborted
        self.error = error
        self.reader: RecordReader | None = None
        self.is_large = self.size >= LARGE_BYTES and 3 * self.size >= memoryview(records.obj).nbytes
        """Worth a record batch of its own, and to keep its values is not to keep much else."""
        self.rows: Any = None
        """What is left of that record batch; the bytes cannot be read any more then."""
        self.last_epoch = -1
        self.is_cut_short = False
        """Not all of the bytes have become rows."""

    @property
    def is_stale(self) -> bool:
        return self.version != self.state.version


class FetchBuffer:
    """Completed fetches in their order, from the I/O thread to the user's thread."""

    def __init__(self, subscription: SubscriptionState) -> None:
        self._lock = subscription.lock
        self._fetches: deque[CompletedFetch] = deque()
        self.size = 0
        self._starved = False
        self._freed = False
        self.reads_columns = False
        """Whether the user takes columns, more than once by now: what has become rows cannot be read as records."""

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
