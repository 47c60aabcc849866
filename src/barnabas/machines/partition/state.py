"""Who leads a partition, who is in sync, and how far it is committed: one small object per replica.

The replica on this broker owns it. The produce and fetch paths call it on every request, so `check_leader` and
`on_append` are a few attribute reads if this broker has the only replica. It never touches a log: it receives the log
end offset and returns the high watermark.

The high watermark is the smallest log end offset of the in-sync replicas. While an ISR change is on its way to
the controller, both the current and the proposed members count, because either may take effect (KIP-497). With fewer
in-sync replicas than min.insync.replicas it stands still (KAFKA-15583): whatever moved it then could be lost with fewer
brokers than that.
"""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.image import NO_PARTITION_EPOCH, PartitionImage
from barnabas.machines.partition.follower import NEVER_MS, NO_BROKER_EPOCH, Follower
from barnabas.types import NO_LEADER, NO_LEADER_EPOCH

MAX_LAG_MS = 30_000


class PartitionState:
    __slots__ = (
        "_configured_min_isr",
        "_counted",
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
        "leader_high_watermark",
        "log_end_offset",
        "min_in_sync_replicas",
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
        self.leader_high_watermark = 0
        """As a follower last heard of it: how far it is behind."""
        self.min_in_sync_replicas = 1
        """As it applies: no more can be required than there are replicas, or one replica could never be written to."""
        self._configured_min_isr = 1
        self._followers: dict[int, Follower] = {}
        self._counted: list[Follower] = []
        """The followers that the high watermark waits for."""
        self._proposed_isr: tuple[int, ...] | None = None
        self.alone = False
        """Whether this broker leads and there is no other replica: all that it has is committed."""

    @property
    def is_under_min_isr(self) -> bool:
        return len(self.in_sync_replicas) < self.min_in_sync_replicas

    @property
    def proposed_isr(self) -> tuple[int, ...] | None:
        """The ISR that the controller was asked for and has not decided on."""
        return self._proposed_isr

    @property
    def followers(self) -> dict[int, Follower]:
        """Of a leader: its other replicas."""
        return self._followers

    def apply(self, image: PartitionImage, log_end_offset: int, high_watermark: int, now_ms: int = 0) -> bool:
        """Adopt the controller's decision; returns whether a new leader epoch began. An older state is ignored.

        One of the same partition epoch says nothing new about the ISR: a change on its way to the controller stays.
        """
        if image.partition_epoch < self.partition_epoch or image.leader_epoch < self.leader_epoch:
            return False
        new_epoch = image.leader_epoch > self.leader_epoch
        if new_epoch or image.partition_epoch > self.partition_epoch or not self.replicas:
            self.in_sync_replicas = image.in_sync_replicas
            self._proposed_isr = None
        self.leader = image.leader
        self.leader_epoch = image.leader_epoch
        self.partition_epoch = image.partition_epoch
        self.replicas = image.replicas
        self.is_leader = image.leader == self.broker_id
        self.log_end_offset = log_end_offset
        self.high_watermark = min(max(self.high_watermark, high_watermark), log_end_offset)
        if new_epoch:
            self.leader_epoch_start_offset = log_end_offset
            self._followers = {}
        if self.is_leader:
            self._followers = {
                each: self._followers.get(each) or self._new_follower(each, now_ms)
                for each in image.replicas
                if each != self.broker_id
            }
            for each in self.in_sync_replicas:
                if each in self._followers:
                    # It has joined. If the controller removes it later, the high watermark must not wait for it.
                    self._followers[each].joins = False
        else:
            self._followers = {}
        self._on_members_changed()
        return new_epoch

    def set_min_in_sync_replicas(self, configured: int) -> int:
        """The topic's min.insync.replicas; returns the high watermark, which may have waited for it."""
        self._configured_min_isr = configured
        self._on_members_changed()
        return self.high_watermark

    # --- checks ---

    def check_leader(self) -> None:
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_leader_epoch(self, current_leader_epoch: int) -> None:
        """Raises unless this broker leads in the epoch that the client expects (any, if it gives none)."""
        if current_leader_epoch != NO_LEADER_EPOCH:
            self.check_replica_epoch(current_leader_epoch)
        if not self.is_leader:
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER)

    def check_replica_epoch(self, current_leader_epoch: int) -> None:
        """The same for a reader that any replica may serve (KIP-392)."""
        if current_leader_epoch != NO_LEADER_EPOCH and current_leader_epoch != self.leader_epoch:
            if current_leader_epoch < self.leader_epoch:
                raise KafkaError(ErrorCode.FENCED_LEADER_EPOCH)
            raise KafkaError(ErrorCode.UNKNOWN_LEADER_EPOCH)

    def check_min_in_sync_replicas(self) -> None:
        """Before an append with acks all. The committed ISR counts: a proposed one may be rejected."""
        if len(self.in_sync_replicas) < self.min_in_sync_replicas:
            raise KafkaError(
                ErrorCode.NOT_ENOUGH_REPLICAS,
                f"{len(self.in_sync_replicas)} replica(s) in sync, min.insync.replicas is {self.min_in_sync_replicas}",
            )

    def check_follower(
        self, replica_id: int, current_leader_epoch: int = NO_LEADER_EPOCH, broker_epoch: int = NO_BROKER_EPOCH
    ) -> None:
        """Raises unless the broker that fetches is one of the partition's other replicas, and not a former self.

        One that gives the right epoch may know of a reassignment before this broker does, so it must retry.
        """
        follower = self._followers.get(replica_id)
        if follower is None:
            known = current_leader_epoch == NO_LEADER_EPOCH
            raise KafkaError(
                ErrorCode.NOT_LEADER_OR_FOLLOWER if known else ErrorCode.UNKNOWN_LEADER_EPOCH,
                f"broker {replica_id} is not a replica of the partition",
            )
        if NO_BROKER_EPOCH != broker_epoch < follower.broker_epoch:
            # A fetch that was sent before the broker's last start (KIP-903).
            raise KafkaError(ErrorCode.NOT_LEADER_OR_FOLLOWER, f"broker {replica_id} has been started again since")

    # --- offsets ---

    def on_append(self, log_end_offset: int) -> int:
        """The leader wrote up to here; returns the high watermark."""
        self.log_end_offset = log_end_offset
        if self.alone:
            self.high_watermark = log_end_offset
            return log_end_offset
        return self._advance()

    def on_follower_fetch(
        self,
        replica_id: int,
        fetch_offset: int,
        now_ms: int,
        broker_epoch: int = NO_BROKER_EPOCH,
        eligible: bool = True,
    ) -> int:
        """A follower fetched from here, so it has everything before; returns the high watermark.

        Only to be called once the read was good (KAFKA-8400). `eligible`: the broker may join the ISR.
        """
        self.check_follower(replica_id, broker_epoch=broker_epoch)
        follower = self._followers[replica_id]
        follower.broker_epoch = broker_epoch
        follower.on_fetch(fetch_offset, self.log_end_offset, now_ms)
        if not follower.joins and eligible and fetch_offset >= self.log_end_offset and self._is_outside(replica_id):
            follower.joins = True
            self._counted.append(follower)
        return self._advance()

    def on_follower_ineligible(self, replica_id: int) -> int:
        """Its broker is gone, leaves or was started again, so it does not join; returns the high watermark."""
        self._followers[replica_id].joins = False
        self._on_members_changed()
        return self.high_watermark

    def on_truncate(self, log_end_offset: int) -> None:
        """A follower truncated records that the leader does not have."""
        self.log_end_offset = log_end_offset
        self.high_watermark = min(self.high_watermark, log_end_offset)

    def on_leader_high_watermark(self, high_watermark: int, log_end_offset: int) -> int:
        """A follower received the leader's high watermark; its own never exceeds its log end."""
        self.leader_high_watermark = high_watermark
        self.log_end_offset = log_end_offset
        self.high_watermark = max(self.high_watermark, min(high_watermark, log_end_offset))
        return self.high_watermark

    # --- who is in sync ---

    def propose_isr_expansion(
        self, replica_id: int, now_ms: int = 0, max_lag_ms: int = MAX_LAG_MS
    ) -> tuple[int, ...] | None:
        """The ISR to request from the controller if this follower has caught up; None if no change is needed.

        The caller knows that the broker is neither fenced nor leaving, and that its epoch is the one of its fetch.
        """
        follower = self._followers.get(replica_id)
        if follower is None or self._proposed_isr is not None or replica_id in self.in_sync_replicas:
            return None
        # Below the epoch's start it may lack records that an earlier leader committed (KAFKA-7128).
        if follower.log_end_offset < max(self.high_watermark, self.leader_epoch_start_offset):
            return None
        # Under min ISR the high watermark stands still and is soon reached by a replica that lags (KAFKA-19996).
        if self.is_under_min_isr and not follower.is_caught_up(self.log_end_offset, now_ms, max_lag_ms):
            return None
        self._propose((*self.in_sync_replicas, replica_id))
        return self._proposed_isr

    def propose_isr_shrink(self, now_ms: int, max_lag_ms: int) -> tuple[int, ...] | None:
        """The ISR without replicas that have lagged for too long; None if no change is needed.

        Called at intervals of half the lag. A follower that has everything has caught up at this moment: it need not
        fetch the partition for that.
        """
        if not self.is_leader or not self._followers:
            return None
        lagging = []
        for each, follower in self._followers.items():
            if follower.log_end_offset >= self.log_end_offset:
                follower.caught_up_ms = max(follower.caught_up_ms, now_ms)
            elif now_ms - follower.caught_up_ms > max_lag_ms:
                follower.joins = False
                lagging.append(each)
        if not lagging:
            return None
        if self._proposed_isr is None:
            staying = tuple(each for each in self.in_sync_replicas if each not in lagging)
            if staying != self.in_sync_replicas:
                self._propose(staying)
                return staying
        self._on_members_changed()
        return None

    def propose_resignation(self) -> tuple[int, ...] | None:
        """The ISR without this broker, whose disk has failed; None if nobody else is in sync, or a change is open."""
        others = tuple(each for each in self.in_sync_replicas if each != self.broker_id)
        if not self.is_leader or not others or self._proposed_isr is not None:
            return None
        self._propose(others)
        return others

    def on_isr_change_rejected(self) -> int:
        """The controller rejected the change: the committed ISR applies again. Returns the high watermark."""
        for each in self._proposed_isr or ():
            if each != self.broker_id and each not in self.in_sync_replicas:
                self._followers[each].joins = False
        self._proposed_isr = None
        self._on_members_changed()
        return self.high_watermark

    def broker_epochs(self, replicas: tuple[int, ...], own_epoch: int) -> tuple[int, ...]:
        """For a proposal: the epoch in which each broker fetched, so that a restarted one is refused (KIP-903)."""
        return tuple(own_epoch if each == self.broker_id else self._followers[each].broker_epoch for each in replicas)

    def check(self) -> None:
        assert 0 <= self.high_watermark <= self.log_end_offset, (self.high_watermark, self.log_end_offset)
        assert self.is_leader == (self.leader == self.broker_id and self.broker_id in self.replicas)
        assert set(self.in_sync_replicas) <= set(self.replicas)
        if self.is_leader:
            assert self.broker_id in self.in_sync_replicas
            for each in self.in_sync_replicas:
                assert each == self.broker_id or each in self._followers

    def _new_follower(self, replica_id: int, now_ms: int) -> Follower:
        """A member of the ISR gets the time to show itself; another one has to catch up first."""
        return Follower(now_ms if replica_id in self.in_sync_replicas else NEVER_MS)

    def _is_outside(self, replica_id: int) -> bool:
        return replica_id not in self.in_sync_replicas and replica_id not in (self._proposed_isr or ())

    def _propose(self, in_sync_replicas: tuple[int, ...]) -> None:
        self._proposed_isr = in_sync_replicas
        self._on_members_changed()

    def _on_members_changed(self) -> None:
        members = self.in_sync_replicas + (self._proposed_isr or ())
        self._counted = [follower for each, follower in self._followers.items() if each in members or follower.joins]
        self.min_in_sync_replicas = min(self._configured_min_isr, max(1, len(self.replicas)))
        self.alone = self.is_leader and self.replicas == (self.broker_id,) == self.in_sync_replicas
        if self.is_leader:
            self._advance()

    def _advance(self) -> int:
        if len(self.in_sync_replicas) < self.min_in_sync_replicas:
            return self.high_watermark
        lowest = self.log_end_offset
        for follower in self._counted:
            lowest = min(lowest, follower.log_end_offset)
        # A follower that was just elected leader, or one that joins, may be behind: the high watermark never goes back.
        self.high_watermark = max(self.high_watermark, lowest)
        return self.high_watermark
