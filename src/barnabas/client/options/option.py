"""One option of a client: a setting that also takes Python values.

The tables are made of these. Nothing here knows a particular option.
"""

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any, TypeVar, cast

from barnabas.config.checks import Check
from barnabas.config.setting import Importance, Kind, Setting

D = TypeVar("D")
LOW, MEDIUM, HIGH = Importance.LOW, Importance.MEDIUM, Importance.HIGH
INTEGERS = (Kind.INT, Kind.SHORT, Kind.LONG)


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Option(Setting):
    """One option of a table."""

    convert: Callable[[Any], Any] | None = None
    """For values that are more than text and numbers; raises ValueError that begins with `must`."""

    def value(self, given: object, *, from_text: bool) -> Any:
        """The typed value of what a user gave; raises ValueError.

        `from_text`: numbers and truth values may come as text, as they do from a properties file.
        """
        if given is None and self.default is None:
            return None
        if self.convert is not None:
            return self._checked(self.convert(given))
        if isinstance(given, str) and (from_text or self.kind in (Kind.STRING, Kind.PASSWORD, Kind.LIST)):
            return self.parse(given)
        return self._checked(self._typed(given))

    def _typed(self, given: object) -> Any:
        if self.kind is Kind.BOOLEAN:
            if not isinstance(given, bool):
                raise ValueError("must be True or False")
        elif self.kind in INTEGERS:
            if not isinstance(given, int) or isinstance(given, bool):
                raise ValueError("must be a whole number")
            self.parse(str(int(given)))
        elif self.kind is Kind.DOUBLE:
            if not isinstance(given, int | float) or isinstance(given, bool):
                raise ValueError("must be a number")
            return float(given)
        elif self.kind is Kind.LIST:
            if not isinstance(given, Sequence) or not all(isinstance(item, str) for item in given):
                raise ValueError("must be text or a list of text")
            return tuple(given)
        elif not isinstance(given, str):
            raise ValueError("must be text")
        return given

    def _checked(self, value: Any) -> Any:
        fault = None if self.check is None or value is None else self.check.fault(value)
        if fault is not None:
            raise ValueError(fault)
        return value


# Each of these returns an Option and says it returns the type of the field, as in barnabas.config.setting.


def flag(default: bool, doc: str, check: Check | None = None, **about: Any) -> bool:
    return cast(bool, Option(kind=Kind.BOOLEAN, default=default, doc=doc, check=check, **about))


def int32(default: D, doc: str, check: Check | None = None, **about: Any) -> int | D:
    return cast(D, Option(kind=Kind.INT, default=default, doc=doc, check=check, **about))


def int64(default: D, doc: str, check: Check | None = None, **about: Any) -> int | D:
    return cast(D, Option(kind=Kind.LONG, default=default, doc=doc, check=check, **about))


def text(default: D, doc: str, check: Check | None = None, **about: Any) -> str | D:
    return cast(D, Option(kind=Kind.STRING, default=default, doc=doc, check=check, **about))


def secret(default: D, doc: str, check: Check | None = None, **about: Any) -> str | D:
    return cast(D, Option(kind=Kind.PASSWORD, default=default, doc=doc, check=check, **about))


def texts(default: D, doc: str, check: Check | None = None, **about: Any) -> tuple[str, ...] | D:
    return cast(D, Option(kind=Kind.LIST, default=default, doc=doc, check=check, **about))


def python(default: D, doc: str, convert: Callable[[Any], Any], **about: Any) -> D:
    """A value that is a function or an object, or text that names one."""
    return cast(D, Option(kind=Kind.CLASS, default=default, doc=doc, convert=convert, **about))


def choice(default: D, doc: str, *choices: str, **about: Any) -> str | D:
    """Text out of a few, in any case; kept as it is spelled here."""
    folded = {each.lower(): each for each in choices}

    def convert(given: Any) -> str:
        found = folded.get(given.strip().lower()) if isinstance(given, str) else None
        if found is None:
            raise ValueError(f"must be one of: {', '.join(choices)}")
        return found

    check = Check(f"one of: {', '.join(choices)}", lambda value: value in choices)
    return cast(D, Option(kind=Kind.STRING, default=default, doc=doc, convert=convert, check=check, **about))
