"""Groups: list, describe, delete, and have members removed.

Every broker lists the groups that it coordinates; all other requests go to the coordinator of the group. A group is
described by the API of the consumer protocol first. If it is no such group, or the broker does not know that API, by
the classic one.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from barnabas.client.admin.attempts import Outcome
from barnabas.client.admin.errors import admin_error, check
from barnabas.client.admin.group_responses import described_classic_group, described_consumer_group, listed_group
from barnabas.client.admin.requests import AdminRequests, several
from barnabas.client.admin.types import GroupDescription, GroupListing, GroupState, GroupType, MemberToRemove
from barnabas.client.cluster_client import CoordinatorKind
from barnabas.client.errors import UnsupportedVersionError
from barnabas.client.retry import Deadline
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol.messages.consumer_group_describe import ConsumerGroupDescribeRequest
from barnabas.protocol.messages.delete_groups import DeleteGroupsRequest
from barnabas.protocol.messages.describe_groups import DescribeGroupsRequest
from barnabas.protocol.messages.leave_group import LeaveGroupRequest, MemberIdentity
from barnabas.protocol.messages.list_groups import ListGroupsRequest
from barnabas.types import GroupId

GROUP = CoordinatorKind.GROUP
DEFAULT_REASON = "member was removed by an admin"
_NOT_OF_THE_CONSUMER_PROTOCOL = (ErrorCode.GROUP_ID_NOT_FOUND, ErrorCode.UNSUPPORTED_VERSION)


@dataclass(frozen=True, slots=True)
class GroupAdmin:
    """Groups and their members."""

    requests: AdminRequests

    async def list_groups(
        self,
        *,
        states: Iterable[GroupState | str] = (),
        types: Iterable[GroupType | str] = (),
        protocol_types: Iterable[str] = (),
        timeout: float | None = None,
    ) -> dict[str, GroupListing]:
        """All groups by id, or those in certain states, of certain types or protocol types ("consumer", "connect").

        A simple consumer group (offsets without members) has the protocol type "".
        """
        deadline = self.requests.deadline(timeout)
        wanted_states = [GroupState(each) for each in several(states)]
        wanted_types = [GroupType(each) for each in several(types)]
        wanted_protocols = frozenset(several(protocol_types))

        async def send_to(node_id: int, keys: list[int]) -> Mapping[int, list[GroupListing] | KafkaError]:
            request = ListGroupsRequest(
                states_filter=[str(each) for each in wanted_states],
                types_filter=[each.lower() for each in wanted_types],
            )
            oldest = 5 if wanted_types else 4 if wanted_states else 0
            response = await self.requests.send(node_id, request, deadline, min_version=oldest)
            check(response.error_code)
            return {node_id: [listed_group(each) for each in response.groups]}

        listed = (
            await self.requests.call_each(
                await self.requests.brokers(deadline), self.requests.on_brokers, send_to, deadline
            )
        ).all()
        groups = {group.group_id: group for of_broker in listed.values() for group in of_broker}
        return {
            group_id: groups[group_id]
            for group_id in sorted(groups)
            if not wanted_protocols or groups[group_id].protocol_type in wanted_protocols
        }

    async def describe_group(
        self, group_id: str, *, include_authorized_operations: bool = False, timeout: float | None = None
    ) -> GroupDescription:
        """State, coordinator and members of a group, with the partitions of each."""
        deadline = self.requests.deadline(timeout)
        return (await self._describe_groups([group_id], include_authorized_operations, deadline)).only(group_id)

    async def describe_groups(
        self,
        group_ids: Iterable[str],
        *,
        include_authorized_operations: bool = False,
        timeout: float | None = None,
    ) -> dict[str, GroupDescription]:
        """The same of several groups."""
        deadline = self.requests.deadline(timeout)
        return (await self._describe_groups(several(group_ids), include_authorized_operations, deadline)).all()

    async def _describe_groups(
        self, group_ids: Iterable[str], operations: bool, deadline: Deadline
    ) -> Outcome[str, GroupDescription]:
        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, GroupDescription | KafkaError]:
            results = await self._describe_consumer_groups(node_id, requested, operations, deadline)
            classic = [
                group_id
                for group_id, result in results.items()
                if isinstance(result, KafkaError) and result.code in _NOT_OF_THE_CONSUMER_PROTOCOL
            ]
            if classic:
                results |= await self._describe_classic_groups(node_id, classic, operations, deadline)
            return results

        return await self.requests.call_each(
            group_ids,
            self.requests.on_coordinators(GROUP, deadline),
            send_to,
            deadline,
            on_retry=self.requests.forget_coordinator(GROUP),
        )

    async def _describe_consumer_groups(
        self, node_id: int, group_ids: list[str], operations: bool, deadline: Deadline
    ) -> dict[str, GroupDescription | KafkaError]:
        request = ConsumerGroupDescribeRequest(
            group_ids=list(map(GroupId, group_ids)), include_authorized_operations=operations
        )
        try:
            response = await self.requests.send(node_id, request, deadline)
        except UnsupportedVersionError as error:
            return dict.fromkeys(group_ids, error)
        coordinator = self.requests.node(node_id)
        return {group.group_id: described_consumer_group(group, coordinator) for group in response.groups}

    async def _describe_classic_groups(
        self, node_id: int, group_ids: list[str], operations: bool, deadline: Deadline
    ) -> dict[str, GroupDescription | KafkaError]:
        request = DescribeGroupsRequest(groups=list(map(GroupId, group_ids)), include_authorized_operations=operations)
        response = await self.requests.send(node_id, request, deadline, min_version=3 if operations else 0)
        coordinator = self.requests.node(node_id)
        return {group.group_id: described_classic_group(group, coordinator) for group in response.groups}

    async def delete_group(self, group_id: str, *, timeout: float | None = None) -> None:
        """Delete a group without members, with its offsets."""
        (await self._delete_groups([group_id], timeout)).only(group_id)

    async def delete_groups(self, group_ids: Iterable[str], *, timeout: float | None = None) -> None:
        """Delete several groups; each is deleted or refused on its own."""
        (await self._delete_groups(several(group_ids), timeout)).all()

    async def _delete_groups(self, group_ids: Iterable[str], timeout: float | None) -> Outcome[str, bool]:
        deadline = self.requests.deadline(timeout)

        async def send_to(node_id: int, requested: list[str]) -> Mapping[str, bool | KafkaError]:
            response = await self.requests.send(
                node_id, DeleteGroupsRequest(groups_names=list(map(GroupId, requested))), deadline
            )
            return {
                each.group_id: admin_error(each.error_code, group=each.group_id) if each.error_code else True
                for each in response.results
            }

        def already(group_id: str, error: KafkaError) -> bool | None:
            return True if error.code is ErrorCode.GROUP_ID_NOT_FOUND else None

        on_retry = self.requests.forget_coordinator(GROUP)
        return await self.requests.call_each(
            group_ids,
            self.requests.on_coordinators(GROUP, deadline),
            send_to,
            deadline,
            on_retry=on_retry,
            already=already,
        )

    async def remove_members(
        self,
        group_id: str,
        members: Iterable[MemberToRemove | str] | None = None,
        *,
        reason: str = DEFAULT_REASON,
        timeout: float | None = None,
    ) -> None:
        """Take members out of a classic group, so that it rebalances at once; None: all of them.

        A text is a group.instance.id. A running member that is not static joins again by itself.
        """
        deadline = self.requests.deadline(timeout)
        if members is None:
            wanted = await self._all_members(group_id, deadline)
        else:
            wanted = [
                MemberToRemove(group_instance_id=each) if isinstance(each, str) else each for each in several(members)
            ]
        if not wanted:
            return
        outcome = await self._remove(group_id, wanted, reason, deadline)
        outcome.all()

    async def _all_members(self, group_id: str, deadline: Deadline) -> list[MemberToRemove]:
        described = (await self._describe_groups([group_id], False, deadline)).only(group_id)
        return [
            MemberToRemove(group_instance_id=each.group_instance_id)
            if each.group_instance_id
            else MemberToRemove(member_id=each.member_id)
            for each in described.members
        ]

    async def _remove(
        self, group_id: str, members: list[MemberToRemove], reason: str, deadline: Deadline
    ) -> Outcome[MemberToRemove, bool]:
        def on_retry(key: MemberToRemove, error: KafkaError) -> None:
            self.requests.forget_coordinator(GROUP)(group_id, error)

        async def locate(keys: list[MemberToRemove]) -> Mapping[MemberToRemove, int | KafkaError]:
            return dict.fromkeys(keys, await self.requests.cluster.coordinator(GROUP, group_id, deadline))

        async def send_to(node_id: int, requested: list[MemberToRemove]) -> Mapping[MemberToRemove, bool | KafkaError]:
            identities = [
                MemberIdentity(member_id=each.member_id, group_instance_id=each.group_instance_id, reason=reason)
                for each in requested
            ]
            request = LeaveGroupRequest(group_id=GroupId(group_id), members=identities)
            response = await self.requests.send(node_id, request, deadline, min_version=3)
            check(response.error_code, group=group_id)
            by_instance = {each.group_instance_id: each for each in response.members if each.group_instance_id}
            by_id = {each.member_id: each for each in response.members}
            results: dict[MemberToRemove, bool | KafkaError] = {}
            for key in requested:
                member = by_instance.get(key.group_instance_id) or by_id.get(key.member_id)
                if member is not None:
                    hint = "it has left already, or its id is wrong"
                    refused = member.error_code and admin_error(member.error_code, str(key), group=group_id, hint=hint)
                    results[key] = refused or True
            return results

        def already(key: MemberToRemove, error: KafkaError) -> bool | None:
            return True if error.code is ErrorCode.UNKNOWN_MEMBER_ID else None

        return await self.requests.call_each(members, locate, send_to, deadline, on_retry=on_retry, already=already)
