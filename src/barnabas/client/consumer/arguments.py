"""What users give to a client, checked in their own call: topics, partitions, offsets, times.

Used by the consumer, the admin client and a transaction's `send_offsets`. What is wrong must not get any further: sent
to a broker it could not be encoded, and looked like a broker that is too old; kept as a partition or a position it
would be requested again and again, silently. A wrong type is a TypeError, a number out of range a ValueError.
"""

import operator
import re
from collections.abc import Iterable, Mapping
from numbers import Real
from typing import Any

from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.client.consumer.offsets import OffsetAndMetadata, SubscriptionPattern
from barnabas.types import NO_LEADER_EPOCH, TopicPartition

MIN_INT32, MAX_INT32 = -(1 << 31), (1 << 31) - 1
MIN_INT64, MAX_INT64 = -(1 << 63), (1 << 63) - 1

Partition = TopicPartition | tuple[str, int]
"""Wherever a partition is expected, a plain tuple will do."""


def whole_number(given: Any, what: str, *, highest: int = MAX_INT64, lowest: int = 0, hint: str = "") -> int:
    """Of any type that Python takes for an index, numpy's for instance; a float or a text is refused, not rounded."""
    try:
        number = int(operator.index(given))
    except TypeError:
        raise TypeError(f"{what} is a whole number, not {given!r}{hint}") from None
    if lowest <= number <= highest:
        return number
    refused = f"is at most {highest}"
    if number < lowest:
        refused = f"is at least {lowest}" if lowest else "is not negative"
    raise ValueError(f"{what} {refused}: {number}{hint}")


def topic_of(given: Any) -> str:
    if not isinstance(given, str):
        raise TypeError(f"the name of a topic is a str, not {given!r}")
    if not given.strip():
        raise ValueError("the name of a topic is not empty")
    return given


def topics_of(given: Iterable[str]) -> frozenset[str]:
    if isinstance(given, str | bytes) or not isinstance(given, Iterable):
        raise TypeError(f"subscribe takes a list of topics: write [topic] instead of {given!r}")
    return frozenset(topic_of(each) for each in given)


def pattern_of(given: re.Pattern[str] | SubscriptionPattern) -> re.Pattern[str] | SubscriptionPattern:
    if not isinstance(given.pattern, str):
        raise TypeError(f"names of topics are text, and so must be a pattern of them: not {given.pattern!r}")
    return given


def partition_of(given: Partition, *, lowest: int = 0) -> TopicPartition:
    if not isinstance(given, tuple | list) or len(given) != 2:
        raise TypeError(f"a partition is a topic and a number, as in ('orders', 0), not {given!r}")
    topic, number = given
    what = "the number of a partition"
    return TopicPartition(topic_of(topic), whole_number(number, what, lowest=lowest, highest=MAX_INT32))


def partitions_of(given: Iterable[Partition]) -> list[TopicPartition]:
    if isinstance(given, TopicPartition):
        raise TypeError(f"several partitions were expected, in a list: [{given!r}] instead of {given!r}")
    return [partition_of(each) for each in given]


def offset_of(given: OffsetAndMetadata | int, *, hint: str = "") -> OffsetAndMetadata:
    """One to commit or to read from: brokers take a negative one too, and forget the group's position."""
    if not isinstance(given, OffsetAndMetadata):
        return OffsetAndMetadata(whole_number(given, "an offset", hint=hint))
    if not isinstance(given.metadata, str):
        raise TypeError(f"the metadata of an offset is text, not {given.metadata!r}")
    return OffsetAndMetadata(
        whole_number(given.offset, "an offset", hint=hint),
        given.metadata,
        whole_number(given.leader_epoch, "a leader epoch", highest=MAX_INT32, lowest=NO_LEADER_EPOCH),
    )


def offsets_of(given: Mapping[Any, OffsetAndMetadata | int]) -> dict[TopicPartition, OffsetAndMetadata]:
    """By partition, to be committed."""
    if not isinstance(given, Mapping):
        raise TypeError(f"offsets are given by partition, as in {{('orders', 0): 5}}, not {given!r}")
    return {partition_of(entry): offset_of(offset) for entry, offset in given.items()}


def timestamp_of(given: int) -> int:
    return whole_number(
        given, "a time", hint=": give it in milliseconds since 1970; for the ends see beginning_offsets, end_offsets"
    )


def timestamps_of(given: Mapping[Any, int]) -> dict[TopicPartition, int]:
    if not isinstance(given, Mapping):
        raise TypeError(f"times are given by partition, as in {{('orders', 0): 1700000000000}}, not {given!r}")
    return {partition_of(entry): timestamp_of(timestamp) for entry, timestamp in given.items()}


def seconds_of(given: Any) -> float | None:
    """How long a call may take; None is left to the call."""
    if given is None:
        return None
    if not isinstance(given, Real):
        raise TypeError(f"a time-out is a number of seconds, not {given!r}")
    return float(given)


def listener_of(given: RebalanceListener | None) -> RebalanceListener | None:
    methods = ("on_assigned", "on_revoked", "on_lost")
    if given is not None and (isinstance(given, type) or not all(hasattr(given, each) for each in methods)):
        raise TypeError(f"a listener is an object of a class that derives from RebalanceListener, not {given!r}")
    return given
