"""How the console consumer prints a record: Kafka's formatters by class name, with their properties.

A formatter is a function from a record to bytes. DefaultMessageFormatter knows print.timestamp, .partition, .offset,
.delivery, .epoch, .headers, .key, .value; key.separator, line.separator, headers.separator, null.literal; key., value.
and headers.deserializer. LoggingMessageFormatter prints the same and logs the record too. NoOpMessageFormatter prints
nothing. `coordinator_formatters` has those for the coordinators' topics.
"""

import logging
import sys
from collections.abc import Callable, Mapping

from barnabas.cli.kafka.coordinator_formatters import FORMATTERS, coordinator_formatter
from barnabas.cli.kafka.deserializers import Deserializer, deserializer
from barnabas.cli.kafka.flags import WrongUse
from barnabas.records.codec import ConsumerRecord
from barnabas.records.header import TimestampType

Formatter = Callable[[ConsumerRecord], bytes]

_logger = logging.getLogger("org.apache.kafka.tools.consumer.LoggingMessageFormatter")
_TIMESTAMP_TYPES = {TimestampType.CREATE_TIME: b"CreateTime", TimestampType.LOG_APPEND_TIME: b"LogAppendTime"}


def formatter(class_name: str, properties: Mapping[str, str]) -> Formatter:
    name = class_name.rpartition(".")[2]
    if name == "DefaultMessageFormatter":
        return default_formatter(properties)
    if name == "LoggingMessageFormatter":
        return logging_formatter(properties)
    if name == "NoOpMessageFormatter":
        return lambda record: b""
    if name in FORMATTERS:
        return coordinator_formatter(name)
    known = ", ".join(["DefaultMessageFormatter", "LoggingMessageFormatter", *FORMATTERS])
    raise WrongUse(f"There is no formatter {class_name} here; there are {known} and NoOpMessageFormatter")


def default_formatter(properties: Mapping[str, str]) -> Formatter:
    column = properties.get("key.separator", "\t").encode()
    end = properties.get("line.separator", "\n").encode()
    fields = _fields(properties)

    def write(record: ConsumerRecord) -> bytes:
        return column.join([field(record) for field in fields]) + end

    return write if fields else lambda record: b""


def logging_formatter(properties: Mapping[str, str]) -> Formatter:
    write = default_formatter(properties)

    def write_and_log(record: ConsumerRecord) -> bytes:
        key = "null " if record.key is None else f"{record.key.decode(errors='replace')}, "
        value = "null" if record.value is None else record.value.decode(errors="replace")
        _logger.info("%s, key:%svalue:%s", _timestamp(record).decode(), key, value)
        return write(record)

    return write_and_log


def _fields(properties: Mapping[str, str]) -> list[Formatter]:
    """In Kafka's order, those that are wanted."""
    null = properties.get("null.literal", "null").encode()
    key, value = (_content(properties, f"{name}.deserializer", null) for name in ("key", "value"))
    known: list[tuple[str, Formatter]] = [
        ("timestamp", _timestamp),
        ("partition", lambda record: b"Partition:%d" % record.partition),
        ("offset", lambda record: b"Offset:%d" % record.offset),
        ("delivery", lambda record: b"Delivery:NOT_PRESENT"),
        ("epoch", lambda record: b"Epoch:NOT_PRESENT"),
        ("headers", _headers(properties, null)),
        ("key", lambda record: key(record.key)),
        ("value", lambda record: value(record.value)),
    ]
    wanted = {name: properties.get(f"print.{name}", "false").strip().lower() == "true" for name, _ in known}
    if "print.value" not in properties:
        wanted["value"] = True
    return [write for name, write in known if wanted[name]]


def _timestamp(record: ConsumerRecord) -> bytes:
    if record.timestamp < 0:
        return b"NO_TIMESTAMP"
    return b"%s:%d" % (_TIMESTAMP_TYPES[record.timestamp_type], record.timestamp)


def _headers(properties: Mapping[str, str], null: bytes) -> Formatter:
    separator = properties.get("headers.separator", ",").encode()
    content = _content(properties, "headers.deserializer", null)

    def write(record: ConsumerRecord) -> bytes:
        headers = [name.encode() + b":" + content(value) for name, value in record.headers]
        return separator.join(headers) or b"NO_HEADERS"

    return write


def _content(properties: Mapping[str, str], name: str, null: bytes) -> Callable[[bytes | None], bytes]:
    """Null is its literal first and deserialized afterwards, as in Kafka."""
    read = _deserializer(properties, name)
    if read is None:
        return lambda content: null if content is None else content
    return lambda content: read(null if content is None else content).encode()


def _deserializer(properties: Mapping[str, str], name: str) -> Deserializer | None:
    class_name = properties.get(name)
    if not class_name:
        return None
    prefix = f"{name}."
    own = {key.removeprefix(prefix): value for key, value in properties.items() if key.startswith(prefix)}
    found = deserializer(class_name, own)
    if found is None:  # Kafka says so and prints the bytes
        print(f"Unable to instantiate a deserializer from {class_name}", file=sys.stderr)
    return found
