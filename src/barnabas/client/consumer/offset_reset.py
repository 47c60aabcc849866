"""Where a partition starts when there is no committed offset, or the offset it has is gone (auto.offset.reset).

Pure: `timestamp` turns a policy into what ListOffsets asks for. KIP-1106 added a time span, `by_duration:P1D`.
"""

from typing import Final, NamedTuple

from barnabas.client.options.consumer import reset_duration_ms

EARLIEST_TIMESTAMP: Final = -2
LATEST_TIMESTAMP: Final = -1


class OffsetReset(NamedTuple):
    name: str
    duration_ms: int = 0

    @classmethod
    def of(cls, auto_offset_reset: str) -> "OffsetReset":
        """From the option, which has been checked: earliest, latest, none, by_duration:P1D."""
        return cls(auto_offset_reset.partition(":")[0], reset_duration_ms(auto_offset_reset) or 0)

    def timestamp(self, now_ms: int) -> int:
        """What to ask ListOffsets for. Only `none` has no answer: its users are told instead."""
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
