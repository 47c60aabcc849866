"""One assigned partition: its position, what is known of its log, and whether it may be fetched.

Pure. `SubscriptionState` owns these and holds its lock around every call: the user's thread seeks, pauses and consumes,
the I/O thread fetches, resets and validates. Two offsets are kept apart: `offset` is what the user has been given
(position, commit, lag), `fetch_offset` is what to ask the broker for next and runs ahead by what is buffered. `version`
counts the jumps; whatever was requested under an older version is void when it arrives.

    INITIALIZING --> FETCHING <--> AWAIT_VALIDATION     AWAIT_RESET: the broker looks up an offset
          \\------> AWAIT_RESET <-------/                AWAIT_VALIDATION: does the leader's log still hold our offset?
"""

from enum import Enum
from typing import NamedTuple

from barnabas.client.consumer.offsets import OffsetAndMetadata, OffsetReset
from barnabas.types import NO_LEADER, NO_LEADER_EPOCH, NO_TOPIC_ID, TopicId, TopicPartition

UNKNOWN_OFFSET = -1


class FetchState(Enum):
    """What a partition needs before it can be fetched."""

    INITIALIZING = "initializing"
    FETCHING = "fetching"
    AWAIT_RESET = "await_reset"
    AWAIT_VALIDATION = "await_validation"


class Truncation(NamedTuple):
    """The user's position is beyond what the leader has of that epoch, and no policy says where to go."""

    topic_partition: TopicPartition
    offset: int
    divergent_offset: OffsetAndMetadata | None


