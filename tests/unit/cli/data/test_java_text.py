"""Numbers and dates as Java prints them; doubles and floats are compared with Java itself in tests/clients."""

from __future__ import annotations

import math
import time

import pytest

from barnabas.cli.data.java_text import date_text, double_text, fixed, float_text, ratio


@pytest.mark.parametrize(
    ("value", "digits", "text"),
    [(0.125, 2, "0.13"), (2.5, 0, "3"), (1.005, 2, "1.01"), (-0.5, 1, "-0.5"), (1e20, 1, "100000000000000000000.0")],
)
def test_half_is_rounded_up(value: float, digits: int, text: str) -> None:
    assert fixed(value, digits) == text


def test_what_is_no_number() -> None:
    assert [fixed(ratio(each, 0), 2) for each in (1.0, -1.0, 0.0)] == ["Infinity", "-Infinity", "NaN"]
    assert ratio(3, 2) == 1.5
    assert double_text(math.inf) == float_text(math.inf) == "Infinity" and double_text(math.nan) == "NaN"


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (0.0, "0.0"),
        (-0.0, "-0.0"),
        (1.0, "1.0"),
        (100.0, "100.0"),
        (0.001, "0.001"),
        (0.00099, "9.9E-4"),
        (9999999.0, "9999999.0"),
        (1e7, "1.0E7"),
        (-1.25e-7, "-1.25E-7"),
        (123456.789, "123456.789"),
    ],
)
def test_doubles(value: float, text: str) -> None:
    assert double_text(value) == text


def test_a_float_has_fewer_digits() -> None:
    assert (float_text(0.10000000149011612), float_text(16777216.0)) == ("0.1", "1.6777216E7")


def test_dates(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TZ", "UTC")
    time.tzset()
    moment = 1_700_000_000_123
    assert date_text(moment, "yyyy-MM-dd HH:mm:ss:SSS") == "2023-11-14 22:13:20:123"
    assert date_text(moment, "d/M/yy h 'o''clock' a") == "14/11/23 10 o'clock PM"
    with pytest.raises(ValueError, match="Illegal pattern character 'b'"):
        date_text(moment, "b")
    monkeypatch.undo()
    time.tzset()
