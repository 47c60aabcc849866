"""The timers of a consumer group's members.

consumer-session    no heartbeat for so long: the member is removed
consumer-rebalance  did not give up partitions within its rebalance time-out
consumer-join       classic member, asked to join again, has not
consumer-sync       classic member joined, and has not asked for its assignment
"""

from barnabas.machines.group.consumer.group import ConsumerGroup
from barnabas.machines.group.consumer.member import ConsumerMember
from barnabas.machines.group.outcome import Outcome, TimerName, timer_key

SESSION_TIMER = "consumer-session"
REBALANCE_TIMER = "consumer-rebalance"
JOIN_TIMER = "consumer-join"
SYNC_TIMER = "consumer-sync"
ALL_TIMERS = (SESSION_TIMER, REBALANCE_TIMER, JOIN_TIMER, SYNC_TIMER)


class Deadlines:
    __slots__ = ()

    def arm(self, kind: str, group: ConsumerGroup, member_id: str, delay_ms: int, outcome: Outcome) -> None:
        key = timer_key(kind, group.group_id, member_id)
        group.deadlines[key] = outcome.arm(key, delay_ms)

    def arm_if_absent(self, kind: str, group: ConsumerGroup, member_id: str, delay_ms: int, outcome: Outcome) -> None:
        if timer_key(kind, group.group_id, member_id) not in group.deadlines:
            self.arm(kind, group, member_id, delay_ms, outcome)

    def arm_rebalance(self, group: ConsumerGroup, member: ConsumerMember, outcome: Outcome) -> None:
        """Set again for each set of partitions to give up: every set gets its own time."""
        self.arm(REBALANCE_TIMER, group, member.member_id, member.rebalance_timeout_ms, outcome)

    def cancel_rebalance(self, group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
        self.cancel(REBALANCE_TIMER, group, member_id, outcome)

    def cancel(self, kind: str, group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
        key = timer_key(kind, group.group_id, member_id)
        if group.deadlines.pop(key, None) is not None:
            outcome.cancel(key)

    def cancel_all(self, group: ConsumerGroup, member_id: str, outcome: Outcome) -> None:
        for kind in ALL_TIMERS:
            self.cancel(kind, group, member_id, outcome)

    def is_due(self, group: ConsumerGroup, name: TimerName, outcome: Outcome) -> bool:
        """Forgets it, if so."""
        key = timer_key(*name)
        deadline_ms = group.deadlines.get(key)
        if deadline_ms is None or outcome.now.monotonic_ms < deadline_ms:
            return False
        del group.deadlines[key]
        return True