class PartitionState:
    """One assigned partition: position, leader, what is buffered. Guarded by the subscription's lock."""

    __slots__ = (
        "blocked",
        "buffered_bytes",
        "fetch_epoch",
        "fetch_offset",
        "high_watermark",
        "last_stable_offset",
        "leader",
        "leader_epoch",
        "log_start_offset",
        "offset",
        "offset_epoch",
        "parked",
        "paused",
        "pending_callback",
        "preferred_read_replica",
        "preferred_until_ms",
        "reset",
        "retry_at_ms",
        "state",
        "topic_id",
        "topic_partition",
        "version",
    )

    def __init__(self, topic_partition: TopicPartition) -> None:
        self.topic_partition = topic_partition
        self.topic_id: TopicId = NO_TOPIC_ID
        self.state = FetchState.INITIALIZING
        self.version = 0
        self.offset = UNKNOWN_OFFSET
        self.offset_epoch = NO_LEADER_EPOCH
        self.fetch_offset = UNKNOWN_OFFSET
        self.fetch_epoch = NO_LEADER_EPOCH
        self.leader = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.reset: OffsetReset | None = None
        self.paused = False
        self.pending_callback = False
        self.blocked = False
        """An error from its last fetch waits in the buffer for the user."""
        self.parked = False
        """poll must raise an error before anything is tried again."""
        self.retry_at_ms = 0
        self.high_watermark = UNKNOWN_OFFSET
        self.last_stable_offset = UNKNOWN_OFFSET
        self.log_start_offset = UNKNOWN_OFFSET
        self.preferred_read_replica = NO_LEADER
        self.preferred_until_ms = 0
        self.buffered_bytes = 0

    @property
    def has_position(self) -> bool:
        return self.state in (FetchState.FETCHING, FetchState.AWAIT_VALIDATION)

    @property
    def is_fetchable(self) -> bool:
        return (
            self.state is FetchState.FETCHING
            and not self.paused
            and not self.pending_callback
            and not self.blocked
            and self.leader >= 0
        )

    @property
    def is_deliverable(self) -> bool:
        """Whether what is buffered of it may be given to the user; while a validation runs, it waits."""
        return self.state is FetchState.FETCHING and not self.paused and not self.pending_callback

    def void(self) -> None:
        """Whatever is buffered or in flight counts no more."""
        self.version += 1
        self.buffered_bytes = 0
        self.blocked = False
        self.parked = False
        self.retry_at_ms = 0

    def seek(self, offset: int, offset_epoch: int = NO_LEADER_EPOCH) -> None:
        """A new position, to be checked against the leader by `check_leader` before it is fetched from."""
        self.void()
        self.state = FetchState.FETCHING
        self.offset = self.fetch_offset = offset
        self.offset_epoch = self.fetch_epoch = offset_epoch
        self.leader, self.leader_epoch = NO_LEADER, NO_LEADER_EPOCH
        self.reset = None

    def request_reset(self, reset: OffsetReset) -> None:
        self.void()
        self.state = FetchState.AWAIT_RESET
        self.reset = reset
        self.offset = self.fetch_offset = UNKNOWN_OFFSET
        self.offset_epoch = self.fetch_epoch = NO_LEADER_EPOCH

    def complete_reset(self, reset: OffsetReset, offset: int) -> bool:
        """Takes the offset the broker gave, unless the user has gone elsewhere or requested another reset since."""
        if self.state is not FetchState.AWAIT_RESET or self.reset != reset:
            return False
        self.seek(offset)
        return True

    def check_leader(self, leader: int, leader_epoch: int, topic_id: TopicId) -> bool:
        """Follows a change of leader; a position whose epoch is known must then be validated (KIP-320).

        True if the topic was deleted and created again: then the offset says nothing about the new one.
        """
        recreated = self.topic_id not in (NO_TOPIC_ID, topic_id) and topic_id != NO_TOPIC_ID
        if topic_id != NO_TOPIC_ID:
            self.topic_id = topic_id
        if leader < 0 or not self.has_position or (leader, leader_epoch) == (self.leader, self.leader_epoch):
            return recreated
        self.leader, self.leader_epoch = leader, leader_epoch
        self.clear_preferred_read_replica()
        self.retry_at_ms = 0
        validate = self.fetch_epoch >= 0 and leader_epoch >= 0
        self.state = FetchState.AWAIT_VALIDATION if validate else FetchState.FETCHING
        return recreated

    def complete_validation(
        self, version: int, fetch_offset: int, end_offset: int, end_epoch: int, reset: OffsetReset
    ) -> Truncation | None:
        """The leader's response for the epoch at `fetch_offset`: it ends at `end_offset` (-1: epoch unknown)."""
        if self.state is not FetchState.AWAIT_VALIDATION or (version, fetch_offset) != (
            self.version,
            self.fetch_offset,
        ):
            return None
        if end_offset >= fetch_offset and end_epoch >= 0:
            self.state = FetchState.FETCHING
            return None
        if end_offset < 0 or end_epoch < 0:
            if reset.name == "none":
                return Truncation(self.topic_partition, self.offset, None)
            self.request_reset(reset)
        elif end_offset >= self.offset:
            self._rewind_to_position()
        elif reset.name == "none":
            divergent = OffsetAndMetadata(end_offset, "", end_epoch)
            return Truncation(self.topic_partition, self.offset, divergent)
        else:
            leader, leader_epoch = self.leader, self.leader_epoch
            self.seek(end_offset, end_epoch)
            self.leader, self.leader_epoch = leader, leader_epoch
        return None

    def fetch_again(self) -> None:
        """What is buffered is of no use: fetching goes on from the user's position."""
        self.void()
        self.fetch_offset, self.fetch_epoch = self.offset, self.offset_epoch

    def _rewind_to_position(self) -> None:
        """Only what was buffered is cut off: nothing the user has seen, so it is fetched again silently."""
        self.fetch_again()
        self.state = FetchState.AWAIT_VALIDATION if self.fetch_epoch >= 0 else FetchState.FETCHING

    def on_fetched(self, next_offset: int, last_epoch: int, size: int) -> None:
        self.fetch_offset = next_offset
        self.fetch_epoch = last_epoch
        self.buffered_bytes += size

    def on_watermarks(self, high_watermark: int, last_stable_offset: int, log_start_offset: int) -> None:
        if high_watermark >= 0:
            self.high_watermark = high_watermark
        if last_stable_offset >= 0:
            self.last_stable_offset = last_stable_offset
        if log_start_offset >= 0:
            self.log_start_offset = log_start_offset

    def prefer_read_replica(self, node_id: int, until_ms: int) -> None:
        if node_id != self.preferred_read_replica:
            self.preferred_read_replica = node_id
            self.preferred_until_ms = until_ms

    def clear_preferred_read_replica(self) -> bool:
        """Whether there was one: then an error came from a follower, and the leader may know better."""
        had = self.preferred_read_replica >= 0
        self.preferred_read_replica = NO_LEADER
        return had

    def read_replica(self, now_ms: int) -> int:
        """The node to fetch from (KIP-392): the one the leader pointed at while that holds, else the leader."""
        if self.preferred_read_replica >= 0 and now_ms >= self.preferred_until_ms:
            self.preferred_read_replica = NO_LEADER
        return self.leader if self.preferred_read_replica < 0 else self.preferred_read_replica

    def lag(self, read_committed: bool) -> int | None:
        end = self.last_stable_offset if read_committed else self.high_watermark
        if end < 0 or self.offset < 0:
            return None
        return max(0, end - self.offset)
