"""`-p 0,2-3`: which partitions are meant, whatever numbers people type."""

from __future__ import annotations

import pytest

from barnabas.cli.command import UsageError
from barnabas.cli.data.partition_ranges import parse_partitions, partitions_in


@pytest.mark.parametrize(
    ("text", "meant"), [("0", [0]), ("2,0", [0, 2]), ("0-3", [0, 1, 2, 3]), ("1-2,2,0-1", [0, 1, 2]), ("3-3", [3])]
)
def test_what_is_meant(text: str, meant: list[int]) -> None:
    assert partitions_in(parse_partitions(text), "t", range(4)) == meant


@pytest.mark.parametrize("text", ["", "x", "1,", "-1", "1-", "1-x", "0x1"])
def test_words_that_are_no_numbers(text: str) -> None:
    with pytest.raises(UsageError, match="expected numbers like 0,2 or 0-3"):
        parse_partitions(text)


@pytest.mark.parametrize("text", ["3-1", "0,2-1", "0--3"])
def test_an_empty_range_is_a_mistake(text: str) -> None:
    with pytest.raises(UsageError, match="is empty"):
        parse_partitions(text)


@pytest.mark.parametrize(("text", "missing"), [("0-99999999999", 4), ("99999999999", 99999999999), ("2-5", 4)])
def test_what_is_not_there_costs_nothing(text: str, missing: int) -> None:
    with pytest.raises(UsageError, match=f"-p: t has no partition {missing}; it has 4, from 0 on"):
        partitions_in(parse_partitions(text), "t", range(4))
