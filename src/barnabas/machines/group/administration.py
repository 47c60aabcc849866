"""ListGroups, DescribeGroups and DeleteGroups, over groups of every type."""

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import Token
from barnabas.machines.group.classic.group import ClassicGroup
from barnabas.machines.group.classic.state import ClassicGroupState
from barnabas.machines.group.commands import DeleteGroups, DescribeGroups, GroupIds, ListGroups
from barnabas.machines.group.offsets import Offsets, tombstone
from barnabas.machines.group.outcome import Outcome
from barnabas.machines.group.registry import GroupRegistry
from barnabas.protocol.messages.delete_groups import DeletableGroupResult
from barnabas.protocol.messages.describe_groups import DescribedGroup
from barnabas.protocol.messages.list_groups import ListedGroup
from barnabas.types import GroupId

GROUP_NOT_FOUND_SINCE = 6
"""From this version on DescribeGroups reports a missing group by an error (KIP-1043); before, by state Dead only."""


class Administration:
    __slots__ = ("_offsets", "_registry")

    def __init__(self, registry: GroupRegistry, offsets: Offsets) -> None:
        self._registry = registry
        self._offsets = offsets

    def ids(self, command: GroupIds, token: Token, outcome: Outcome) -> None:
        outcome.reply(token, self._registry.ids())

    def list(self, command: ListGroups, token: Token, outcome: Outcome) -> None:
        """Filters ignore case; an empty filter matches everything."""
        states = [state.strip().lower() for state in command.states_filter]
        types = [group_type.strip().lower() for group_type in command.types_filter]
        groups = self._registry if command.group_ids is None else map(self._registry.get, command.group_ids)
        listed = [
            ListedGroup(
                group_id=group.group_id,
                protocol_type=group.protocol_type_name,
                group_state=group.state_name,
                group_type=group.group_type.value,
            )
            for group in groups
            if group is not None
            and (not states or group.state_name.lower() in states)
            and (not types or group.group_type.value in types)
        ]
        outcome.reply(token, listed)

    def describe(self, command: DescribeGroups, token: Token, outcome: Outcome) -> None:
        outcome.reply(token, [self._describe(group_id, command.version) for group_id in command.group_ids])

    def _describe(self, group_id: GroupId, version: int) -> DescribedGroup:
        group = self._registry.get(group_id)
        if not isinstance(group, ClassicGroup):
            described = DescribedGroup(group_id=group_id, group_state=ClassicGroupState.DEAD.value)
            if version >= GROUP_NOT_FOUND_SINCE:
                described.error_code = ErrorCode.GROUP_ID_NOT_FOUND
                what = "not found" if group is None else "is not a classic group"
                described.error_message = f"Group {group_id} {what}."
            return described
        protocol = group.protocol_name if group.state is ClassicGroupState.STABLE else None
        return DescribedGroup(
            group_id=group_id,
            group_state=group.state_name,
            protocol_type=group.protocol_type_name,
            protocol_data=protocol or "",
            members=[member.describe(protocol) for member in group.members.values()],
        )

    def delete(self, command: DeleteGroups, token: Token, outcome: Outcome) -> None:
        results = []
        for group_id in dict.fromkeys(command.group_ids):
            group = self._registry.get(group_id)
            error = ErrorCode.GROUP_ID_NOT_FOUND if group is None else group.check_delete()
            if group is not None and not error:
                partitions = self._offsets.partitions_of(group_id)
                outcome.records += [tombstone(group_id, topic, partition) for topic, partition in partitions]
                outcome.records += group.tombstones()
            results.append(DeletableGroupResult(group_id=group_id, error_code=error))
        outcome.reply(token, results)
