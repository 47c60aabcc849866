"""Random values for any declared message and version, drawn from its schema."""

import random
import string
from typing import Any

from barnabas.errors import ErrorCode
from barnabas.protocol.schema import (
    BOOL,
    BYTES,
    FLOAT64,
    RECORDS,
    STRING,
    TEXT,
    UUID,
    Array,
    Field,
    Primitive,
    default_of,
)

_BITS = {"int8": 8, "int16": 16, "int32": 32, "int64": 64}
_TEXT = string.ascii_letters + string.digits + "._- äß→漢🦆"


class MessageValues:
    """`fill` is how much there is in a message: 0 empty and null wherever allowed, 1 everything present."""

    def __init__(self, seed: str, fill: float = 0.8) -> None:
        self._random = random.Random(seed)
        self._fill = fill

    def message(self, cls: type[Any], version: int) -> Any:
        made = cls()
        for name, declared in cls.__schema__.fields.items():
            if declared.exists_in(version):
                setattr(made, name, self._field(name, declared, version))
        return made

    def _field(self, name: str, declared: Field, version: int) -> Any:
        if self._random.random() > self._fill:
            if declared.may_be_null_in(version):
                return None
            if declared.tag is not None:
                return default_of(declared)
        if isinstance(declared.kind, Array):
            counts = (0, 1, 2, 15, 16, 150) if isinstance(declared.kind.element, Primitive) else (0, 1, 2, 3)
            count = self._random.choice(counts) if self._random.random() < self._fill else 0
            return [self._value(name, declared.kind.element, version) for _ in range(count)]
        return self._value(name, declared.kind, version)

    def _value(self, name: str, kind: Primitive | type[Any], version: int) -> Any:
        if not isinstance(kind, Primitive):
            return self.message(kind, version)
        if kind is BOOL:
            return self._random.random() < 0.5
        if kind in (STRING, TEXT):
            length = self._random.choice((0, 1, 7, 30, 130)) if self._fill else 0
            return "".join(self._random.choice(_TEXT) for _ in range(length))
        if kind is BYTES or kind is RECORDS:
            return self._random.randbytes(self._random.choice((0, 1, 20, 200)) if self._fill else 0)
        if kind is UUID:
            return self._random.randbytes(16)
        if kind is FLOAT64:
            return self._random.uniform(-1e9, 1e9)
        return self._integer(name, kind)

    def _integer(self, name: str, kind: Primitive) -> int:
        if name.endswith(("error_code", "timestamp_ms", "_timestamp", "_ms")):
            # Foreign codecs turn these into enums, dates and durations, which hold less than the bits would.
            return int(self._random.choice(list(ErrorCode))) if name.endswith("error_code") else self._moment()
        if kind.name == "uint16":
            return self._random.randrange(1 << 16)
        bits = _BITS[kind.name]
        return self._random.choice((0, 1, -1, self._random.randrange(-(1 << bits - 1), 1 << bits - 1)))

    def _moment(self) -> int:
        return self._random.choice((0, 1, self._random.randrange(1 << 31)))
