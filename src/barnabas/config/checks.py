"""Checks of values: each describes what is allowed and returns a message if a value is not, else None."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class Check:
    allowed: str
    """For the documentation: `at least 1`, `one of: a, b`."""
    holds: Callable[[Any], bool]

    def fault(self, value: Any) -> str | None:
        return None if self.holds(value) else f"must be {self.allowed}"


def at_least(low: float) -> Check:
    return Check(f"at least {low}", lambda value: value is None or value >= low)


def between(low: float, high: float) -> Check:
    return Check(f"between {low} and {high}", lambda value: low <= value <= high)


def one_of(*choices: str) -> Check:
    return Check(f"one of: {', '.join(choices)}", lambda value: value in choices)


def one_of_any_case(*choices: str) -> Check:
    return Check(f"one of: {', '.join(choices)}", lambda value: value.upper() in choices)


def each_of(*choices: str) -> Check:
    return Check(f"a list of: {', '.join(choices)}", lambda value: all(item in choices for item in value))


def some_of(*choices: str) -> Check:
    """Like `each_of`, but at least one and without duplicates."""
    return Check(
        f"a list of at least one of: {', '.join(choices)}",
        lambda value: bool(value) and len(set(value)) == len(value) and all(item in choices for item in value),
    )


def either(check: Check, *others: object) -> Check:
    words = " or ".join(str(other) for other in others)
    return Check(f"{check.allowed}, or {words}", lambda value: value in others or check.holds(value))


NOT_EMPTY = Check("not empty", lambda value: value is None or bool(value.strip()))

_THROTTLED = re.compile(r"[0-9]+:[0-9]+", re.ASCII)


def _throttled_replicas(value: tuple[str, ...]) -> bool:
    return value == ("*",) or all(_THROTTLED.fullmatch(item) for item in value)


THROTTLED_REPLICAS = Check("`*` or a list of partition:broker", _throttled_replicas)

_TOPIC_NAME = re.compile(r"[a-zA-Z0-9._-]{1,249}", re.ASCII)


def _topic_name(value: str | None) -> bool:
    if value is None:
        return True
    return bool(_TOPIC_NAME.fullmatch(value)) and value not in (".", "..") and not value.startswith("__")


TOPIC_NAME = Check("the name of a topic that is not internal", _topic_name)
