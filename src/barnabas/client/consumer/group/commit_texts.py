"""Why a commit failed and what to do about it, in the words that a user sees."""

from barnabas.client.consumer.group.machine import GroupMetadata
from barnabas.client.consumer.group.options import GroupOptions
from barnabas.client.errors import CommitFailedError, RebalanceInProgressError
from barnabas.errors import ErrorCode, KafkaError


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
