"""What is wrong with a ConsumerGroupHeartbeat: raised as KafkaError before anything is decided."""

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.assignors.broker import Partitions
from barnabas.machines.group.consumer.member import (
    LEAVE_GROUP_EPOCH,
    LEAVE_GROUP_STATIC_EPOCH,
    ConsumerMember,
    MemberState,
)
from barnabas.machines.group.consumer.regex import RegexError, compile_regex
from barnabas.protocol.messages.consumer_group_heartbeat import ConsumerGroupHeartbeatRequest

MEMBER_MAKES_ITS_ID = 1


def check_request(request: ConsumerGroupHeartbeatRequest, version: int, assignors: tuple[str, ...]) -> None:
    if not request.group_id.strip():
        raise _invalid("GroupId can't be empty.")
    if request.instance_id is not None and not request.instance_id.strip():
        raise _invalid("InstanceId can't be empty.")
    if request.rack_id is not None and not request.rack_id.strip():
        raise _invalid("RackId can't be empty.")
    if (version >= MEMBER_MAKES_ITS_ID or request.member_epoch != 0) and not request.member_id.strip():
        raise _invalid("MemberId can't be empty.")
    if request.member_epoch == 0:
        _check_join(request)
    elif request.member_epoch == LEAVE_GROUP_STATIC_EPOCH:
        if request.instance_id is None:
            raise _invalid("InstanceId can't be null.")
    elif request.member_epoch < LEAVE_GROUP_EPOCH:
        raise _invalid("MemberEpoch is invalid.")
    if request.server_assignor is not None and request.server_assignor not in assignors:
        raise KafkaError(
            ErrorCode.UNSUPPORTED_ASSIGNOR,
            f"ServerAssignor {request.server_assignor} is not supported. Supported assignors: {', '.join(assignors)}.",
        )
    if request.subscribed_topic_regex:
        _check_regex(request.subscribed_topic_regex)


def _check_join(request: ConsumerGroupHeartbeatRequest) -> None:
    if request.rebalance_timeout_ms == -1:
        raise _invalid("RebalanceTimeoutMs must be provided in first request.")
    if request.topic_partitions is None or request.topic_partitions:
        raise _invalid("TopicPartitions must be empty when (re-)joining.")
    if request.subscribed_topic_names is None and request.subscribed_topic_regex is None:
        raise _invalid("Either SubscribedTopicNames or SubscribedTopicRegex must be non-null when (re-)joining.")


def _check_regex(regex: str) -> None:
    try:
        compile_regex(regex)
    except RegexError as error:
        raise KafkaError(
            ErrorCode.INVALID_REGULAR_EXPRESSION,
            f"SubscribedTopicRegex `{regex}` is not a valid regular expression: {error}.",
        ) from None


def check_epoch(member: ConsumerMember, epoch: int, owned: Partitions | None) -> None:
    if member.state is MemberState.UNKNOWN and (owned is None or owned):
        raise KafkaError(
            ErrorCode.FENCED_MEMBER_EPOCH,
            "The consumer group member is in a unknown state. The member must abandon all its partitions and rejoin.",
        )
    if epoch == member.member_epoch or (epoch == member.previous_member_epoch and _lags(member, epoch, owned)):
        return
    which = "greater" if epoch > member.member_epoch else "smaller"
    raise KafkaError(
        ErrorCode.FENCED_MEMBER_EPOCH,
        f"The consumer group member has a {which} member epoch ({epoch}) than the one known by the group coordinator "
        f"({member.member_epoch}). The member must abandon all its partitions and rejoin.",
    )


def _lags(member: ConsumerMember, epoch: int, owned: Partitions | None) -> bool:
    return epoch < member.member_epoch and member.owns_only(owned)


def _invalid(message: str) -> KafkaError:
    return KafkaError(ErrorCode.INVALID_REQUEST, message)
