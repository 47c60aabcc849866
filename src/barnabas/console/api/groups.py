"""Groups: the list with lag in records and seconds, and one of them with members and partitions.

Group ids may hold anything, so they travel as a parameter, never as part of a path.
"""

from typing import Any

from starlette.requests import Request

from barnabas.console.console import Console
from barnabas.console.paging import page_of
from barnabas.console.view import GroupView

LONGEST_WAIT = 0.3
"""For newer numbers, in seconds: the page asks again anyway."""
SORTS = {
    "name": lambda group: group.group_id,
    "state": lambda group: str(group.state),
    "members": lambda group: group.members,
    "lag": lambda group: group.lag,
    "lagSeconds": lambda group: group.lag_seconds_at_least,
    "rate": lambda group: group.rate,
}


def summary(group: GroupView) -> dict[str, Any]:
    return {
        "groupId": group.group_id,
        "state": group.state,
        "type": group.type,
        "members": group.members,
        "assignor": group.assignor,
        "coordinator": group.coordinator,
        "topics": group.topics,
        "lag": group.lag,
        "lagSeconds": group.lag_seconds,
        "lagSecondsAtLeast": group.lag_seconds_at_least,
        "rate": group.rate,
    }


async def list_groups(console: Console, request: Request) -> Any:
    view = console.collector.view
    page = page_of(view.groups.values(), request.query_params, lambda group: group.group_id, SORTS)
    if not view.error:
        await console.collector.ensure_groups_within([group.group_id for group in page["items"]], LONGEST_WAIT)
    return {**page, "items": [summary(group) for group in page["items"]], "error": view.error}


async def get_group(console: Console, request: Request) -> Any:
    group_id = request.query_params.get("id", "")
    view = console.collector.view
    if not view.error:
        await console.collector.ensure_groups([group_id])
    group = view.groups.get(group_id)
    if group is None:
        raise LookupError(f"there is no group {group_id}")
    described = await console.clients.admin().describe_group(group_id)
    owners = {partition: member for member in described.members for partition in member.assignment}
    return {
        **summary(group),
        "memberRows": [
            {
                "memberId": member.member_id,
                "clientId": member.client_id,
                "host": member.host,
                "partitions": [str(each) for each in sorted(member.assignment)],
            }
            for member in described.members
        ],
        "partitionRows": [
            {
                "topic": partition.topic,
                "partition": partition.partition,
                "offset": offset,
                "lag": group.lags.get(partition),
                "lagSeconds": group.times.get(partition),
                "clientId": owners[partition].client_id if partition in owners else None,
            }
            for partition, offset in sorted(group.offsets.items())
        ],
        "error": view.error,
    }


ROUTES = (("GET", "/groups", list_groups), ("GET", "/group", get_group))
