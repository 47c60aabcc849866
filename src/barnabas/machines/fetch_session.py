"""Incremental fetch sessions (KIP-227): the broker remembers what a client fetches, so that requests and responses
carry only what changed.

The fetch handler opens each request with `FetchSessionCache.open` and uses the context it returns
(fetch_context.py). Pure: ids come from the Random passed in; time, which must not go back, is an argument. A session
uses topic ids or names, never both. The cost of opening depends on the partitions in the request, not in the session.
"""

from bisect import bisect_left, insort
from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from typing import NamedTuple

from barnabas.clock import Random
from barnabas.errors import ErrorCode
from barnabas.machines.fetch_context import (
    NO_SESSION_ID,
    FetchContext,
    FetchPartition,
    FullFetchContext,
    IncrementalFetchContext,
    PartitionKey,
)

INITIAL_EPOCH = 0
FINAL_EPOCH = -1
MAX_INT = 2**31 - 1


def next_epoch(epoch: int) -> int:
    """The epoch of the following request; it wraps to 1, because 0 and -1 mean a full fetch."""
    if epoch < 0:
        return FINAL_EPOCH
    return 1 if epoch == MAX_INT else epoch + 1


class EvictionKey(NamedTuple):
    """Smaller is less worth keeping: clients before followers, then by the number of partitions."""

    privileged: bool
    partition_count: int
    session_id: int


class FetchSession:
    """`epoch` is the one that the next request must carry. Partitions are in the order in which they are to be read."""

    __slots__ = (
        "created_ms",
        "epoch",
        "eviction_key",
        "id",
        "last_used_ms",
        "news",
        "on_removed",
        "partitions",
        "privileged",
        "uses_topic_ids",
    )

    def __init__(
        self,
        session_id: int,
        privileged: bool,
        uses_topic_ids: bool,
        partitions: dict[PartitionKey, FetchPartition],
        now_ms: int,
    ) -> None:
        self.id = session_id
        self.privileged = privileged
        self.uses_topic_ids = uses_topic_ids
        self.partitions = partitions
        self.created_ms = now_ms
        self.news: object = None
        """Of a follower's session: what its partitions report to; kept here for whoever reads them."""
        self.on_removed: Callable[[], None] | None = None
        self.last_used_ms = now_ms
        self.epoch = next_epoch(INITIAL_EPOCH)
        self.eviction_key = EvictionKey(privileged, len(partitions), session_id)

    def update(self, partitions: Iterable[FetchPartition], forgotten: Iterable[PartitionKey]) -> None:
        """Take over what a request adds, changes (keeping its place and what the client has been sent) and forgets.

        In another leader epoch a follower drops what it is sent of the one before, so it is sent again.
        """
        cached = self.partitions
        for wanted in partitions:
            key = wanted.key
            known = cached.get(key)
            if known is not None and known.current_leader_epoch == wanted.current_leader_epoch:
                wanted.high_watermark = known.high_watermark
                wanted.log_start_offset = known.log_start_offset
            cached[key] = wanted
        for key in forgotten:
            cached.pop(key, None)


