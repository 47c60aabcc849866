"""From what a user typed to a table of options: all faults at once, and the nearest name for a typo."""

import difflib
from collections.abc import Callable, Iterable, Mapping
from typing import Any, ClassVar, Self

from barnabas.client.errors import ConfigError
from barnabas.client.options.option import Option
from barnabas.client.options.refused import COMMON_REFUSED
from barnabas.client.options.spelled_elsewhere import SPELLED_ELSEWHERE
from barnabas.config.setting import Setting
from barnabas.config.table import SettingsTable


class OptionsTable(SettingsTable):
    """Base of the three tables; `rules` bind several options together and give their faults in words."""

    __slots__ = ()
    rules: ClassVar[tuple[Callable[[Any], Iterable[str]], ...]] = ()
    refused: ClassVar[Mapping[str, str]] = COMMON_REFUSED
    """Kafka's name -> what to do instead."""

    @staticmethod
    def derived(values: dict[str, Any]) -> None:
        """Fills in defaults that depend on other options; `values` has by field what was given, and nothing else."""

    @classmethod
    def of(cls, bootstrap_servers: object = None, /, **options: object) -> Self:
        """As the constructors of the clients take them. Raises ConfigError."""
        if bootstrap_servers is not None:
            if "bootstrap_servers" in options:
                raise ConfigError(["bootstrap_servers: given twice"])
            options = {"bootstrap_servers": bootstrap_servers, **options}
        return cls._read(options, from_text=False)

    @classmethod
    def from_config(cls, config: Mapping[str, object]) -> Self:
        """Kafka's dotted names; numbers and truth values may be text. Raises ConfigError."""
        return cls._read(config, from_text=True)

    @classmethod
    def _read(cls, given: Mapping[str, object], *, from_text: bool) -> Self:
        values: dict[str, Any] = {}
        faults: list[str] = []
        for spelled, value in given.items():
            name = str(spelled).replace("_", ".")
            option = cls.settings.get(name)
            if name in cls.refused:
                faults.append(f"{spelled}: not supported here, {cls.refused[name]}")
            elif not isinstance(option, Option):
                faults.append(_unknown(str(spelled), cls.settings))
            elif option.field in values:
                faults.append(f"{spelled}: given twice")
            else:
                _take(option, str(spelled), value, from_text, values, faults)
        given_fields = frozenset(values)
        cls.derived(values)
        made = cls(**values, given=given_fields)
        for rule in cls.rules:
            faults.extend(rule(made))
        if faults:
            raise ConfigError(faults)
        return made


def _take(
    option: Option, spelled: str, value: object, from_text: bool, values: dict[str, Any], faults: list[str]
) -> None:
    try:
        values[option.field] = option.value(value, from_text=from_text)
    except ValueError as fault:
        shown = "the value given" if option.sensitive else repr(value)
        faults.append(f"{spelled}: {shown} is not allowed, it {fault}")


def _unknown(spelled: str, settings: Mapping[str, Setting]) -> str:
    """Says which name was probably meant, in the spelling (dots or underscores) that the user uses."""
    dotted = spelled.replace("_", ".").lower()
    elsewhere = SPELLED_ELSEWHERE.get(dotted)
    near = difflib.get_close_matches(dotted, list(settings), n=1, cutoff=0.7)
    if elsewhere is not None and (elsewhere in settings or " " in elsewhere):
        hint = elsewhere if " " in elsewhere else f"here it is {_as_spelled(elsewhere, spelled)}"
        return f"{spelled}: unknown option, {hint}"
    hint = f", did you mean {_as_spelled(near[0], spelled)}?" if near else ""
    return f"{spelled}: unknown option{hint}"


def _as_spelled(name: str, spelled: str) -> str:
    return name if "." in spelled else name.replace(".", "_")
