"""One declaration per setting: Kafka's type, default, check, documentation, and whether it has an effect here.

The tables in `topic` and `broker` are made of these (see `table`); parsing, DescribeConfigs and the generated pages
read them. Nothing here reads a file or knows a particular setting.
"""

import dataclasses
import re
import sys
from enum import Enum, IntEnum
from typing import Any, NamedTuple, TypeVar, cast

from barnabas.config.checks import Check

D = TypeVar("D")

INT32_MAX = (1 << 31) - 1
INT64_MAX = (1 << 63) - 1
DOUBLE_MAX = sys.float_info.max

INTEGER_TEXT = re.compile(r"[+-]?[0-9]+", re.ASCII)


class Kind(IntEnum):
    """Type of a value; the numbers are those of the DescribeConfigs response."""

    BOOLEAN = 1
    STRING = 2
    INT = 3
    SHORT = 4
    LONG = 5
    DOUBLE = 6
    LIST = 7
    CLASS = 8
    PASSWORD = 9


BITS = {Kind.SHORT: 16, Kind.INT: 32, Kind.LONG: 64}


class Importance(Enum):
    HIGH = "high"
    MEDIUM = "medium"
    LOW = "low"


class Update(Enum):
    """When a broker setting may change: only at startup, per broker, or cluster-wide."""

    READ_ONLY = "read-only"
    PER_BROKER = "per-broker"
    CLUSTER_WIDE = "cluster-wide"


HIGH, MEDIUM, LOW = Importance.HIGH, Importance.MEDIUM, Importance.LOW
PER_BROKER, CLUSTER_WIDE = Update.PER_BROKER, Update.CLUSTER_WIDE


class Synonym(NamedTuple):
    """A broker setting that gives a topic setting its value; `factor` turns hours or minutes into milliseconds."""

    name: str
    factor: int = 1


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    kind: Kind
    default: Any
    doc: str
    check: Check | None = None
    importance: Importance = MEDIUM
    update: Update = Update.READ_ONLY
    synonyms: tuple[Synonym, ...] = ()
    no_effect: str = ""
    """Why the setting has no effect here; empty if it has one."""
    internal: bool = False
    """Omitted from the pages, and from DescribeConfigs unless it was set, as in Kafka."""
    name: str = ""

    @property
    def field(self) -> str:
        return self.name.replace(".", "_")

    @property
    def sensitive(self) -> bool:
        return self.kind is Kind.PASSWORD

    def parse(self, text: str) -> Any:
        """The typed value; raises ValueError with what is allowed, without the value of a secret."""
        value = PARSERS[self.kind](self.kind, text)
        if self.check is not None:
            fault = self.check.fault(value)
            if fault is not None:
                raise ValueError(fault)
        return value

    def text(self, value: Any) -> str | None:
        """A value as Kafka writes it; the reverse of `parse`."""
        if value is None:
            return None
        if isinstance(value, bool):
            return "true" if value else "false"
        if isinstance(value, tuple):
            return ",".join(value)
        return java_double(value) if isinstance(value, float) else str(value)


def java_double(value: float) -> str:
    """As Double.toString: plain from 0.001 to 10,000,000, with an exponent outside."""
    if value == 0 or 1e-3 <= abs(value) < 1e7:
        return repr(value)
    shortest = next(text for digits in range(1, 18) if float(text := f"{value:.{digits}e}") == value)
    mantissa, exponent = shortest.split("e")
    return f"{mantissa}E{int(exponent)}"


def parse_boolean(kind: Kind, text: str) -> bool:
    lowered = text.strip().lower()
    if lowered not in ("true", "false"):
        raise ValueError("must be true or false")
    return lowered == "true"


def parse_integer(kind: Kind, text: str) -> int:
    trimmed = text.strip()
    if not INTEGER_TEXT.fullmatch(trimmed):
        raise ValueError(f"must be a whole number ({kind.name.lower()})")
    # Twenty characters hold any 64-bit number; the length is checked first because int() is quadratic.
    value = int(trimmed) if len(trimmed) <= 20 else 1 << 64
    bound = 1 << (BITS[kind] - 1)
    if not -bound <= value < bound:
        raise ValueError(f"must be a whole number from {-bound} to {bound - 1}")
    return value


def parse_double(kind: Kind, text: str) -> float:
    try:
        value = float(text.strip().replace("_", "x"))
    except ValueError:
        raise ValueError("must be a number") from None
    if value != value or value in (float("inf"), float("-inf")):
        raise ValueError("must be a finite number")
    return value


def parse_list(kind: Kind, text: str) -> tuple[str, ...]:
    trimmed = text.strip()
    return tuple(item.strip() for item in trimmed.split(",")) if trimmed else ()


def parse_text(kind: Kind, text: str) -> str:
    return text


def parse_class(kind: Kind, text: str) -> str:
    trimmed = text.strip()
    if not trimmed:
        raise ValueError("must be the name of a class")
    return trimmed


PARSERS = {
    Kind.BOOLEAN: parse_boolean,
    Kind.STRING: parse_text,
    Kind.INT: parse_integer,
    Kind.SHORT: parse_integer,
    Kind.LONG: parse_integer,
    Kind.DOUBLE: parse_double,
    Kind.LIST: parse_list,
    Kind.CLASS: parse_class,
    Kind.PASSWORD: parse_text,
}


# The declarations. Each returns a Setting but is annotated with the type of the field: `settings_table` replaces it by
# the default, so that is what a reader of the field gets.


def boolean(default: bool, doc: str, check: Check | None = None, **about: Any) -> bool:
    return cast(bool, Setting(kind=Kind.BOOLEAN, default=default, doc=doc, check=check, **about))


def int32(default: D, doc: str, check: Check | None = None, **about: Any) -> int | D:
    return cast(D, Setting(kind=Kind.INT, default=default, doc=doc, check=check, **about))


def int16(default: int, doc: str, check: Check | None = None, **about: Any) -> int:
    return cast(int, Setting(kind=Kind.SHORT, default=default, doc=doc, check=check, **about))


def int64(default: D, doc: str, check: Check | None = None, **about: Any) -> int | D:
    return cast(D, Setting(kind=Kind.LONG, default=default, doc=doc, check=check, **about))


def double(default: D, doc: str, check: Check | None = None, **about: Any) -> float | D:
    return cast(D, Setting(kind=Kind.DOUBLE, default=default, doc=doc, check=check, **about))


def string(default: D, doc: str, check: Check | None = None, **about: Any) -> str | D:
    return cast(D, Setting(kind=Kind.STRING, default=default, doc=doc, check=check, **about))


def string_list(default: D, doc: str, check: Check | None = None, **about: Any) -> tuple[str, ...] | D:
    return cast(D, Setting(kind=Kind.LIST, default=default, doc=doc, check=check, **about))


def class_name(default: D, doc: str, check: Check | None = None, **about: Any) -> str | D:
    return cast(D, Setting(kind=Kind.CLASS, default=default, doc=doc, check=check, **about))


def password(default: D, doc: str, check: Check | None = None, **about: Any) -> str | D:
    return cast(D, Setting(kind=Kind.PASSWORD, default=default, doc=doc, check=check, **about))
