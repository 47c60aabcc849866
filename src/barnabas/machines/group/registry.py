"""The groups of one shard, by id, and the interface that groups of every type share.

Which group has an id is durable state: it changes when records are applied. The exceptions are a change of protocol
and the creation of a classic group, where the decision that writes the new group also registers it; if that write
fails, the whole shard is rebuilt.
"""

from collections.abc import Iterator, Sized
from enum import Enum
from typing import Protocol

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import CoordinatorRecord
from barnabas.types import GroupId


class GroupType(Enum):
    """The values are those of ListGroups."""

    CLASSIC = "classic"
    CONSUMER = "consumer"


class Group(Protocol):
    @property
    def group_id(self) -> GroupId: ...

    @property
    def group_type(self) -> GroupType: ...

    @property
    def state_name(self) -> str:
        """As in ListGroups: Empty, Stable and so on."""
        ...

    @property
    def protocol_type_name(self) -> str: ...

    @property
    def members(self) -> Sized: ...

    @property
    def is_empty(self) -> bool: ...

    def check_offset_commit(
        self, member_id: str, group_instance_id: str | None, generation: int, transactional: bool, version: int
    ) -> ErrorCode:
        """`generation` is the member's epoch in a consumer group."""
        ...

    def check_offset_fetch(self, member_id: str | None, member_epoch: int) -> ErrorCode: ...

    def check_offset_delete(self) -> ErrorCode: ...

    def check_delete(self) -> ErrorCode: ...

    def tombstones(self) -> list[CoordinatorRecord]:
        """The records that remove the group, except its offsets, from the log."""
        ...

    def is_subscribed_to(self, topic: str) -> bool: ...

    def offset_kept_since(self, commit_timestamp: int) -> int | None:
        """The wall time from which the retention of such an offset counts; None while it may not expire."""
        ...

    def check(self) -> None:
        """Asserts every invariant."""
        ...


class GroupRegistry:
    __slots__ = ("_groups",)

    def __init__(self) -> None:
        self._groups: dict[GroupId, Group] = {}

    def get(self, group_id: GroupId) -> Group | None:
        return self._groups.get(group_id)

    def put(self, group: Group) -> None:
        """Also replaces a group of another type."""
        self._groups[group.group_id] = group

    def remove(self, group_id: GroupId) -> None:
        self._groups.pop(group_id, None)

    def ids(self) -> list[GroupId]:
        return list(self._groups)

    def __iter__(self) -> Iterator[Group]:
        """Iterates over a copy, so that groups may be added and removed meanwhile."""
        return iter(list(self._groups.values()))

    def __len__(self) -> int:
        return len(self._groups)
