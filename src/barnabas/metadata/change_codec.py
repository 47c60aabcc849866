"""The controller's records as JSON, for the entries of the change log.

A record is `["Name", field, ...]`, the values within it are lists of their fields in order: fields are only ever added
at the end, with a default. So an older broker leaves out what it does not know, a newer one fills in what is missing.
The codecs are derived from the fields' types, once per class; what JSON writes by itself (tuples of numbers, a whole
PartitionImage) is left to it, since an election may change thousands of partitions.
"""

import base64
import json
from collections.abc import Callable, Mapping, Sequence
from enum import IntEnum
from functools import cache
from types import NoneType, UnionType
from typing import Any, NamedTuple, Union, get_args, get_origin, get_type_hints

from barnabas.machines.controller.records import Record
from barnabas.metadata.store import MetadataStoreError

_RECORDS: Mapping[str, Any] = {each.__name__: each for each in get_args(Record)}


class UnreadableChangeError(MetadataStoreError):
    """An entry of the change log is not one that this version writes."""


def encode_change(changes: Sequence[Record], controller_epoch: int) -> bytes:
    kinds: list[Any] = [type(record) for record in changes]
    content = [[kind.__name__, *_codec(kind).encode(record)] for kind, record in zip(kinds, changes)]
    value = {"version": 1, "controller_epoch": controller_epoch, "records": content}
    return json.dumps(value, separators=(",", ":")).encode()


def decode_change(data: bytes) -> tuple[Record, ...]:
    try:
        return tuple(_codec(_RECORDS[name]).decode(fields) for name, *fields in json.loads(data)["records"])
    except (ValueError, KeyError, TypeError, IndexError) as error:
        raise UnreadableChangeError(f"an entry of the change log cannot be read: {error!r}") from error


class _Codec(NamedTuple):
    encode: Callable[[Any], Any]
    decode: Callable[[Any], Any]


def _same(value: Any) -> Any:
    return value


_PLAIN = _Codec(_same, _same)
_BYTES = _Codec(lambda value: base64.b64encode(value).decode(), base64.b64decode)


@cache
def _codec(kind: Any) -> _Codec:
    origin, arguments = get_origin(kind), get_args(kind)
    if hasattr(kind, "_fields"):
        hints = get_type_hints(kind)
        return _of_fields(kind, [_codec(hints[name]) for name in kind._fields])
    if origin is tuple:
        return _of_items(_codec(arguments[0]))
    if origin in (Union, UnionType):
        return _optional(_codec(next(each for each in arguments if each is not NoneType)))
    if kind is bytes:
        return _BYTES
    if isinstance(origin, type) and issubclass(origin, Mapping):
        return _Codec(dict, _same)
    return _Codec(_same, kind) if isinstance(kind, type) and issubclass(kind, IntEnum) else _PLAIN


def _of_fields(kind: Any, fields: list[_Codec]) -> _Codec:
    encoders, decoders = [each.encode for each in fields], [each.decode for each in fields]

    def encode(value: Any) -> Any:
        return [encode_field(field) for encode_field, field in zip(encoders, value)]

    def decode(value: Any) -> Any:
        return kind(*[decode_field(field) for decode_field, field in zip(decoders, value)])

    return _Codec(_same if all(each is _same for each in encoders) else encode, decode)


def _of_items(item: _Codec) -> _Codec:
    def encode(value: Any) -> Any:
        return [item.encode(each) for each in value]

    def decode(value: Any) -> Any:
        return tuple([item.decode(each) for each in value])

    return _Codec(_same if item.encode is _same else encode, tuple if item.decode is _same else decode)


def _optional(inner: _Codec) -> _Codec:
    if inner == _PLAIN:
        return _PLAIN
    return _Codec(
        lambda value: None if value is None else inner.encode(value),
        lambda value: None if value is None else inner.decode(value),
    )
