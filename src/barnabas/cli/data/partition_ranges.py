"""Partitions as people type them: `0,2`, `0-3`. Any numbers may stand there, so no range is ever spelled out."""

from collections.abc import Collection, Sequence
from typing import NamedTuple

from barnabas.cli.command import UsageError


class PartitionRange(NamedTuple):
    first: int
    last: int


def parse_partitions(text: str) -> list[PartitionRange]:
    """Raises UsageError."""
    ranges = []
    for part in text.split(","):
        first, dash, last = part.partition("-")
        try:
            parsed = PartitionRange(int(first), int(last if dash else first))
        except ValueError:
            raise UsageError(f"-p {text}: expected numbers like 0,2 or 0-3") from None
        if parsed.last < parsed.first:
            raise UsageError(f"-p {text}: the range {part} is empty, write the smaller number first")
        ranges.append(parsed)
    return ranges


def partitions_in(ranges: Sequence[PartitionRange], topic: str, there: Collection[int]) -> list[int]:
    """Those of the topic's that are meant, in order. Raises UsageError if one is meant that is not there."""
    wanted: set[int] = set()
    for first, last in ranges:
        found = {number for number in there if first <= number <= last}
        if len(found) <= last - first:
            missing = next(number for number in range(first, last + 1) if number not in found)
            raise UsageError(f"-p: {topic} has no partition {missing}; it has {len(there)}, from 0 on")
        wanted |= found
    return sorted(wanted)
