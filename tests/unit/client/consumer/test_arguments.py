"""What users give wrongly is reported in their own call, in words that say what was expected."""

import re
import time
from typing import Any

import pytest

from barnabas.client.consumer.arguments import (
    offset_of,
    offsets_of,
    partition_of,
    partitions_of,
    pattern_of,
    timestamp_of,
    topics_of,
)
from barnabas.client.consumer.offsets import OffsetAndMetadata, SubscriptionPattern
from barnabas.types import TopicPartition

A = TopicPartition("t", 0)


class Index:
    """As numpy's integers are: no int, but usable as one."""

    def __index__(self) -> int:
        return 3


def test_what_is_right_passes() -> None:
    assert partitions_of([A, ("t", 1), ["t", 2], ("t", Index())]) == [  # type: ignore[list-item]
        A,
        ("t", 1),
        ("t", 2),
        ("t", 3),
    ]
    assert offsets_of({("t", 0): 5, ("t", 1): OffsetAndMetadata(0, "note", 4), ("t", 2): 2**63 - 1}) == {
        A: OffsetAndMetadata(5),
        TopicPartition("t", 1): OffsetAndMetadata(0, "note", 4),
        TopicPartition("t", 2): OffsetAndMetadata(2**63 - 1),
    }
    assert topics_of(iter(["a", "b", "a"])) == {"a", "b"}
    assert timestamp_of(Index()) == 3  # type: ignore[arg-type]
    for pattern in (re.compile("t"), SubscriptionPattern("t")):
        assert pattern_of(pattern) is pattern


@pytest.mark.parametrize(
    ("given", "words"),
    [
        (("t", "0"), "whole number, not '0'"),
        (("t", None), "whole number, not None"),
        (("t", 1.0), "whole number, not 1.0"),
        ((b"t", 0), "a str, not b't'"),
        ((None, 0), "a str, not None"),
        ("t0", "a topic and a number"),
        (("t",), "a topic and a number"),
        (5, "a topic and a number"),
        (None, "a topic and a number"),
    ],
)
def test_what_is_no_partition(given: Any, words: str) -> None:
    with pytest.raises(TypeError, match=words):
        partition_of(given)


@pytest.mark.parametrize("given", [("t", -1), ("t", 2**31), ("", 0), (" ", 0)])
def test_partitions_that_cannot_exist(given: Any) -> None:
    with pytest.raises(ValueError, match=r"not negative|at most|not empty"):
        partition_of(given)


def test_one_partition_in_place_of_several() -> None:
    with pytest.raises(TypeError, match=r"in a list: \[TopicPartition"):
        partitions_of(A)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match="a topic and a number"):
        partitions_of(("t", 0))  # type: ignore[arg-type]


@pytest.mark.parametrize("given", [-5, 2**63, OffsetAndMetadata(-1), OffsetAndMetadata(1, "", -2)])
def test_an_offset_that_would_wipe_a_position_or_cannot_be_sent(given: Any) -> None:
    with pytest.raises(ValueError, match=r"not negative|at most|at least -1"):
        offset_of(given)


@pytest.mark.parametrize(
    "given",
    ["5", 1.5, None, (5, "note"), OffsetAndMetadata("5"), OffsetAndMetadata(5, 7)],  # type: ignore[arg-type]
)
def test_what_is_no_offset(given: Any) -> None:
    with pytest.raises(TypeError, match=r"whole number|text"):
        offset_of(given)


def test_offsets_are_a_mapping() -> None:
    with pytest.raises(TypeError, match="by partition"):
        offsets_of([("t", 0)])  # type: ignore[arg-type]


def test_times() -> None:
    with pytest.raises(TypeError, match=r"whole number, not 1\d+\.\d+: give it in milliseconds"):
        timestamp_of(time.time() * 1000 + 0.25)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="not negative"):
        timestamp_of(-1)


@pytest.mark.parametrize("given", ["t", b"t", [1], [None], [b"t"], 5])
def test_what_is_no_list_of_topics(given: Any) -> None:
    with pytest.raises(TypeError, match="topic"):
        topics_of(given)


def test_topics_without_a_name_and_patterns_of_bytes() -> None:
    with pytest.raises(ValueError, match="not empty"):
        topics_of(["a", " "])
    for pattern in (re.compile(b"t"), SubscriptionPattern(b"t")):  # type: ignore[arg-type]
        with pytest.raises(TypeError, match="text"):
            pattern_of(pattern)  # type: ignore[arg-type]
