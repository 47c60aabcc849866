"""Options whose value is Python: functions that turn values into bytes and back, partitioners, interceptors, assignors.

Names of Java's own classes are understood where there is the same thing here, so that a properties file can be shared.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

from barnabas import serializers

Serializer = Callable[[Any], bytes | None]
"""Called in the sender's thread with the key or value, None included."""
Deserializer = Callable[[bytes | None], Any]
Partitioner = Callable[..., int]
"""partitioner(topic, key_bytes, value_bytes, partition_count) -> partition."""

PARTITIONERS = ("round-robin",)
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

_KAFKA = "org.apache.kafka."
_SERIALIZATION = _KAFKA + "common.serialization."
_JAVA_CLASSES: Mapping[str, type[Any]] = MappingProxyType(
    {_SERIALIZATION + name: getattr(serializers, name) for name in serializers.__all__}
)
DEFAULT_PARTITIONER = _KAFKA + "clients.producer.internals.DefaultPartitioner"
UNIFORM_STICKY_PARTITIONER = _KAFKA + "clients.producer.UniformStickyPartitioner"
"""Both are gone since Kafka 4.0, and still in many a properties file."""
_JAVA_PARTITIONERS = {_KAFKA + "clients.producer.RoundRobinPartitioner": "round-robin"}
_JAVA_ASSIGNORS = {
    _KAFKA + "clients.consumer.RangeAssignor": "range",
    _KAFKA + "clients.consumer.RoundRobinAssignor": "roundrobin",
    _KAFKA + "clients.consumer.StickyAssignor": "sticky",
    _KAFKA + "clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def to_serializer(given: Any) -> Serializer | None:
    made = _made(given, "Serializer", "that takes the value and returns bytes, for example str.encode")
    return None if type(made) in (serializers.ByteArraySerializer, serializers.BytesSerializer) else made


def to_deserializer(given: Any) -> Deserializer | None:
    made = _made(given, "Deserializer", "that takes bytes and returns the value, for example bytes.decode")
    return None if type(made) in (serializers.ByteArrayDeserializer, serializers.BytesDeserializer) else made


def _made(given: Any, kind: str, what: str) -> Any:
    """A function; for a class whose objects are functions, which is what Java's name stands for too, one of them."""
    if isinstance(given, str):
        found = _JAVA_CLASSES.get(given.strip()) if given.strip().endswith(kind) else None
        if found is None:
            known = ", ".join(sorted(name for name in serializers.__all__ if name.endswith(kind)))
            raise ValueError(f"must be a function {what}, or one of {_SERIALIZATION}: {known}")
        return found()
    if isinstance(given, type) and any("__call__" in vars(each) for each in given.__mro__):
        return instance_of(given)
    check_function(given, what)
    return given


def instance_of(given: type[Any]) -> Any:
    try:
        return given()
    except Exception as error:
        raise ValueError(f"must be an object: {given.__name__}() cannot be made: {error}") from error


def to_partitioner(given: Any) -> Partitioner | str | None:
    """None, a function, or the name of one that comes with the client."""
    if given is None:
        return None
    if isinstance(given, str):
        name = _JAVA_PARTITIONERS.get(given.strip(), given.strip())
        if name == DEFAULT_PARTITIONER:
            return None
        if name in PARTITIONERS:
            return name
        if name == UNIFORM_STICKY_PARTITIONER:
            raise ValueError("must be left out: set partitioner.ignore.keys to true instead")
        raise ValueError(f"must be a function, or one of: {', '.join(PARTITIONERS)}")
    what = "(topic, key, value, partition count) that returns the partition"
    return cast(Partitioner, _made(given, "Partitioner", what))


def to_assignors(given: Any) -> tuple[Any, ...]:
    """Names, or objects with a `name` and an `assign`."""
    items = given.split(",") if isinstance(given, str) else given
    if not isinstance(items, Sequence):
        items = [items]
    found = [_to_assignor(item) for item in items]
    names = [item if isinstance(item, str) else item.name for item in found]
    if not found or len(set(names)) != len(names):
        raise ValueError("must be a list of at least one assignor, none twice")
    return tuple(found)


def _to_assignor(item: Any) -> Any:
    if isinstance(item, str):
        name = _JAVA_ASSIGNORS.get(item.strip(), item.strip())
        if name in ASSIGNORS:
            return name
    elif isinstance(getattr(item, "name", None), str) and callable(getattr(item, "assign", None)):
        return item
    raise ValueError(f"must be out of {', '.join(ASSIGNORS)}, or objects with a name and an assign method")


def to_producer_interceptors(given: Any) -> tuple[Any, ...]:
    return _to_interceptors(given, "on_send", "on_acknowledgement")


def to_consumer_interceptors(given: Any) -> tuple[Any, ...]:
    return _to_interceptors(given, "on_consume", "on_commit")


def _to_interceptors(given: Any, *methods: str) -> tuple[Any, ...]:
    """Objects with at least one of the methods; a class, which is what the option's name asks for, is made one."""
    if isinstance(given, str):
        if given.strip():
            raise ValueError("must be a list of Python objects: classes are not loaded by name")
        return ()
    if not isinstance(given, Sequence):
        raise ValueError("must be a list of objects")
    return tuple(_to_interceptor(each, methods) for each in given)


def _to_interceptor(given: Any, methods: tuple[str, ...]) -> Any:
    made = instance_of(given) if isinstance(given, type) else given
    if not any(callable(getattr(made, method, None)) for method in methods):
        raise ValueError(f"{type(made).__name__} has no {' and no '.join(methods)}: nothing would ever be called")
    return made


def check_function(given: object, what: str) -> None:
    if not callable(given):
        raise ValueError(f"must be a function {what}")
