"""Writes the source of an encoder: `encode_X(message, out)` for a message and each struct in it, for one version.

Called by the compiler only. Neighbouring fixed-size fields become one `struct.Struct.pack`. The source is made of our
own declarations, never of anything that came from outside.

`sliced` writes the same encoder as generators that yield in every loop over an array, so that a large message can be
encoded in slices (server/slices.py). Structs without arrays stay plain functions.
"""

import struct
from collections.abc import Callable
from typing import Any

from barnabas.protocol import primitives
from barnabas.protocol.decoder_source import STEP_NUMBERS, holds_arrays, step_of
from barnabas.protocol.schema import (
    BYTES,
    RECORDS,
    STRING,
    TEXT,
    UUID,
    Array,
    Field,
    Kind,
    Primitive,
    Schema,
    default_of,
)

SHORT_ARRAY = 16


class EncoderSource:
    def __init__(self, version: int, flexible: bool, sliced: bool = False) -> None:
        self._version = version
        self._flexible = flexible
        self._sliced = sliced
        self._lines: list[str] = []
        self._names: dict[str, Any] = {
            name: getattr(primitives, name) for name in dir(primitives) if name.startswith("write_")
        }
        self._names["cut_text"] = primitives.cut_text
        self._compact = "compact_" if flexible else ""

    def compile(self, message: type[Any]) -> Callable[..., None]:
        name = self._struct(message)
        source = "\n".join(self._lines)
        exec(compile(source, f"<encode {message.__name__} v{self._version}>", "exec"), self._names)
        encoder: Callable[..., None] = self._names[name]
        return encoder

    def _struct(self, cls: type[Any]) -> str:
        function = f"encode_{cls.__name__}"
        if function in self._names:
            return function
        self._names[function] = None
        schema: Schema = cls.__schema__
        lines = [f"def {function}(m, out):"]
        fixed: list[tuple[str, str]] = []
        for name, declared in schema.fields.items():
            if not declared.exists_in(self._version):
                lines += self._absent(schema, name, declared)
            elif declared.tag is None:
                if isinstance(declared.kind, Primitive) and declared.kind.format:
                    fixed.append((declared.kind.format, f"m.{name}"))
                    continue
                lines += self._pack(fixed)
                lines += self._value(declared.kind, f"m.{name}", declared.may_be_null_in(self._version), "out")
        lines += self._pack(fixed)
        if self._flexible:
            lines += self._tagged_section(schema)
        if len(lines) == 1:
            lines.append("    pass")
        self._lines += lines
        return function

    def _absent(self, schema: Schema, name: str, declared: Field) -> list[str]:
        if declared.ignorable:
            return []
        default = self._constant(f"default_{schema.name}_{name}", default_of(declared))
        return [
            f"    if m.{name} != {default}:",
            f"        raise ValueError('{schema.name} v{self._version} cannot carry {name}')",
        ]

    def _constant(self, name: str, value: Any) -> str:
        self._names[name] = value
        return name

    def _pack(self, fixed: list[tuple[str, str]]) -> list[str]:
        """Flush the run of fixed-size fields gathered so far as one pack."""
        if not fixed:
            return []
        code = "".join(code for code, _ in fixed)
        pack = self._constant(f"pack_{code.replace('?', 'B_')}", struct.Struct(">" + code).pack)
        line = f"    out += {pack}({', '.join(value for _, value in fixed)})"
        fixed.clear()
        return [line]

    def _value(self, kind: Kind, value: str, nullable: bool, out: str) -> list[str]:
        if kind is TEXT:
            return self._value(STRING, f"cut_text({value})", nullable, out)
        if kind is STRING:
            return [f"    write_{self._compact}{'nullable_' if nullable else ''}string({out}, {value})"]
        if isinstance(kind, Primitive) and kind.format:
            return [f"    {out} += {self._pack([(kind.format, value)])[0].removeprefix('    out += ')}"]
        length, null = ("write_compact_length", "0") if self._flexible else ("write_length32", "-1")
        if kind is BYTES:
            lines = [f"    {length}({out}, len({value}))", f"    {out} += {value}"]
        elif kind is RECORDS:
            lines = [f"    write_records({out}, {value}, compact={self._flexible})"]
        elif isinstance(kind, Array):
            lines = self._array(kind, value, out, length)
        else:
            assert isinstance(kind, type)
            call = "yield from " if self._sliced and holds_arrays(kind, self._version) else ""
            lines = [f"    {call}{self._struct(kind)}({value}, {out})"]
            if not nullable:
                return lines
            # Null is int8 -1 in the body of a message, but uvarint 0 in a tagged section.
            null_marker = 255 if out == "out" else 0
            return self._or_null(value, f"{out}.append({null_marker})", [f"    {out}.append(1)", *lines])
        if not nullable:
            return lines
        absent = f"{out}.append(0)" if self._flexible else f"write_length32({out}, {null})"
        return self._or_null(value, absent, lines)

    def _or_null(self, value: str, write_null: str, lines: list[str]) -> list[str]:
        return [
            f"    if {value} is None:",
            f"        {write_null}",
            "    else:",
            *(f"    {line}" for line in lines),
        ]

    def _array(self, kind: Array, value: str, out: str, write_length: str) -> list[str]:
        element = kind.element
        if isinstance(element, Primitive) and element.format and element is not UUID:
            return self._numbers(element, value, out, write_length)
        inner = [f"    {line}" for line in self._value(element, "item", False, out)]
        if not self._sliced:
            return [f"    {write_length}({out}, len({value}))", f"    for item in {value}:", *inner]
        step = step_of(element, self._version)
        return [
            f"    {write_length}({out}, len({value}))",
            f"    for i, item in enumerate({value}):",
            *inner,
            f"        if i % {step} == {step - 1}:",
            "            yield",
        ]

    def _numbers(self, element: Primitive, value: str, out: str, write_length: str) -> list[str]:
        """A short array and its count are one pack, chosen by the count."""
        code, count = ("B", "n + 1") if self._flexible else ("i", "n")
        packs = tuple(struct.Struct(f">{code}{n}{element.format}").pack for n in range(SHORT_ARRAY))
        pack = self._constant(f"packs_{element.name}", packs)
        write = [f"        write_numbers({out}, {value}, {element.format!r})"]
        if self._sliced:
            write = [
                f"        for i in range(0, n, {STEP_NUMBERS}):",
                f"            write_numbers({out}, {value}[i:i + {STEP_NUMBERS}], {element.format!r})",
                "            yield",
            ]
        return [
            f"    n = len({value})",
            f"    if n < {SHORT_ARRAY}:",
            f"        {out} += {pack}[n]({count}, *{value})",
            "    else:",
            f"        {write_length}({out}, n)",
            *write,
        ]

    def _tagged_section(self, schema: Schema) -> list[str]:
        tagged = sorted(
            (declared.tag, name, declared)
            for name, declared in schema.fields.items()
            if declared.tag is not None and declared.exists_in(self._version)
        )
        if not tagged:
            return ["    out.append(0)"]
        lines = ["    tagged = []"]
        for tag, name, declared in tagged:
            default = self._constant(f"default_{schema.name}_{name}", default_of(declared))
            body = self._value(declared.kind, f"m.{name}", declared.may_be_null_in(self._version), "part")
            lines += [f"    if m.{name} != {default}:", "        part = bytearray()"]
            lines += [f"    {line}" for line in body]
            lines.append(f"        tagged.append(({tag}, part))")
        return [
            *lines,
            "    write_unsigned_varint(out, len(tagged))",
            "    for tag, part in tagged:",
            "        write_unsigned_varint(out, tag)",
            "        write_unsigned_varint(out, len(part))",
            "        out += part",
        ]
