"""What a machine returns: records to write, replies to send once they are written, timers to set.

A driver writes `records`, applies them, then sends each reply to the owner of its token. A deadline of None cancels
the timer of that key.
"""

from collections.abc import Hashable
from dataclasses import dataclass
from typing import Any, Generic, Protocol, TypeVar

Command = TypeVar("Command", contravariant=True)
Record = TypeVar("Record")


@dataclass(frozen=True, slots=True)
class Decision(Generic[Record]):
    records: tuple[Record, ...] = ()
    replies: tuple[tuple[Hashable, Any], ...] = ()
    timers: tuple[tuple[str, int | None], ...] = ()


class Machine(Protocol[Command, Record]):
    def decide(self, command: Command, now_ms: int) -> Decision[Record]:
        """Read the state; never change durable state."""
        ...

    def apply(self, record: Record) -> None:
        """The only writer of durable state; also used on reload."""
        ...

    def expire(self, key: str, now_ms: int) -> Decision[Record]:
        """A timer fired."""
        ...

    def check(self) -> None:
        """Asserts every invariant."""
        ...
