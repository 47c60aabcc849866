"""Times and durations as people type them."""

import re
from datetime import UTC, datetime, timedelta

from barnabas.cli.command import UsageError
from barnabas.cli.numbers import int64

_DURATION = re.compile(
    r"(?P<sign>-)?P(?:(?P<days>\d+)D)?(?:T(?:(?P<hours>\d+)H)?(?:(?P<minutes>\d+)M)?(?:(?P<seconds>\d+(?:\.\d+)?)S)?)?"
)
_SHORT = re.compile(r"(?P<number>\d+(?:\.\d+)?)(?P<unit>ms|s|m|h|d)")
_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}


def milliseconds(text: str, option: str) -> int:
    """Milliseconds since 1970: a number, 2026-01-31 or 2026-01-31T12:00[:00.000][Z|+01:00]; UTC unless it says."""
    try:
        return int64(text) if text.isdecimal() else _since_1970(text)
    except ValueError:
        raise UsageError(f"{option} {text}: expected a time like 2026-01-31T12:00 or milliseconds since 1970") from None


def _since_1970(text: str) -> int:
    """Raises ValueError for what is no time, or one before: the protocol has other meanings for negative ones."""
    when = datetime.fromisoformat(text)
    if when.tzinfo is None:
        when = when.replace(tzinfo=UTC)
    passed = int((when - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))
    if passed < 0:
        raise ValueError(text)
    return passed


def duration_ms(text: str, option: str) -> int:
    """`90s`, `15m`, `2h`, `7d`, or as Kafka has it, PnDTnHnMnS."""
    try:
        return int64(_duration_ms(text))
    except (ValueError, OverflowError):
        raise UsageError(f"{option} {text}: expected a duration like 90s, 15m, 2h, 7d or PT1H30M") from None


def _duration_ms(text: str) -> int:
    """Raises ValueError if it is none, OverflowError if it is longer than anything."""
    short = _SHORT.fullmatch(text)
    if short:
        return int(float(short["number"]) * _UNITS[short["unit"]] * 1000)
    iso = _DURATION.fullmatch(text.upper())
    if iso is None or not any(iso[part] for part in ("days", "hours", "minutes", "seconds")):
        raise ValueError(text)
    parts = {name: float(iso[name] or 0) for name in ("days", "hours", "minutes", "seconds")}
    return int(timedelta(**parts) / timedelta(milliseconds=1)) * (-1 if iso["sign"] else 1)
