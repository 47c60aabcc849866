"""What an assignor knows about a member, and the order in which members are served."""

from collections.abc import Collection, Hashable, Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

NO_GENERATION = -1

T = TypeVar("T", bound=Hashable)
"""A topic: its name for consumers, its id on the broker."""


@dataclass(frozen=True, slots=True)
class AssignorMember(Generic[T]):
    topics: Collection[T]
    instance_id: str | None = None
    owned: Collection[tuple[T, int]] = ()
    """What it owns now, as (topic, partition); only sticky assignors use it."""
    generation: int = NO_GENERATION
    """The generation in which it got them."""
    rack: str | None = None
    """Its rack; "" means none, as some clients write it."""


def sorted_members(members: Mapping[str, AssignorMember[T]]) -> list[str]:
    """Static members first, by instance id: their place does not change when a restart gives them a new member id."""

    def place(member_id: str) -> tuple[bool, str]:
        instance_id = members[member_id].instance_id
        return (True, member_id) if instance_id is None else (False, instance_id)

    return sorted(members, key=place)
