"""Options whose value is Python: functions that turn values into bytes and back, partitioners, interceptors, assignors.

Names of Java's own classes are understood where there is the same thing here, so that a properties file can be shared.
"""

from collections.abc import Callable, Mapping, Sequence
from types import MappingProxyType
from typing import Any, cast

Serializer = Callable[[Any], bytes | None]
"""Called in the sender's thread with the key or value, None included."""
Deserializer = Callable[[bytes | None], Any]
Partitioner = Callable[..., int]
"""partitioner(topic, key_bytes, value_bytes, partition_count) -> partition."""

PARTITIONERS = ("round-robin",)
ASSIGNORS = ("range", "roundrobin", "sticky", "cooperative-sticky")

_KAFKA = "org.apache.kafka."
JAVA_SERIALIZERS: Mapping[str, Serializer | None] = MappingProxyType(
    {
        _KAFKA + "common.serialization.StringSerializer": lambda value: None if value is None else value.encode(),
        _KAFKA + "common.serialization.ByteArraySerializer": None,
        _KAFKA + "common.serialization.BytesSerializer": None,
    }
)
JAVA_DESERIALIZERS: Mapping[str, Deserializer | None] = MappingProxyType(
    {
        _KAFKA + "common.serialization.StringDeserializer": lambda data: None if data is None else str(data, "utf-8"),
        _KAFKA + "common.serialization.ByteArrayDeserializer": None,
        _KAFKA + "common.serialization.BytesDeserializer": None,
    }
)
_JAVA_PARTITIONERS = {_KAFKA + "clients.producer.RoundRobinPartitioner": "round-robin"}
_JAVA_ASSIGNORS = {
    _KAFKA + "clients.consumer.RangeAssignor": "range",
    _KAFKA + "clients.consumer.RoundRobinAssignor": "roundrobin",
    _KAFKA + "clients.consumer.StickyAssignor": "sticky",
    _KAFKA + "clients.consumer.CooperativeStickyAssignor": "cooperative-sticky",
}


def to_serializer(given: Any) -> Serializer | None:
    if isinstance(given, str) and given in JAVA_SERIALIZERS:
        return JAVA_SERIALIZERS[given]
    check_function(given, "that takes the value and returns bytes, for example str.encode")
    return cast(Serializer, given)


def to_deserializer(given: Any) -> Deserializer | None:
    if isinstance(given, str) and given in JAVA_DESERIALIZERS:
        return JAVA_DESERIALIZERS[given]
    check_function(given, "that takes bytes and returns the value, for example bytes.decode")
    return cast(Deserializer, given)


def to_partitioner(given: Any) -> Partitioner | str | None:
    """None, a function, or the name of one that comes with the client."""
    if given is None:
        return None
    if isinstance(given, str):
        name = _JAVA_PARTITIONERS.get(given, given)
        if name in PARTITIONERS:
            return name
        raise ValueError(f"must be a function, or one of: {', '.join(PARTITIONERS)}")
    check_function(given, "(topic, key, value, partition count) that returns the partition")
    return cast(Partitioner, given)


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
    made = given
    if isinstance(given, type):
        try:
            made = given()
        except Exception as error:
            raise ValueError(f"{given.__name__}() cannot be made: {error}") from error
    if not any(callable(getattr(made, method, None)) for method in methods):
        raise ValueError(f"{type(made).__name__} has no {' and no '.join(methods)}: nothing would ever be called")
    return made


def check_function(given: object, what: str) -> None:
    if not callable(given):
        raise ValueError(f"must be a function {what}")
