"""What a follower fetches from one leader: partitions, their offsets and errors, and the fetch session. Pure.

`server/leader_fetcher` drives it: it sends what `next_request` plans, and reports what came of it. A partition is

    FETCHING   in the session, at the end of its log
    BUSY       left out while its log is truncated, or the leader is asked where its own ends
    DELAYED    left out for a while after an error
    FAILED     left out until the controller decides something new about it

The session is incremental (KIP-227): a request names only partitions that are new or whose position has changed since
the last one, so its cost depends on the partitions with news. A response counts only while the position that was asked
for is still the current one: whatever came in between (a new leader epoch, a truncation, another topic of the same
name) makes it a late response, which is dropped.
"""

from enum import IntEnum
from typing import NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.fetch_session import INITIAL_EPOCH, next_epoch

Key = tuple[bytes, int]
"""Topic id and partition."""
NOT_SENT = -1
FIRST_BACKOFF_MS = 50
NO_SESSION_ID = 0


class Phase(IntEnum):
    FETCHING = 0
    BUSY = 1
    DELAYED = 2
    FAILED = 3


class Remedy(IntEnum):
    """What a follower does about an error."""

    RETRY = 0
    START_OVER = 1
    """Its log ends before the leader's begins."""
    LOOK_UP = 2
    """Ask the leader where its log ends."""


class FollowedPartition:
    """One object per leader epoch, so that nothing of an earlier epoch can be taken for it."""

    __slots__ = (
        "due_ms",
        "failures",
        "fetch_offset",
        "key",
        "last_fetched_epoch",
        "leader_epoch",
        "log_start_offset",
        "phase",
        "sent_in",
        "sent_offset",
    )

    def __init__(
        self, key: Key, leader_epoch: int, fetch_offset: int, last_fetched_epoch: int, log_start_offset: int
    ) -> None:
        self.key = key
        self.leader_epoch = leader_epoch
        self.fetch_offset = fetch_offset
        self.last_fetched_epoch = last_fetched_epoch
        """The epoch of the last batch in the log: with it the leader finds where the two logs part (KIP-595)."""
        self.log_start_offset = log_start_offset
        self.phase = Phase.FETCHING
        self.sent_offset = NOT_SENT
        self.sent_in = 0
        """Number of the request that last named it."""
        self.failures = 0
        self.due_ms = 0

    def __repr__(self) -> str:
        return f"FollowedPartition({self.key!r}, offset={self.fetch_offset}, {self.phase.name})"


class FetchPlan(NamedTuple):
    session_id: int
    session_epoch: int
    partitions: list[FollowedPartition]
    forgotten: list[Key]
    number: int
    """Counts requests, through all sessions."""


