"""The same message in kio, a Kafka codec that shares nothing with ours: values across, bytes back."""

import datetime
import io
import uuid
from dataclasses import MISSING, fields
from importlib import import_module
from typing import Any, get_args

from kio.schema.errors import ErrorCode as KioErrorCode
from kio.serial import entity_writer

from barnabas.protocol.schema import Array, default_of

_EPOCH = datetime.datetime(1970, 1, 1, tzinfo=datetime.UTC)


def kio_type(module: str, version: int, part: str, name: str) -> type[Any]:
    cls: type[Any] = getattr(import_module(f"kio.schema.{module}.v{version}.{part}"), name)
    return cls


def kio_bytes(entity: Any) -> bytes:
    with io.BytesIO() as out:
        entity_writer(type(entity))(out, entity)
        return out.getvalue()


def assert_same_declaration(cls: type[Any], version: int, entity_type: type[Any]) -> None:
    """Values drawn from our own schema cannot show a wrong default or a null wrongly forbidden: compare them."""
    ours = {name: spec for name, spec in cls.__schema__.fields.items() if spec.exists_in(version)}
    for (name, spec), field in zip(ours.items(), fields(entity_type), strict=True):
        kafka_type = field.metadata.get("kafka_type")
        if kafka_type not in ("uuid", "datetime_i64"):  # kio shows zero and -1 as None
            assert spec.may_be_null_in(version) == (type(None) in get_args(field.type)), f"{cls.__name__}.{name} null"
        if field.default is not MISSING:
            assert _value(default_of(spec), version, kafka_type, field.type) == field.default, f"{cls.__name__}.{name}"
        nested = spec.kind.element if isinstance(spec.kind, Array) else spec.kind
        if isinstance(nested, type):
            assert_same_declaration(nested, version, _dataclass_in(field.type))


def to_kio(message: Any, version: int, entity_type: type[Any]) -> Any:
    """Fields by their order, which both take from Kafka; their names are compared on the way."""
    ours = {name: spec for name, spec in message.__schema__.fields.items() if spec.exists_in(version)}
    theirs = fields(entity_type)
    assert len(ours) == len(theirs), (list(ours), [field.name for field in theirs])
    values = {}
    for name, field in zip(ours, theirs, strict=True):
        assert field.name in (name, name.removesuffix("_ms"), name + "_"), (name, field.name)
        values[field.name] = _value(getattr(message, name), version, field.metadata.get("kafka_type"), field.type)
    return entity_type(**values)


def _value(value: Any, version: int, kafka_type: str | None, annotation: Any) -> Any:
    if value is None:
        return None
    if isinstance(value, list):
        return tuple(_value(item, version, kafka_type, annotation) for item in value)
    if hasattr(value, "__schema__"):
        return to_kio(value, version, _dataclass_in(annotation))
    if kafka_type == "uuid":
        return None if value == bytes(16) else uuid.UUID(bytes=value)
    if kafka_type == "error_code":
        return KioErrorCode(value)
    if kafka_type in ("timedelta_i32", "timedelta_i64"):
        return datetime.timedelta(milliseconds=value)
    if kafka_type == "datetime_i64":
        return None if value == -1 else _EPOCH + datetime.timedelta(milliseconds=value)
    return value


def _dataclass_in(annotation: Any) -> type[Any]:
    if hasattr(annotation, "__dataclass_fields__"):
        found: type[Any] = annotation
        return found
    return next(cls for cls in map(_dataclass_in, get_args(annotation)) if cls is not None)
