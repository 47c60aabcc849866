"""What the coordinator refuses, and why a commit failed, as exceptions that say what to do."""

from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.errors import CommitFailedError, RebalanceInProgressError, error_for
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


def not_a_member(options: GroupOptions, code: ErrorCode = ErrorCode.UNKNOWN_MEMBER_ID) -> CommitFailedError:
    return CommitFailedError(
        f"group {options.group_id}: the offsets were not committed, because this consumer is no member of the group "
        "any more and its partitions may be somebody else's, who reads from the last commit. That happens when poll "
        f"is not called for max.poll.interval.ms ({options.max_poll_interval_ms}) or no heartbeat arrives for "
        f"session.timeout.ms ({options.session_timeout_ms}). Call poll, which joins again; to avoid it poll more "
        "often, take fewer records at a time (max.poll.records), or raise max.poll.interval.ms",
        code,
    )


def moved_on(options: GroupOptions, sent: GroupMetadata, code: ErrorCode) -> CommitFailedError:
    return CommitFailedError(
        f"group {options.group_id}: the offsets were not committed, because the group has rebalanced since generation "
        f"{sent.generation_id} and the partitions may be somebody else's now. Do not try again: call poll and go on "
        "from there. Commit before the partitions are revoked (in on_revoked), poll more often, or raise "
        f"max.poll.interval.ms ({options.max_poll_interval_ms})",
        code,
    )


def rebalancing(options: GroupOptions, failure: KafkaError | None = None) -> RebalanceInProgressError:
    """`failure`: why the coordinator did not respond, if that is what the rebalance waits for."""
    why = "the group is rebalancing" if failure is None else f"this consumer could not join yet ({failure.message})"
    return RebalanceInProgressError(
        f"group {options.group_id}: the offsets were not committed, because {why}. Call poll, which takes part in the "
        "rebalance, then commit what is still assigned"
    )
