"""From what a user typed to a table of options: all faults at once, and the nearest name for a typo."""

import difflib
import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, ClassVar, Self

from barnabas.client.errors import ConfigError
from barnabas.client.options.option import Option
from barnabas.client.options.refused import COMMON_REFUSED, IGNORED_IN_FILES
from barnabas.client.options.spelled_elsewhere import SPELLED_ELSEWHERE
from barnabas.config.setting import Setting
from barnabas.config.table import SettingsTable

logger = logging.getLogger("barnabas.client")


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
        """Kafka's dotted names; numbers and truth values may be text. Raises ConfigError.

        What is for Java alone or for another kind of client is ignored with one warning: a file may be shared.
        """
        ignored = [name for name, value in config.items() if cls._is_ignored(str(name).replace("_", "."), value)]
        if ignored:
            logger.warning("ignored, without a meaning for this client: %s", ", ".join(ignored))
        return cls._read({name: value for name, value in config.items() if name not in ignored}, from_text=True)

    @classmethod
    def _is_ignored(cls, name: str, value: object) -> bool:
        if name == "interceptor.classes":
            # Python's are objects; a name is a Java class.
            return isinstance(value, str) and bool(value.strip())
        if name in cls.settings or name in cls.refused:
            return name in IGNORED_IN_FILES
        return name in IGNORED_IN_FILES or any(name in (*each.settings, *each.refused) for each in _tables())

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


def _tables(base: type[OptionsTable] = OptionsTable) -> Iterator[type[OptionsTable]]:
    """Those of all kinds of clients."""
    for table in base.__subclasses__():
        yield table
        yield from _tables(table)


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
