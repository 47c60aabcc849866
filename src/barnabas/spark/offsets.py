"""Start and end offsets, as users write them, and as they are in a checkpoint.

startingOffsets   earliest | latest | {"orders": {"0": 23, "1": -2}}     -2 earliest, -1 latest
by timestamp      1600000000000     | {"orders": {"0": 1600000000000}}
checkpoint        {"orders": {"topicId": "HgP...", "0": 23, "1": 17}}    the next offset to read
"""

import json
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from barnabas.types import TopicPartition

EARLIEST: Final = -2
LATEST: Final = -1
TOPIC_ID: Final = "topicId"

Position = dict[str, dict[str, Any]]
"""The form in the checkpoint."""


@dataclass(frozen=True, slots=True)
class OffsetSpec:
    kind: Literal["offsets", "timestamps"]
    everywhere: int | None = None
    by_partition: dict[TopicPartition, int] | None = None
    when_too_late: str = "error"
    """For a time after the last record: fail, or start at the end."""

    @property
    def is_latest_somewhere(self) -> bool:
        wanted = (self.by_partition or {}).values() if self.everywhere is None else (self.everywhere,)
        return self.kind == "offsets" and LATEST in wanted

    def with_strategy(self, strategy: str) -> "OffsetSpec":
        return replace(self, when_too_late=strategy)


FROM_EARLIEST: Final = OffsetSpec("offsets", EARLIEST)
FROM_LATEST: Final = OffsetSpec("offsets", LATEST)


def parse_offsets(text: str, may_be: tuple[str, ...]) -> OffsetSpec:
    words = {"earliest": FROM_EARLIEST, "latest": FROM_LATEST}
    if text.lower() in may_be:
        return words[text.lower()]
    offsets = _parse_partitions(text, f'it must be {" or ".join(may_be)} or JSON like {{"orders": {{"0": 23}}}}')
    if any(offset < EARLIEST for offset in offsets.values()):
        raise ValueError("an offset below -2 does not exist (-2 is earliest, -1 latest)")
    if "earliest" not in may_be and EARLIEST in offsets.values():
        raise ValueError("-2 (earliest) cannot be the end of a read")
    return OffsetSpec("offsets", by_partition=offsets)


def parse_timestamp(text: str) -> OffsetSpec:
    if not text.isdecimal():
        raise ValueError("it must be milliseconds since 1970")
    return OffsetSpec("timestamps", int(text))


def parse_timestamps(text: str) -> OffsetSpec:
    times = _parse_partitions(text, 'it must be JSON like {"orders": {"0": 1600000000000}}')
    if any(time < 0 for time in times.values()):
        raise ValueError("a time must be milliseconds since 1970")
    return OffsetSpec("timestamps", by_partition=times)


def parse_assignment(text: str) -> dict[str, tuple[int, ...]]:
    example = 'it must be JSON like {"orders": [0, 1]}'
    tree = _json_object(text, example)
    assigned = {}
    for topic, partitions in tree.items():
        if not isinstance(partitions, list) or not partitions or not all(_is_index(each) for each in partitions):
            raise ValueError(example)
        assigned[topic] = tuple(sorted(set(partitions)))
    return assigned


def position_of(offsets: dict[TopicPartition, int], topic_ids: dict[str, str]) -> Position:
    position: Position = {topic: {TOPIC_ID: topic_ids[topic]} for topic in sorted({tp.topic for tp in offsets})}
    for tp in sorted(offsets):
        position[tp.topic][str(tp.partition)] = offsets[tp]
    return position


def read_position(position: Position) -> tuple[dict[TopicPartition, int], dict[str, str]]:
    """(offsets, topic ids). Raises ValueError if it is not a position of this source."""
    offsets, topic_ids = {}, {}
    for topic, entries in position.items():
        if not isinstance(entries, dict):
            raise ValueError("the checkpoint was not written by this source: use a new one")
        for name, value in entries.items():
            if name == TOPIC_ID:
                topic_ids[topic] = str(value)
            elif name.isdecimal() and isinstance(value, int):
                offsets[TopicPartition(topic, int(name))] = value
            else:
                raise ValueError("the checkpoint was not written by this source: use a new one")
    return offsets, topic_ids


def _parse_partitions(text: str, example: str) -> dict[TopicPartition, int]:
    found = {}
    for topic, partitions in _json_object(text, example).items():
        if not isinstance(partitions, dict):
            raise ValueError(example)
        for name, value in partitions.items():
            if not name.isdecimal() or not isinstance(value, int) or isinstance(value, bool):
                raise ValueError(example)
            found[TopicPartition(topic, int(name))] = value
    return found


def _json_object(text: str, example: str) -> dict[str, Any]:
    try:
        tree = json.loads(text)
    except ValueError:
        raise ValueError(example) from None
    if not isinstance(tree, dict) or not tree:
        raise ValueError(example)
    return tree


def _is_index(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 0
