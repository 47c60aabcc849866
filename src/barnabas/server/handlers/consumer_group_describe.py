"""ConsumerGroupDescribe (key 69), v0-v1: state and members of consumer groups (KIP-848), each by its shard.

v1 member type, classic or consumer (KIP-1099).
"""

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import ConsumerGroupDescribe
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.consumer_group_describe import (
    ConsumerGroupDescribeRequest,
    ConsumerGroupDescribeResponse,
    DescribedGroup,
)
from barnabas.server.authorized_operations import authorized_operations
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource
from barnabas.types import GroupId

HIDDEN_TOPICS = "The group has described topic(s) that the client is not authorized to describe."


def handle_consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest
) -> ConsumerGroupDescribeResponse | Deferred[ConsumerGroupDescribeResponse]:
    if "consumer" not in context.broker.config.group_coordinator_rebalance_protocols:
        return fail_consumer_group_describe(context, request, ErrorCode.UNSUPPORTED_VERSION)

    def merge(groups: list[DescribedGroup]) -> ConsumerGroupDescribeResponse:
        if request.include_authorized_operations:
            for group in groups:
                if not group.error_code:
                    group.authorized_operations = authorized_operations(context, Resource.group(group.group_id))
        if context.broker.authorizer is not None:
            groups = [group if _is_visible(context, group) else _hidden(group) for group in groups]
        return ConsumerGroupDescribeResponse(groups=groups)

    return context.broker.groups.submit_each(
        context, request.group_ids, Operation.DESCRIBE, ConsumerGroupDescribe, _failed, merge
    )


def _is_visible(context: RequestContext, group: DescribedGroup) -> bool:
    """Whoever may not describe a topic must not learn of it through a group that reads it."""
    topics = {
        partitions.topic_name
        for member in group.members
        for assignment in (member.assignment, member.target_assignment)
        for partitions in assignment.topic_partitions
    }
    return all(context.may_topic(Operation.DESCRIBE, topic) for topic in topics)


def _hidden(group: DescribedGroup) -> DescribedGroup:
    (hidden,) = _failed((GroupId(group.group_id),), ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    hidden.error_message = HIDDEN_TOPICS
    return hidden


def _failed(group_ids: tuple[GroupId, ...], error: ErrorCode) -> list[DescribedGroup]:
    return [
        DescribedGroup(
            error_code=error,
            group_id=group_id,
            group_state="",
            group_epoch=0,
            assignment_epoch=0,
            assignor_name="",
            members=[],
        )
        for group_id in group_ids
    ]


def fail_consumer_group_describe(
    context: RequestContext, request: ConsumerGroupDescribeRequest, error: ErrorCode
) -> ConsumerGroupDescribeResponse:
    return ConsumerGroupDescribeResponse(groups=_failed(tuple(request.group_ids), error))


HANDLER = Handler(
    api_key=ApiKey.CONSUMER_GROUP_DESCRIBE,
    min_version=0,
    max_version=1,
    request=ConsumerGroupDescribeRequest,
    handle=handle_consumer_group_describe,
    fail=fail_consumer_group_describe,
    checks_access=True,
)
