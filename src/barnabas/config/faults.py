"""Faults of given settings: all at once, with the nearest name for a typo."""

from collections.abc import Iterable, Mapping
from typing import Any, Self

from barnabas.config.setting import Setting


class Fault(str):
    """`setting: what is wrong with it`."""

    setting: str
    reason: str

    def __new__(cls, setting: str, reason: str) -> Self:
        fault = super().__new__(cls, f"{setting}: {reason}")
        fault.setting, fault.reason = setting, reason
        return fault


class ConfigFaults(ValueError):
    """Raised with every fault that was found, one sentence each. One about a single setting is a `Fault`."""

    def __init__(self, faults: Iterable[str]) -> None:
        self.faults = tuple(faults)
        super().__init__("; ".join(self.faults))


def unknown_name(name: str, known: Iterable[str], what: str = "setting") -> str:
    import difflib  # only needed for a typo; saves startup time

    near = difflib.get_close_matches(name, list(known), n=1, cutoff=0.75)
    return Fault(name, f"unknown {what}" + (f", did you mean {near[0]}?" if near else ""))


def bad_value(setting: Setting, text: str, fault: ValueError) -> str:
    """Omits the value if it may be a secret."""
    shown = "the value given" if setting.sensitive else repr(text)
    return Fault(setting.name, f"{shown} is not allowed, it {fault}")


def read_values(settings: Mapping[str, Setting], given: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """Field -> typed value for the known names among those given, and the faults of their values."""
    values: dict[str, Any] = {}
    faults: list[str] = []
    for name, text in given.items():
        setting = settings.get(name)
        if setting is None:
            continue
        try:
            values[setting.field] = setting.parse(text)
        except ValueError as fault:
            faults.append(bad_value(setting, text, fault))
    return values, faults
