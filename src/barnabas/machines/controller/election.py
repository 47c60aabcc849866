"""Who leads a partition: the strategies, as pure functions. `partition_change.py` applies what they choose.

Only an in-sync replica that is active may lead; while the ISR is empty an eligible one (KIP-966), and if there is none
of those either, the last known leader. Any other replica is chosen only where an unclean election is allowed.
"""

from collections.abc import Callable, Container
from enum import Enum
from typing import NamedTuple

from barnabas.machines.controller.image import PartitionImage
from barnabas.types import NO_LEADER


class Election(Enum):
    """Why a leader is chosen."""

    OFFLINE = "offline"
    """Its leader is gone, or it never had one."""
    UNCLEAN = "offline, unclean allowed"
    REASSIGNMENT = "reassignment"
    """The leader may no longer be among the replicas."""
    PREFERRED = "preferred"
    CONTROLLED_SHUTDOWN = "controlled shutdown"
    """The leader is about to stop, and no longer active."""


class Surroundings(NamedTuple):
    """What the next state of a partition depends on besides the partition."""

    active: Container[int]
    """Brokers that may be elected: registered and not shutting down."""
    stopping: Container[int] = ()
    """Brokers that are shutting down: they go on leading what nobody else can lead."""
    min_isr: int = 1
    """As configured; it counts for no more than there are replicas."""
    election: Election = Election.OFFLINE
    leaving: Container[int] = ()
    """Brokers that are gone, shutting down, or registered again: out of the ISR, and no longer the leader they were."""
    lost_records: Container[int] = ()
    """Brokers that came back from an unclean stop, or without a directory."""
    wiped: Container[int] = ()
    """Those of them without a directory: not even the last known leader."""


class Draft:
    """The next state of a partition, while it is worked out. Cheaper to change than an image: elections are many."""

    __slots__ = (
        "adding_replicas",
        "eligible_leader_replicas",
        "in_sync_replicas",
        "leader",
        "leader_recovering",
        "removing_replicas",
        "replicas",
    )

    def __init__(self, target: PartitionImage) -> None:
        self.replicas = target.replicas
        self.in_sync_replicas = target.in_sync_replicas
        self.leader = target.leader
        self.adding_replicas = target.adding_replicas
        self.removing_replicas = target.removing_replicas
        self.leader_recovering = target.leader_recovering
        self.eligible_leader_replicas = target.eligible_leader_replicas


class Choice(NamedTuple):
    leader: int
    unclean: bool = False


def elect(partition: PartitionImage, draft: Draft, around: Surroundings) -> Choice:
    """`draft` has the ISR and the eligible replicas of the next state."""
    return _STRATEGIES[around.election](partition, draft, around)


def _keep_or_first(partition: PartitionImage, draft: Draft, around: Surroundings) -> Choice:
    """The leader stays if it may lead; else the first replica that may."""
    if partition.leader not in around.leaving and _may_lead(partition.leader, draft, around):
        return Choice(partition.leader)
    for replica in draft.replicas:
        if _may_lead(replica, draft, around):
            return Choice(replica)
    if partition.leader in around.stopping and partition.leader in draft.in_sync_replicas:
        return Choice(partition.leader)
    return _last_known_leader(partition, draft, around)


def _elect_unclean(partition: PartitionImage, draft: Draft, around: Surroundings) -> Choice:
    choice = _keep_or_first(partition, draft, around)
    if choice.leader != NO_LEADER:
        return choice
    leader = next((replica for replica in draft.replicas if replica in around.active), NO_LEADER)
    return Choice(leader, unclean=leader != NO_LEADER)


def _elect_preferred(partition: PartitionImage, draft: Draft, around: Surroundings) -> Choice:
    if _may_lead(draft.replicas[0], draft, around):
        return Choice(draft.replicas[0])
    return _keep_or_first(partition, draft, around)


_STRATEGIES: dict[Election, Callable[[PartitionImage, Draft, Surroundings], Choice]] = {
    Election.OFFLINE: _keep_or_first,
    Election.UNCLEAN: _elect_unclean,
    Election.REASSIGNMENT: _keep_or_first,
    Election.PREFERRED: _elect_preferred,
    Election.CONTROLLED_SHUTDOWN: _keep_or_first,
}


def _may_lead(replica: int, draft: Draft, around: Surroundings) -> bool:
    candidates = draft.in_sync_replicas or draft.eligible_leader_replicas
    return replica in candidates and replica in around.active


def _last_known_leader(partition: PartitionImage, draft: Draft, around: Surroundings) -> Choice:
    if draft.in_sync_replicas or draft.eligible_leader_replicas:
        return Choice(NO_LEADER)
    last = last_leader_of(partition)
    if last in around.wiped or last not in around.active or last not in draft.replicas:
        return Choice(NO_LEADER)
    return Choice(last, unclean=True)


def last_leader_of(partition: PartitionImage) -> int:
    if partition.leader != NO_LEADER:
        return partition.leader
    if partition.last_known_leader == NO_LEADER and len(partition.in_sync_replicas) == 1:
        return partition.in_sync_replicas[0]  # written by a version that kept no last known leader
    return partition.last_known_leader
