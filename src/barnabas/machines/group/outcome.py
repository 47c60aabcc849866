"""The outcome of one step of a group shard, collected while it runs, and the names of its timers.

A timer is named `kind:group` or `kind:group:member`, so that no registry is needed between the code that
sets it and the table of `GroupShard.expire`. A colon in the id of a group is written as %3A.
"""

from collections.abc import Callable
from functools import partial
from typing import Any, Literal, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import (
    NOTHING,
    CoordinatorDecision,
    CoordinatorRecord,
    Now,
    ProducerIdAndEpoch,
    Token,
)
from barnabas.types import GroupId


class TimerName(NamedTuple):
    kind: str
    group_id: GroupId = GroupId("")
    member_id: str = ""


def timer_key(kind: str, group: GroupId | Literal[""], member_id: str | None = None) -> str:
    name = group.replace("%", "%25").replace(":", "%3A") if ":" in group or "%" in group else group
    return f"{kind}:{name}" if member_id is None else f"{kind}:{name}:{member_id}"


def read_timer_key(key: str) -> TimerName:
    kind, group, *member_id = key.split(":", 2)
    if "%" in group:
        group = group.replace("%3A", ":").replace("%25", "%")
    return TimerName(kind, GroupId(group), *member_id)


class Outcome:
    """Filled by the parts of the shard during one `decide` or `expire`; never kept beyond it."""

    __slots__ = ("if_too_large", "now", "records", "replies", "timers", "transaction", "when_refused")

    def __init__(self, now: Now) -> None:
        self.now = now
        self.records: list[CoordinatorRecord] = []
        self.replies: list[tuple[Token, Any]] = []
        self.timers: dict[str, int | None] = {}
        self.transaction: ProducerIdAndEpoch | None = None
        self.if_too_large: ErrorCode | None = None
        self.when_refused: Callable[[Outcome], None] | None = None

    def reply(self, token: Token, response: Any) -> None:
        self.replies.append((token, response))

    def arm(self, key: str, delay_ms: int) -> int:
        """The deadline, on monotonic time."""
        deadline_ms = self.now.monotonic_ms + delay_ms
        self.timers[key] = deadline_ms
        return deadline_ms

    def cancel(self, key: str) -> None:
        self.timers[key] = None

    def decision(self) -> CoordinatorDecision:
        if not (self.records or self.replies or self.timers):
            return NOTHING
        return CoordinatorDecision(
            records=tuple(self.records),
            replies=tuple(self.replies),
            timers=tuple(self.timers.items()),
            transaction=self.transaction,
            if_too_large=self.if_too_large,
            when_refused=None if self.when_refused is None else partial(_decide, self.when_refused),
        )


def _decide(step: Callable[[Outcome], None], now: Now) -> CoordinatorDecision:
    outcome = Outcome(now)
    step(outcome)
    return outcome.decision()