class FetchSessionCache:
    """All sessions of a broker, at most `max_slots`.

    When it is full, a new session takes the place of the one unused for longest, if that is more than `eviction_ms`.
    Otherwise a follower replaces a client's; and any session replaces one of its own kind that is older than
    `eviction_ms` and has fewer partitions. Followers' sessions are never evicted for those of clients, unless unused.
    """

    def __init__(self, max_slots: int, eviction_ms: int, random: Random) -> None:
        self._max_slots = max_slots
        self._eviction_ms = eviction_ms
        self._random = random
        self._by_last_use: OrderedDict[int, FetchSession] = OrderedDict()
        self._evictable_by_all: list[EvictionKey] = []
        self._evictable_by_privileged: list[EvictionKey] = []
        self.partition_count = 0
        self.eviction_count = 0

    def __len__(self) -> int:
        return len(self._by_last_use)

    @property
    def has_room(self) -> bool:
        """Whether a new session is made for certain."""
        return len(self._by_last_use) < self._max_slots

    def get(self, session_id: int) -> FetchSession | None:
        return self._by_last_use.get(session_id)

    def open(
        self,
        session_id: int,
        epoch: int,
        partitions: Collection[FetchPartition],
        forgotten: Collection[PartitionKey],
        *,
        uses_topic_ids: bool,
        follower: bool,
        now_ms: int,
    ) -> FetchContext:
        """The context of a request; requests without session fields (Fetch v4 to v6) have id 0 and epoch -1."""
        if epoch in (INITIAL_EPOCH, FINAL_EPOCH):
            if session_id != NO_SESSION_ID:
                self.remove(session_id)
            if epoch == FINAL_EPOCH:
                return FetchContext(partitions)
            return FullFetchContext(self, partitions, uses_topic_ids, follower)
        session = self._by_last_use.get(session_id)
        if session is None:
            return FetchContext((), ErrorCode.FETCH_SESSION_ID_NOT_FOUND)
        if session.epoch != epoch:
            return FetchContext((), ErrorCode.INVALID_FETCH_SESSION_EPOCH)
        if session.uses_topic_ids != uses_topic_ids:
            return FetchContext((), ErrorCode.FETCH_SESSION_TOPIC_ID_ERROR)
        session.update(partitions, forgotten)
        if not session.partitions:
            self.remove(session_id)
            return FetchContext(partitions)
        self._touch(session, now_ms)
        session.epoch = next_epoch(epoch)
        return IncrementalFetchContext(session)

    def maybe_create(
        self, partitions: dict[PartitionKey, FetchPartition], uses_topic_ids: bool, privileged: bool, now_ms: int
    ) -> FetchSession | None:
        if len(self._by_last_use) >= self._max_slots and not self._try_evict(privileged, len(partitions), now_ms):
            return None
        session_id = self._random.randrange(1, MAX_INT)
        while session_id in self._by_last_use:
            session_id = self._random.randrange(1, MAX_INT)
        session = FetchSession(session_id, privileged, uses_topic_ids, partitions, now_ms)
        self._by_last_use[session_id] = session
        self.partition_count += len(partitions)
        self._make_evictable(session)
        return session

    def remove(self, session_id: int) -> FetchSession | None:
        session = self._by_last_use.pop(session_id, None)
        if session is not None:
            if session.on_removed is not None:
                session.on_removed()
            self.partition_count -= session.eviction_key.partition_count
            discard(self._evictable_by_all, session.eviction_key)
            discard(self._evictable_by_privileged, session.eviction_key)
        return session

    def _touch(self, session: FetchSession, now_ms: int) -> None:
        may_be_evicted = session.last_used_ms - session.created_ms > self._eviction_ms
        session.last_used_ms = now_ms
        self._by_last_use.move_to_end(session.id)
        key = session.eviction_key
        has_aged = not may_be_evicted and now_ms - session.created_ms > self._eviction_ms
        if key.partition_count != len(session.partitions) or has_aged:
            discard(self._evictable_by_all, key)
            discard(self._evictable_by_privileged, key)
            self.partition_count += len(session.partitions) - key.partition_count
            session.eviction_key = EvictionKey(session.privileged, len(session.partitions), session.id)
            self._make_evictable(session)

    def _make_evictable(self, session: FetchSession) -> None:
        has_aged = session.last_used_ms - session.created_ms > self._eviction_ms
        if has_aged:
            insort(self._evictable_by_all, session.eviction_key)
        if has_aged or not session.privileged:
            insort(self._evictable_by_privileged, session.eviction_key)

    def _try_evict(self, privileged: bool, partition_count: int, now_ms: int) -> bool:
        oldest = next(iter(self._by_last_use.values()), None)
        if oldest is None:
            return False
        if now_ms - oldest.last_used_ms > self._eviction_ms:
            self.remove(oldest.id)
        else:
            evictable = self._evictable_by_privileged if privileged else self._evictable_by_all
            # Session id 0 in the key: of two equal sessions, the existing one stays.
            if not evictable or EvictionKey(privileged, partition_count, 0) < evictable[0]:
                return False
            self.remove(evictable[0].session_id)
        self.eviction_count += 1
        return True


def discard(keys: list[EvictionKey], key: EvictionKey) -> None:
    """Take a key out of a sorted list, if it is in there."""
    index = bisect_left(keys, key)
    if index < len(keys) and keys[index] == key:
        del keys[index]
