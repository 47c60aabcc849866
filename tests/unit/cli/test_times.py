"""Times and durations as people type them."""

from __future__ import annotations

import pytest

from barnabas.cli.command import UsageError
from barnabas.cli.times import duration_ms, milliseconds


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("0", 0),
        ("1700000000000", 1_700_000_000_000),
        ("1970-01-02", 86_400_000),
        ("1970-01-01T00:00:01.500", 1500),
        ("1970-01-01T01:00:00+01:00", 0),
        ("1970-01-01T00:00:01Z", 1000),
    ],
)
def test_times(text: str, wanted: int) -> None:
    assert milliseconds(text, "--at") == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("250ms", 250),
        ("90s", 90_000),
        ("1.5m", 90_000),
        ("2h", 7_200_000),
        ("7d", 604_800_000),
        ("P1D", 86_400_000),
        ("PT1H30M", 5_400_000),
        ("P2DT0.5S", 172_800_500),
        ("-PT1S", -1000),
        ("PT0S", 0),
    ],
)
def test_durations(text: str, wanted: int) -> None:
    assert duration_ms(text, "--longer-than") == wanted


@pytest.mark.parametrize("text", ["", "5", "soon", "P", "PT", "5 m", "1y"])
def test_wrong_durations(text: str) -> None:
    with pytest.raises(UsageError, match="--longer-than"):
        duration_ms(text, "--longer-than")


@pytest.mark.parametrize("text", ["", "tomorrow", "-5", "2026-13-01"])
def test_wrong_times(text: str) -> None:
    with pytest.raises(UsageError, match="--at"):
        milliseconds(text, "--at")