class ReplicaFetch:
    def __init__(self) -> None:
        self.partitions: dict[Key, FollowedPartition] = {}
        self.session_id = NO_SESSION_ID
        self.session_epoch = INITIAL_EPOCH
        """Of the next request."""
        self._in_session: set[Key] = set()
        self._changed: dict[Key, None] = {}
        """Partitions whose position the leader does not know."""
        self._forgotten: dict[Key, None] = {}
        self._delayed: dict[Key, FollowedPartition] = {}
        self._fetching_count = 0
        self._last_number = 0

    @property
    def has_session(self) -> bool:
        return self.session_epoch != INITIAL_EPOCH

    @property
    def is_fetching(self) -> bool:
        """Whether any partition is fetched."""
        return self._fetching_count > 0

    @property
    def next_due_ms(self) -> int | None:
        """When the next partition has waited long enough after its error."""
        return min((each.due_ms for each in self._delayed.values()), default=None)

    # --- which partitions ---

    def follow(self, partition: FollowedPartition) -> None:
        """From now on, or again under another leader epoch."""
        self.unfollow(partition.key)
        self.partitions[partition.key] = partition
        self._resume(partition)

    def unfollow(self, key: Key) -> None:
        partition = self.partitions.pop(key, None)
        if partition is not None:
            self._leave(partition, Phase.FAILED)

    # --- the session ---

    def next_request(self) -> FetchPlan | None:
        """None if nothing is to be fetched."""
        if not self._fetching_count:
            self.reset_session()
            return None
        session_id, epoch = self.session_id, self.session_epoch
        if epoch == INITIAL_EPOCH:
            wanted = [each for each in self.partitions.values() if each.phase is Phase.FETCHING]
            forgotten: list[Key] = []
            self._in_session = {each.key for each in wanted}
        else:
            wanted = [self.partitions[key] for key in self._changed]
            forgotten = list(self._forgotten)
            self._in_session.update(self._changed)
            self._in_session.difference_update(forgotten)
            self.session_epoch = next_epoch(epoch)
        self._changed, self._forgotten = {}, {}
        # Partitions of one topic follow each other in the request.
        wanted.sort(key=_key)
        self._last_number += 1
        for partition in wanted:
            partition.sent_offset = partition.fetch_offset
            partition.sent_in = self._last_number
        return FetchPlan(session_id, epoch, wanted, forgotten, self._last_number)

    def on_response(self, session_epoch: int, error: ErrorCode, session_id: int) -> bool:
        """Of a request with that epoch; whether its partitions count."""
        if error is not ErrorCode.NONE:
            self.reset_session()
            return False
        if session_epoch == INITIAL_EPOCH:
            self.session_id = session_id
            if session_id != NO_SESSION_ID:
                self.session_epoch = next_epoch(INITIAL_EPOCH)
            # Else the leader has no room for a session: all partitions go into each request.
        return True

    def reset_session(self) -> None:
        """The connection is lost or the leader has no such session: the next request names everything."""
        self.session_epoch = INITIAL_EPOCH
        self._in_session.clear()
        self._changed.clear()
        self._forgotten.clear()
        for partition in self.partitions.values():
            partition.sent_offset = NOT_SENT

    # --- what came of it ---

    def current(self, key: Key, number: int | None = None) -> FollowedPartition | None:
        """The partition that a response is about, unless the response is late.

        `number` of the request (of the last one, if None): an earlier one than that which named the partition may have
        been about the same offset in another leader epoch.
        """
        partition = self.partitions.get(key)
        if (
            partition is None
            or partition.phase is not Phase.FETCHING
            or partition.sent_offset != partition.fetch_offset
            or (number is not None and number < partition.sent_in)
        ):
            return None
        return partition

    def on_fetched(
        self, partition: FollowedPartition, log_end_offset: int, last_epoch: int, log_start_offset: int
    ) -> None:
        """What was fetched is in the log."""
        partition.failures = 0
        if log_end_offset != partition.fetch_offset or log_start_offset != partition.log_start_offset:
            self._move(partition, log_end_offset, last_epoch, log_start_offset)
            self._changed[partition.key] = None

    def pause(self, partition: FollowedPartition) -> None:
        """It is left out while its log is changed or its leader is asked."""
        if self.partitions.get(partition.key) is partition:
            self._leave(partition, Phase.BUSY)

    def resume(self, partition: FollowedPartition, log_end_offset: int, last_epoch: int, log_start_offset: int) -> None:
        """After `pause`, with the log as it is now; nothing happens if it is not followed any more."""
        if self.partitions.get(partition.key) is partition and partition.phase is Phase.BUSY:
            self._move(partition, log_end_offset, last_epoch, log_start_offset)
            self._resume(partition)

    def delay(self, partition: FollowedPartition, now_ms: int, backoff_ms: int) -> None:
        """After an error. The pauses grow, since most errors mean that one of the two is a moment behind."""
        if self.partitions.get(partition.key) is not partition:
            return
        self._leave(partition, Phase.DELAYED)
        partition.due_ms = now_ms + min(FIRST_BACKOFF_MS << min(partition.failures, 20), backoff_ms)
        partition.failures += 1
        self._delayed[partition.key] = partition

    def fail(self, partition: FollowedPartition) -> None:
        """Its disk has failed."""
        if self.partitions.get(partition.key) is partition:
            self._leave(partition, Phase.FAILED)

    def wake(self, now_ms: int) -> bool:
        """Those that have waited long enough go on; whether there are any."""
        due = [each for each in self._delayed.values() if each.due_ms <= now_ms]
        for partition in due:
            self._resume(partition)
        return bool(due)

    def _move(self, partition: FollowedPartition, offset: int, last_epoch: int, log_start_offset: int) -> None:
        partition.fetch_offset = offset
        partition.last_fetched_epoch = last_epoch
        partition.log_start_offset = log_start_offset

    def _resume(self, partition: FollowedPartition) -> None:
        self._delayed.pop(partition.key, None)
        partition.phase = Phase.FETCHING
        self._fetching_count += 1
        partition.sent_offset = NOT_SENT
        self._forgotten.pop(partition.key, None)
        self._changed[partition.key] = None

    def _leave(self, partition: FollowedPartition, phase: Phase) -> None:
        if partition.phase is Phase.FETCHING:
            self._fetching_count -= 1
        partition.phase = phase
        self._delayed.pop(partition.key, None)
        self._changed.pop(partition.key, None)
        if partition.key in self._in_session:
            self._forgotten[partition.key] = None


def remedy_for(error: ErrorCode, log_end_offset: int, leader_log_start_offset: int) -> Remedy:
    """`leader_log_start_offset` is in the response to a fetch that is out of range, else -1."""
    if error is not ErrorCode.OFFSET_OUT_OF_RANGE:
        return Remedy.RETRY
    return Remedy.START_OVER if leader_log_start_offset > log_end_offset else Remedy.LOOK_UP


def truncation_offset(
    leader_epoch: int, leader_end_offset: int, own_epoch: int, own_end_offset: int, log_end_offset: int
) -> int:
    """Where a follower cuts its log, of which the leader says that it parts from its own (KIP-101, KIP-279).

    `leader_epoch` and its end are what the leader returned for the follower's last epoch: the largest epoch up to that
    which the leader knows. `own_epoch` and its end are the same question put to the follower's own log. Never does the
    high watermark count: it may lag behind what was committed, and what lies above it may be committed.
    """
    if own_epoch < 0:
        # The own log knows no epochs: all that the leader did not have then goes.
        return min(leader_end_offset, log_end_offset)
    if own_epoch != leader_epoch:
        # The own log does not know the leader's epoch either. Cut what came after the one below, and ask again.
        return min(own_end_offset, log_end_offset)
    return min(leader_end_offset, own_end_offset, log_end_offset)


def _key(partition: FollowedPartition) -> Key:
    return partition.key
