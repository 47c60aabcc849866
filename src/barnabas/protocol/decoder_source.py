"""Writes the source of a decoder: `decode_X(buf, pos) -> (message, pos)` for a message and each struct in it.

Called by the compiler only. Neighbouring fixed-size fields become one `struct.Struct.unpack_from` straight into the
attributes. Before an array is built, its count is checked against the smallest size its elements can have. Structs hold
no cycles, so the depth of calls is that of the declaration, whatever the bytes say.

`sliced` writes the same decoder as generators: they yield in every loop whose length the bytes decide, so that a large
message can be decoded in slices (server/slices.py). Structs without such a loop stay plain functions.
"""

import struct
from collections.abc import Callable
from typing import Any

from barnabas.errors import ProtocolError
from barnabas.protocol import primitives
from barnabas.protocol.schema import BYTES, RECORDS, STRING, TEXT, UUID, Array, Kind, Primitive, Schema, default_of

_READERS = ("read_", "take_", "skip_", "check_")
SHORT_ARRAY = 16
STEP_ELEMENTS = 64
"""A sliced decoder yields after so many elements of an array, or after each where the elements hold arrays."""
STEP_NUMBERS = 4096


class DecoderSource:
    def __init__(self, version: int, flexible: bool, sliced: bool = False) -> None:
        self._version = version
        self._flexible = flexible
        self._sliced = sliced
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            name: getattr(primitives, name) for name in dir(primitives) if name.startswith(_READERS)
        }
        self._names |= {"new": object.__new__, "refuse_null": _refuse_null, "unpack_i": struct.Struct(">i").unpack_from}
        self._compact = "compact_" if flexible else ""

    def compile(self, message: type[Any]) -> Callable[..., tuple[Any, int]]:
        name = self._struct(message)
        source = "\n".join(self._lines)
        exec(compile(source, f"<decode {message.__name__} v{self._version}>", "exec"), self._names)
        decoder: Callable[..., tuple[Any, int]] = self._names[name]
        return decoder

    def _struct(self, cls: type[Any]) -> str:
        function = f"decode_{cls.__name__}"
        if function in self._names:
            return function
        self._names |= {function: None, f"class_{cls.__name__}": cls}
        schema: Schema = cls.__schema__
        lines = [f"def {function}(buf, pos):", f"    m = new(class_{cls.__name__})"]
        fixed: list[tuple[Primitive, str]] = []
        for name, declared in schema.fields.items():
            if not declared.exists_in(self._version) or declared.tag is not None:
                lines.append(f"    m.{name} = {self._default(schema, name)}")
            elif isinstance(declared.kind, Primitive) and declared.kind.format:
                fixed.append((declared.kind, f"m.{name}"))
            else:
                lines += self._unpack(fixed)
                lines += self._value(declared.kind, f"m.{name}", declared.may_be_null_in(self._version))
        lines += self._unpack(fixed)
        if self._flexible:
            lines += self._tagged_section(schema)
        self._lines += [*lines, "    return m, pos"]
        return function

    def _default(self, schema: Schema, name: str) -> str:
        default = default_of(schema.fields[name])
        if isinstance(default, list):
            return "[]"
        if hasattr(default, "__schema__"):
            self._names[f"class_{type(default).__name__}"] = type(default)
            return f"class_{type(default).__name__}()"
        self._names[f"default_{schema.name}_{name}"] = default
        return f"default_{schema.name}_{name}"

    def _unpack(self, fixed: list[tuple[Primitive, str]]) -> list[str]:
        """Flush the run of fixed-size fields gathered so far as one unpack."""
        if not fixed:
            return []
        code = "".join(kind.format for kind, _ in fixed)
        unpack = f"unpack_{code.replace('?', 'B_')}"
        self._names[unpack] = struct.Struct(">" + code).unpack_from
        targets = ", ".join(target for _, target in fixed)
        size = sum(kind.size for kind, _ in fixed)
        fixed.clear()
        return [f"    ({targets},) = {unpack}(buf, pos)", f"    pos += {size}"]

    def _value(self, kind: Kind, target: str, nullable: bool, tagged: bool = False) -> list[str]:
        if kind in (STRING, TEXT):
            return [f"    {target}, pos = read_{self._compact}{'nullable_' if nullable else ''}string(buf, pos)"]
        if isinstance(kind, Primitive) and kind.format:
            return self._unpack([(kind, target)])
        if isinstance(kind, type):
            return self._struct_value(kind, target, nullable, tagged)
        if kind is BYTES or kind is RECORDS:
            lines = [f"    {target}, pos = take_{kind.name}(buf, pos, n)"]
        else:
            assert isinstance(kind, Array)
            lines = self._elements(kind, target)
        on_null = f"{target} = None" if nullable else "refuse_null()"
        return [
            *self._read_length(),
            "    if n == -1:",
            f"        {on_null}",
            "    else:",
            *(f"    {line}" for line in lines),
        ]

    def _read_length(self) -> list[str]:
        if not self._flexible:
            return ["    (n,) = unpack_i(buf, pos)", "    pos += 4"]
        return [
            "    n = buf[pos] - 1",
            "    if n < 127:",
            "        pos += 1",
            "    else:",
            "        n, pos = read_compact_length(buf, pos)",
        ]

    def _struct_value(self, cls: type[Any], target: str, nullable: bool, tagged: bool) -> list[str]:
        call = "yield from " if self._is_sliced(cls) else ""
        lines = [f"    {target}, pos = {call}{self._struct(cls)}(buf, pos)"]
        if not nullable:
            return lines
        # Null is int8 -1 in the body of a message, but uvarint 0 in a tagged section.
        is_null = "present == 0" if tagged else "present > 127"
        return [
            "    present = buf[pos]",
            "    pos += 1",
            f"    if {is_null}:",
            f"        {target} = None",
            "    else:",
            *(f"    {line}" for line in lines),
        ]

    def _elements(self, kind: Array, target: str) -> list[str]:
        element = kind.element
        if isinstance(element, Primitive) and element.format and element is not UUID:
            return self._numbers(element, target)
        return [
            f"    check_count(buf, pos, n, {max(1, self._min_size(element))})",
            f"    {target} = items = []",
            "    for i in range(n):",
            *(f"    {line}" for line in self._value(element, "item", False)),
            "        items.append(item)",
            *self._step("i", step_of(element, self._version)),
        ]

    def _step(self, index: str, count: int) -> list[str]:
        """The end of a loop over `index`: others may be served after every `count` rounds."""
        if not self._sliced:
            return []
        if count == 1:
            return ["        yield"]
        return [f"        if {index} % {count} == {count - 1}:", "            yield"]

    def _is_sliced(self, cls: type[Any]) -> bool:
        """Whether its function has a loop. In flexible versions all have: anybody can send unknown tagged fields."""
        return self._sliced and (self._flexible or holds_arrays(cls, self._version))

    def _numbers(self, element: Primitive, target: str) -> list[str]:
        """A short array is one unpack, chosen by the count."""
        unpacks = f"unpacks_{element.name}"
        self._names[unpacks] = tuple(struct.Struct(f">{n}{element.format}").unpack_from for n in range(SHORT_ARRAY))
        take = [f"        {target}, pos = take_numbers(buf, pos, n, {element.format!r}, {element.size})"]
        if self._sliced:
            take = [
                f"        check_count(buf, pos, n, {element.size})",
                f"        {target} = items = []",
                f"        for i in range(0, n, {STEP_NUMBERS}):",
                f"            part = min(n - i, {STEP_NUMBERS})",
                f"            numbers, pos = take_numbers(buf, pos, part, {element.format!r}, {element.size})",
                "            items += numbers",
                "            yield",
            ]
        return [
            f"    if 0 <= n < {SHORT_ARRAY}:",
            f"        {target} = [*{unpacks}[n](buf, pos)]",
            f"        pos += n * {element.size}" if element.size > 1 else "        pos += n",
            "    else:",
            *take,
        ]

    def _min_size(self, kind: Kind) -> int:
        """The fewest bytes that a value can take in this version."""
        if isinstance(kind, Primitive) and kind.format:
            return kind.size
        if kind in (STRING, TEXT):
            return 1 if self._flexible else 2
        if not isinstance(kind, type):
            return 1 if self._flexible else 4
        schema: Schema = kind.__schema__
        size = 1 if self._flexible else 0
        for declared in schema.fields.values():
            if declared.exists_in(self._version) and declared.tag is None:
                optional = isinstance(declared.kind, type) and declared.may_be_null_in(self._version)
                size += 1 if optional else self._min_size(declared.kind)
        return size

    def _tagged_section(self, schema: Schema) -> list[str]:
        tagged = [
            (name, declared)
            for name, declared in schema.fields.items()
            if declared.tag is not None and declared.exists_in(self._version)
        ]
        skip = ["    if buf[pos] == 0:", "        pos += 1", "    else:"]
        if not tagged and not self._sliced:
            return [*skip, "        pos = skip_tagged_fields(buf, pos)"]
        lines = [
            *skip,
            "        count, pos = read_tagged_count(buf, pos)",
            "        for t in range(count):",
            "            tag, end, pos = read_tag(buf, pos)",
            *(f"    {line}" for line in self._step("t", STEP_ELEMENTS)),
        ]
        for index, (name, declared) in enumerate(tagged):
            body = self._value(declared.kind, f"m.{name}", declared.may_be_null_in(self._version), tagged=True)
            lines.append(f"            {'elif' if index else 'if'} tag == {declared.tag}:")
            lines += [f"            {line}" for line in body]
            lines.append("                check_tag_end(pos, end)")
        if not tagged:
            return [*lines, "            pos = end"]
        return [*lines, "            else:", "                pos = end"]


def step_of(element: Kind, version: int) -> int:
    """After how many elements of an array others may be served."""
    return 1 if isinstance(element, type) and holds_arrays(element, version) else STEP_ELEMENTS


def holds_arrays(cls: type[Any], version: int) -> bool:
    """Whether an array is anywhere in the struct: its size is then not bounded by that of a few strings."""
    schema: Schema = cls.__schema__
    kinds = [declared.kind for declared in schema.fields.values() if declared.exists_in(version)]
    return any(isinstance(kind, Array) or (isinstance(kind, type) and holds_arrays(kind, version)) for kind in kinds)


def _refuse_null() -> None:
    raise ProtocolError("null where a value is required")
