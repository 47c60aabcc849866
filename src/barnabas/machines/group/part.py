"""What a part of the group shard provides: tables of what it handles, and two events that every part receives.

`GroupShard` merges the tables; no key may be in two of them. A part that has members of the classic protocol also
provides `MemberRequests`, for groups of its type.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol

from barnabas.machines.controller.image import ClusterImage
from barnabas.machines.coordinator import ApplyContext, Token
from barnabas.machines.group.commands import Heartbeat, JoinGroup, LeaveGroup, SyncGroup
from barnabas.machines.group.outcome import Outcome, TimerName
from barnabas.machines.group.registry import Group

Commands = Mapping[type, Callable[[Any, Token, Outcome], None]]
"""By the class of the command."""
Records = Mapping[type, Callable[[Any, Any, ApplyContext], None]]
"""By the class of the key."""
Timers = Mapping[str, Callable[[TimerName, Outcome], None]]
"""By the kind in the name."""


class ShardPart(Protocol):
    def commands(self) -> Commands: ...

    def records(self) -> Records: ...

    def timers(self) -> Timers: ...

    def on_loaded(self, outcome: Outcome) -> None: ...

    def on_image(self, image: ClusterImage, outcome: Outcome) -> None: ...


class MemberRequests(Protocol):
    """What members of the classic protocol send, to a group that exists and is not empty (`leave`: that exists)."""

    def join(self, group: Group, command: JoinGroup, token: Token, outcome: Outcome) -> None: ...

    def sync(self, group: Group, command: SyncGroup, token: Token, outcome: Outcome) -> None: ...

    def heartbeat(self, group: Group, command: Heartbeat, token: Token, outcome: Outcome) -> None: ...

    def leave(self, group: Group, command: LeaveGroup, token: Token, outcome: Outcome) -> None: ...
