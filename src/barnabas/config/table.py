"""Tables of settings: classes whose fields are declarations, and whose objects are the settings of one broker or topic.

A field's name is Kafka's with `_` for `.`. `settings_table` makes the class slotted and frozen, with Kafka's defaults,
and keeps the declarations in `Table.settings`. A large table is composed of areas (`settings_area`).
Dataclasses would do the same, but take 20 ms at import to compile methods for the broker's 336 fields.
"""

import dataclasses
from collections.abc import Mapping
from typing import Any, ClassVar, Self, TypeVar, cast, dataclass_transform

from barnabas.config.setting import Setting

T = TypeVar("T")


class SettingsTable:
    """Base of every table and area."""

    __slots__ = ()
    settings: ClassVar[Mapping[str, Setting]] = {}
    """Kafka's name -> declaration, in the order of the names."""
    defaults: ClassVar[Mapping[str, Any]] = {}
    """Field -> default, for the settings and the plain fields of the table."""

    def __init__(self, **values: Any) -> None:
        unknown = values.keys() - self.defaults.keys()
        if unknown:
            raise TypeError(f"{type(self).__name__} has no field {', '.join(sorted(unknown))}")
        for field, value in {**self.defaults, **values}.items():
            object.__setattr__(self, field, value)

    def replace(self, **changes: Any) -> Self:
        """A copy with some fields changed; nothing is checked."""
        return type(self)(**{field: getattr(self, field) for field in self.defaults} | changes)

    def __setattr__(self, field: str, value: Any) -> None:
        raise AttributeError(f"{type(self).__name__}.{field} cannot be changed, make a copy with replace()")

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return all(getattr(self, field) == getattr(other, field) for field in self.defaults)

    def __hash__(self) -> int:
        return hash(tuple(getattr(self, setting.field) for setting in self.settings.values()))

    def __repr__(self) -> str:
        changed = (
            f"{name}={'[hidden]' if setting.sensitive else getattr(self, setting.field)!r}"
            for name, setting in self.settings.items()
            if getattr(self, setting.field) != setting.default
        )
        return f"{type(self).__name__}({', '.join(changed)})"


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings_area(cls: type[T]) -> type[T]:
    """Marks one area of a large table. An area has `__slots__ = ()` and is never instantiated itself."""
    return cls


@dataclass_transform(kw_only_default=True, frozen_default=True)
def settings_table(cls: type[T]) -> type[T]:
    """The table itself, over all declarations of the class and its areas."""
    settings = _declared(cls)
    defaults = {setting.field: setting.default for setting in settings.values()}
    for field in vars(cls).get("__annotations__", {}):
        if field not in defaults:
            defaults[field] = vars(cls)[field]
    namespace = {name: value for name, value in vars(cls).items() if name not in ("__dict__", "__weakref__", *defaults)}
    namespace |= {"__slots__": tuple(defaults), "settings": settings, "defaults": defaults}
    return cast(type[T], type(cls.__name__, cls.__bases__, namespace))


def _declared(cls: type) -> dict[str, Setting]:
    found: dict[str, Setting] = {}
    for base in cls.__mro__:
        for field, value in vars(base).items():
            if isinstance(value, Setting):
                name = field.replace("_", ".")
                found[name] = dataclasses.replace(value, name=name)
    return dict(sorted(found.items()))
