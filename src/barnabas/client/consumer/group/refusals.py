"""Permanent errors of the coordinator, as exceptions that say what to do."""

from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.errors import error_for
from barnabas.errors import ErrorCode, KafkaError

MOVED = frozenset({ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE})
"""Another broker is the coordinator now."""


def refusal(code: ErrorCode, options: GroupOptions, said: str | None = None) -> KafkaError:
    """`said` is the message of the coordinator."""
    instance_id, assignor = options.group_instance_id, options.group_remote_assignor
    advice = {
        ErrorCode.INCONSISTENT_GROUP_PROTOCOL: "the other members offer none of this consumer's assignors: set "
        "partition_assignment_strategy to one they have too, or use another group id",
        ErrorCode.INVALID_SESSION_TIMEOUT: f"session_timeout_ms={options.session_timeout_ms} is outside of what the "
        "broker allows (group.min.session.timeout.ms to group.max.session.timeout.ms)",
        ErrorCode.GROUP_MAX_SIZE_REACHED: "the group has as many members as the broker allows: end one, or raise the "
        "broker's group.max.size (group.consumer.max.size)",
        ErrorCode.UNRELEASED_INSTANCE_ID: f"another running consumer has group_instance_id={instance_id!r}: close "
        "it, or wait until its session ends",
        ErrorCode.FENCED_INSTANCE_ID: f"another consumer has started with group_instance_id={instance_id!r}",
        ErrorCode.UNSUPPORTED_ASSIGNOR: f"the broker has no assignor {assignor!r}: unset group_remote_assignor, or "
        "name one of group.consumer.assignors",
        ErrorCode.INVALID_REGULAR_EXPRESSION: "the broker does not take the pattern: it must be in RE2's syntax",
        ErrorCode.INVALID_GROUP_ID: "group_id is not valid: it must not be empty",
        ErrorCode.UNSUPPORTED_VERSION: "the broker does not serve this group protocol: use group_protocol='classic'",
    }.get(code)
    text = ": ".join(part for part in (said, advice) if part) or None
    return error_for(code, text, group=options.group_id)
