"""How a message is declared: once, with the versions in which each field exists.

    @message(api_key=ApiKey.HEARTBEAT, versions=(0, 4), flexible=4)
    class HeartbeatRequest:
        group_id: str = field(STRING)
        group_instance_id: str | None = field(STRING, since=3, nullable=3, default=None)

The decorators create a slotted class with a keyword-only `__init__` in which every field is optional (with Kafka's
default), `__eq__` and `__repr__`. `compiler.py` reads `__schema__`; nothing else does. A declaration must never
depend on anything but other declarations: bytes on disk are decoded by it after every restart.
"""

from collections.abc import Callable
from dataclasses import dataclass
from dataclasses import field as slot
from typing import Any, Protocol, TypeVar, dataclass_transform, runtime_checkable

from barnabas.protocol.api import ApiKey

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Primitive:
    """A type of the protocol. `format` is its struct code, empty where the size varies."""

    name: str
    format: str
    size: int
    default: Any


BOOL = Primitive("bool", "?", 1, False)
INT8 = Primitive("int8", "b", 1, 0)
INT16 = Primitive("int16", "h", 2, 0)
UINT16 = Primitive("uint16", "H", 2, 0)
INT32 = Primitive("int32", "i", 4, 0)
INT64 = Primitive("int64", "q", 8, 0)
FLOAT64 = Primitive("float64", "d", 8, 0.0)
UUID = Primitive("uuid", "16s", 16, bytes(16))
STRING = Primitive("string", "", 0, "")
TEXT = Primitive("text", "", 0, "")
"""A string for people, such as an error message: on the wire a string, cut to the maximum length."""
BYTES = Primitive("bytes", "", 0, b"")
RECORDS = Primitive("records", "", 0, None)


@dataclass(frozen=True, slots=True)
class Array:
    element: "Primitive | type[Any]"


Kind = Primitive | Array | type[Any]


@runtime_checkable
class RecordsRegion(Protocol):
    """Record batches in a region of a segment file: sent without being read into memory."""

    @property
    def length(self) -> int: ...


Records = bytes | bytearray | memoryview | RecordsRegion


@dataclass(frozen=True, slots=True)
class Field:
    kind: Kind
    since: int
    until: int
    nullable: int
    default: Any
    ignorable: bool
    tag: int | None
    secret: bool

    def exists_in(self, version: int) -> bool:
        return self.since <= version <= self.until

    def may_be_null_in(self, version: int) -> bool:
        return version >= self.nullable


@dataclass(frozen=True, slots=True)
class Schema:
    name: str
    fields: dict[str, Field]
    api_key: ApiKey | None
    record_type: int | None
    min_version: int
    max_version: int
    flexible: int
    # Codecs by version, filled on first use. They depend on the declaration alone, so brokers in one process may share
    # them.
    encoders: dict[int, Callable[..., None]] = slot(default_factory=dict)
    decoders: dict[int, Callable[..., tuple[Any, int]]] = slot(default_factory=dict)
    sliced_encoders: dict[int, Callable[..., Any]] = slot(default_factory=dict)
    sliced_decoders: dict[int, Callable[..., Any]] = slot(default_factory=dict)


_UNSET: Any = type("Unset", (), {"__repr__": lambda self: "..."})()
_NEVER = 1 << 15


def array(element: Primitive | type[Any]) -> Array:
    return Array(element)


def field(
    kind: Kind,
    *,
    since: int = 0,
    until: int = _NEVER,
    nullable: int = _NEVER,
    default: Any = _UNSET,
    ignorable: bool = False,
    tag: int | None = None,
    secret: bool = False,
) -> Any:
    """A field that exists in versions `since`..`until` and may be null from version `nullable` on.

    `ignorable`: a value is dropped silently when the version has no such field (otherwise encoding fails).
    `tag`: carried in the tagged section. `secret`: never shown by repr, so never in a log.
    """
    if default is _UNSET and isinstance(kind, Primitive):
        default = kind.default
    return Field(kind, since, until, nullable, default, ignorable, tag, secret)


def default_of(declared: Field) -> Any:
    """A fresh default value: arrays and structs are mutable, so each message gets its own."""
    if declared.default is not _UNSET:
        return declared.default
    return [] if isinstance(declared.kind, Array) else declared.kind()  # type: ignore[operator]


