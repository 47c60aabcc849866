"""Who leads a partition, who is in sync, and how far it is committed: one small object per replica.

The replica on this broker owns it. The produce and fetch paths call it on every request, so `check_leader` and
`on_append` are a few attribute reads if this broker is the only replica in sync. It never touches a log: it receives
the log end offset and returns the high watermark.

The high watermark is the smallest log end offset of the in-sync replicas. While an ISR change is on its way to
the controller, both the current and the proposed members count, because either may take effect.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.image import NO_PARTITION_EPOCH, PartitionImage
from barnabas.machines.partition.follower import Follower
from barnabas.types import NO_LEADER, NO_LEADER_EPOCH


class PartitionState:
    __slots__ = (
        "_followers",
        "_proposed_isr",
        "alone",
        "broker_id",
        "high_watermark",
        "in_sync_replicas",
        "is_leader",
        "leader",
        "leader_epoch",
        "leader_epoch_start_offset",
        "log_end_offset",
        "partition_epoch",
        "replicas",
    )

    def __init__(self, broker_id: int) -> None:
        self.broker_id = broker_id
        self.is_leader = False
        self.leader = NO_LEADER
        self.leader_epoch = NO_LEADER_EPOCH
        self.partition_epoch = NO_PARTITION_EPOCH
        self.replicas: tuple[int, ...] = ()
        self.in_sync_replicas: tuple[int, ...] = ()
        self.high_watermark = 0
        self.log_end_offset = 0
        self.leader_epoch_start_offset = 0
        self._followers: dict[int, Follower] = {}
        self._proposed_isr: tuple[int, ...] | None = None
        self.alone = False
        """Whether this broker leads and no other replica is in sync or proposed: all that it has is committed."""

    def apply(self, image: PartitionImage, log_end_offset: int, high_watermark: int, now_ms: int = 0) -> bool:
        """Adopt the controller's decision; returns whether a new leader epoch began. An older state is ignored."""
        if image.partition_epoch < self.partition_epoch or image.leader_epoch < self.leader_epoch:
            return False
        new_epoch = image.leader_epoch > self.leader_epoch
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.in_sync_replicas = image.in_sync_replicas
        self.is_leader = image.leader == self.broker_id
        self._proposed_isr = None
        self.log_end_offset = log_end_offset
        self.high_watermark = min(max(self.high_watermark, high_watermark), log_end_offset)
        if new_epoch:
            self.leader_epoch_start_offset = log_end_offset
            self._followers = {}
        if self.is_leader:
            self._followers = {
                each: self._followers.get(each) or Follower(now_ms) for each in image.replicas if each != self.broker_id
            }
            self._advance()
        self.alone = self.is_leader and image.in_sync_replicas == (self.broker_id,)
        return new_epoch

    def check_leader(self) -> None:
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raises unless this broker leads in the epoch that the client expects (any, if it gives none)."""
        if current_leader_epoch != NO_LEADER_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_min_in_sync_replicas(self, min_in_sync_replicas: int) -> None:
        """Before an append with acks all. The committed ISR counts: a proposed one may be rejected.

        No more can be required than there are replicas, or a topic with one of them could never be written to.
        """
        min_in_sync_replicas = min(min_in_sync_replicas, len(self.replicas))
        if len(self.in_sync_replicas) < min_in_sync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.in_sync_replicas)} replica(s) in sync, min.insync.replicas is {min_in_sync_replicas}",
            )

    def on_append(self, log_end_offset: int) -> int:
        """The leader wrote up to here; returns the high watermark."""
        self.log_end_offset = log_end_offset
        if self.alone:
            self.high_watermark = log_end_offset
            return log_end_offset
        return self._advance()

    def on_truncate(self, log_end_offset: int) -> None:
        """A follower truncated records that the leader does not have."""
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def on_leader_high_watermark(self, high_watermark: int, log_end_offset: int) -> int:
        """A follower received the leader's high watermark; its own never exceeds its log end."""
        self.log_end_offset = log_end_offset
        self.high_watermark = max(self.high_watermark, min(high_watermark, log_end_offset))
        return self.high_watermark

    def on_follower_fetch(self, replica_id: int, fetch_offset: int, now_ms: int) -> int:
        """A follower fetches from here, so it has everything before; returns the high watermark."""
        follower = self._followers.get(replica_id)
        if follower is None:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica_id} is not a replica of the partition")
        follower.on_fetch(fetch_offset, self.log_end_offset, now_ms)
        return self._advance()

    def check_follower(self, replica_id: int, current_leader_epoch: int) -> None:
        """Raises unless the broker that fetches is one of the partition's other replicas.

        One that gives the right epoch may know of a reassignment before this broker does, so it must retry.
        """
        if replica_id not in self._followers:
            known = current_leader_epoch == NO_LEADER_EPOCH
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is not a replica of the partition",
            )

    def propose_isr_expansion(self, replica_id: int) -> tuple[int, ...] | None:
        """The ISR to request from the controller if this follower has caught up; None if no change is needed."""
        follower = self._followers.get(replica_id)
        if follower is None or self._proposed_isr is not None or replica_id in self.in_sync_replicas:
            return None
        # Below the epoch's start it may lack records that an earlier leader committed.
        if follower.log_end_offset < max(self.high_watermark, self.leader_epoch_start_offset):
            return None
        self._proposed_isr = (*self.in_sync_replicas, replica_id)
        self.alone = False
        return self._proposed_isr

    def propose_isr_shrink(self, now_ms: int, max_lag_ms: int) -> tuple[int, ...] | None:
        """The ISR without replicas that have lagged for too long; None if no change is needed."""
        if self.alone or not self.is_leader or self._proposed_isr is not None:
            return None
        staying = tuple(each for each in self.in_sync_replicas if not self._lags(each, now_ms, max_lag_ms))
        if staying == self.in_sync_replicas:
            return None
        self._proposed_isr = staying
        return staying

    def on_isr_change_rejected(self) -> int:
        """The controller rejected the change: the committed ISR applies again. Returns the high watermark."""
        self._proposed_isr = None
        self.alone = self.is_leader and self.in_sync_replicas == (self.broker_id,)
        return self._advance()

    def check(self) -> None:
        assert 0 <= self.high_watermark <= self.log_end_offset, (self.high_watermark, self.log_end_offset)
        assert self.is_leader == (self.leader == self.broker_id and self.broker_id in self.replicas)
        assert set(self.in_sync_replicas) <= set(self.replicas)
        if self.is_leader:
            assert self.broker_id in self.in_sync_replicas
            for each in self.in_sync_replicas:
                assert each == self.broker_id or each in self._followers

    def _lags(self, replica_id: int, now_ms: int, max_lag_ms: int) -> bool:
        if replica_id == self.broker_id:
            return False
        follower = self._followers[replica_id]
        return follower.log_end_offset < self.log_end_offset and now_ms - follower.caught_up_ms > max_lag_ms

    def _advance(self) -> int:
        lowest = self.log_end_offset
        for each in self.in_sync_replicas + (self._proposed_isr or ()):
            if each != self.broker_id:
                lowest = min(lowest, self._followers[each].log_end_offset)
        # A follower that was just elected leader, or one that joins, may be behind: the high watermark never goes back.
        self.high_watermark = max(self.high_watermark, lowest)
        return self.high_watermark
