"""Values of the consumer: offsets as users give and get them, a pattern of topics, the policy of a reset.

Used by the consumer, its group membership and the admin client. Nothing here does I/O.
"""

from typing import Final, NamedTuple

from barnabas.client.options.consumer import reset_duration_ms
from barnabas.types import NO_LEADER_EPOCH

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1


class OffsetAndMetadata(NamedTuple):
    """The next offset to read, with a free text and the leader epoch of the record before it (-1: not known)."""

    offset: int
    metadata: str = ""
    leader_epoch: int = NO_LEADER_EPOCH


class OffsetAndTimestamp(NamedTuple):
    """The first record at or after the given time."""

    offset: int
    timestamp: int
    leader_epoch: int = NO_LEADER_EPOCH


class SubscriptionPattern(NamedTuple):
    """A regular expression in RE2's syntax, evaluated by the group coordinator: for group_protocol="consumer"."""

    pattern: str


class OffsetReset(NamedTuple):
    """Where a partition starts without a committed offset, or if its offset is gone (auto.offset.reset).

    KIP-1106 added a time span, `by_duration:P1D`.
    """

    name: str
    duration_ms: int = 0

    @classmethod
    def of(cls, auto_offset_reset: str) -> "OffsetReset":
        """From the option, which has been checked: earliest, latest, none, by_duration:P1D."""
        return cls(auto_offset_reset.partition(":")[0], reset_duration_ms(auto_offset_reset) or 0)

    def timestamp(self, now_ms: int) -> int:
        """The timestamp for ListOffsets. `none` has no timestamp: poll raises an error instead."""
        if self.name == "earliest":
            return EARLIEST_TIMESTAMP
        if self.name == "latest":
            return LATEST_TIMESTAMP
        if self.name == "by_duration":
            return max(0, now_ms - self.duration_ms)
        raise ValueError(f"auto.offset.reset={self.name} names no offset")


EARLIEST: Final = OffsetReset("earliest")
LATEST: Final = OffsetReset("latest")
NONE: Final = OffsetReset("none")