@dataclass_transform(kw_only_default=True)
def message(
    *,
    versions: tuple[int, int],
    flexible: int | None,
    api_key: ApiKey | None = None,
    record_type: int | None = None,
) -> Callable[[type[T]], type[T]]:
    """A whole request, response, or record of a coordinator's log. `flexible` is the first flexible version, if any.

    `record_type` is the number that a record's key starts with; it is unrelated to API keys.
    """

    def decorate(declaration: type[T]) -> type[T]:
        return _slotted(declaration, api_key, record_type, versions, _NEVER if flexible is None else flexible)

    return decorate


@dataclass_transform(kw_only_default=True)
def struct(declaration: type[T]) -> type[T]:
    """A part of a message; its versions are those of the message around it."""
    return _slotted(declaration, None, None, (0, _NEVER), _NEVER)


def _slotted(
    declaration: type[T],
    api_key: ApiKey | None,
    record_type: int | None,
    versions: tuple[int, int],
    flexible: int,
) -> type[T]:
    fields = {name: value for name, value in vars(declaration).items() if isinstance(value, Field)}
    namespace = {
        name: value
        for name, value in vars(declaration).items()
        if name not in fields and name not in ("__dict__", "__weakref__")
    }
    namespace["__slots__"] = tuple(fields)
    namespace["__match_args__"] = ()
    namespace["__schema__"] = Schema(declaration.__name__, fields, api_key, record_type, *versions, flexible)
    namespace["__init__"] = _compile_init_on_first_use
    namespace["__eq__"] = _compile_equal_on_first_use
    namespace["__hash__"] = None
    namespace["__repr__"] = _show
    made: type[T] = type(declaration.__name__, declaration.__bases__, namespace)
    return made


def _compile_init_on_first_use(self: Any, **values: Any) -> None:
    """Most processes use few of the messages, so a constructor is compiled on first use."""
    cls = type(self)
    cls.__init__ = _compile_init(cls)
    cls.__init__(self, **values)


def _compile_init(cls: type[Any]) -> Callable[..., None]:
    schema: Schema = cls.__schema__
    names: dict[str, Any] = {"UNSET": _UNSET}
    parameters, body = [], []
    for name, declared in schema.fields.items():
        if declared.default is not _UNSET:
            names[f"default_{name}"] = declared.default
            parameters.append(f"{name}=default_{name}")
            body.append(f"    self.{name} = {name}")
        else:
            names[f"new_{name}"] = list if isinstance(declared.kind, Array) else declared.kind
            parameters.append(f"{name}=UNSET")
            body.append(f"    self.{name} = new_{name}() if {name} is UNSET else {name}")
    signature = "self, *, " + ", ".join(parameters) if parameters else "self"
    source = f"def __init__({signature}):\n" + ("\n".join(body) or "    pass")
    exec(compile(source, f"<{schema.name}.__init__>", "exec"), names)
    init: Callable[..., None] = names["__init__"]
    return init


def _compile_equal_on_first_use(self: Any, other: object) -> bool:
    """The tagged fields of each response are compared with their defaults, so this is compiled too."""
    cls = type(self)
    setattr(cls, "__eq__", _compile_equal(cls.__schema__))  # noqa: B010 - mypy takes it for object's
    same: bool = self == other
    return same


def _compile_equal(schema: Schema) -> Callable[[Any, object], bool]:
    conditions = ["self.__class__ is other.__class__"] + [f"self.{name} == other.{name}" for name in schema.fields]
    names: dict[str, Any] = {}
    source = f"def __eq__(self, other):\n    return {' and '.join(conditions)}"
    exec(compile(source, f"<{schema.name}.__eq__>", "exec"), names)
    equal: Callable[[Any, object], bool] = names["__eq__"]
    return equal


def _show(self: Any) -> str:
    """Only what differs from the defaults; of secrets and record batches at most the size."""
    shown = []
    for name, declared in self.__schema__.fields.items():
        value = getattr(self, name)
        if value == default_of(declared):
            continue
        if declared.secret:
            shown.append(f"{name}=<hidden>")
        elif declared.kind is RECORDS:
            shown.append(f"{name}=<{value.length if isinstance(value, RecordsRegion) else len(value)} bytes>")
        else:
            shown.append(f"{name}={value!r}")
    return f"{self.__schema__.name}({', '.join(shown)})"
