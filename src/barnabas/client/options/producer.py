"""Options of the producer."""

from collections.abc import Iterator
from typing import Any

from barnabas.client.options.common import INT32_MAX, CommonOptions, address_faults, backoff_faults
from barnabas.client.options.option import HIGH, LOW, choice, flag, int32, int64, python, text
from barnabas.client.options.plugins import (
    Partitioner,
    Serializer,
    to_partitioner,
    to_producer_interceptors,
    to_serializer,
)
from barnabas.client.options.security import sasl_faults, tls_faults
from barnabas.config.checks import NOT_EMPTY, Check, at_least, between, either
from barnabas.config.table import settings_table


def to_acks(given: Any) -> int:
    found = {"all": -1, "-1": -1, "0": 0, "1": 1}.get(str(given).strip().lower())
    if found is None or isinstance(given, bool):
        raise ValueError("must be all, 0 or 1")
    return found


def derive(values: dict[str, Any]) -> None:
    """As in Kafka: idempotence is the default, and gives way to options that exclude it."""
    transactional_id = values.get("transactional_id")
    values.setdefault("client_id", f"producer-{transactional_id}" if transactional_id else "barnabas-producer")
    if "enable_idempotence" not in values:
        values["enable_idempotence"] = values.get("acks", -1) == -1 and values.get("retries", 1) != 0
    if "delivery_timeout_ms" not in values:
        least = values.get("linger_ms", 5) + values.get("request_timeout_ms", 30_000)
        values["delivery_timeout_ms"] = min(max(120_000, least), INT32_MAX)


def idempotence_faults(options: "ProducerOptions") -> Iterator[str]:
    if not options.enable_idempotence:
        if options.transactional_id is not None:
            yield "transactional_id: needs enable_idempotence, acks='all' and retries above 0"
        return
    if options.acks != -1:
        yield "acks: must be all with enable_idempotence"
    if options.retries == 0:
        yield "retries: must be above 0 with enable_idempotence"
    if options.max_in_flight_requests_per_connection > 5:
        yield (
            "max_in_flight_requests_per_connection: must be at most 5 with enable_idempotence, which is on by default:"
            " a broker knows a producer's last five batches only"
        )


def delivery_faults(options: "ProducerOptions") -> Iterator[str]:
    least = options.linger_ms + options.request_timeout_ms
    if options.delivery_timeout_ms < least:
        yield f"delivery_timeout_ms: must be at least linger_ms + request_timeout_ms ({least})"


def memory_faults(options: "ProducerOptions") -> Iterator[str]:
    """A batch reserves batch.size before its first record: with less, send() would wait forever."""
    if options.buffer_memory < options.batch_size:
        yield f"buffer_memory: must be at least batch_size ({options.batch_size}), or no batch fits into it"


@settings_table
class ProducerOptions(CommonOptions):
    """Options of `Producer`."""

    rules = (
        address_faults,
        backoff_faults,
        sasl_faults,
        tls_faults,
        idempotence_faults,
        delivery_faults,
        memory_faults,
    )
    derived = staticmethod(derive)

    given: frozenset[str] = frozenset()

    acks: int = python(
        -1,
        "Who must have a record before it counts as sent: all in-sync replicas (all), the leader (1), nobody (0).",
        to_acks,
    )
    batch_size: int = int32(
        16_384,
        "Bytes of a batch at most, and at which it is sent without waiting for linger.ms; a larger record goes alone."
        " Unless given, a batch goes on filling while the sender is busy, up to max.request.size.",
        at_least(0),
    )
    buffer_memory: int = int64(
        33_554_432, "Bytes of records that may wait to be sent; then send() waits.", at_least(0), importance=HIGH
    )
    compression_type: str = choice(
        "none", "How batches are compressed.", "none", "gzip", "snappy", "lz4", "zstd", importance=HIGH
    )
    compression_gzip_level: int = int32(-1, "Level of gzip; -1 is its default.", either(between(1, 9), -1))
    compression_lz4_level: int = int32(9, "Level of lz4.", between(1, 17))
    compression_zstd_level: int = int32(3, "Level of zstd.", between(-131_072, 22))
    connections_max_idle_ms: int = int64(540_000, "Idle time after which a connection is closed; negative is never.")
    delivery_timeout_ms: int = int32(
        120_000, "Longest time from send() until a record is delivered or failed, retries included.", at_least(0)
    )
    enable_idempotence: bool = flag(
        True, "Whether each record is written exactly once in spite of retries.", importance=LOW
    )
    interceptor_classes: tuple[Any, ...] = python(
        (),
        "Objects, or classes to make them of, that see records before they are sent, and their outcome.",
        to_producer_interceptors,
        importance=LOW,
    )
    key_serializer: Serializer | None = python(
        None,
        "Function that turns a key into bytes, or its Java class name; None takes bytes as they are.",
        to_serializer,
        importance=HIGH,
    )
    key_serializer_encoding: str | None = text(
        None, "Encoding of keys with StringSerializer and UUIDSerializer.", importance=LOW
    )
    linger_ms: int = int64(5, "How long a batch waits for more records.", at_least(0))
    max_block_ms: int = int64(60_000, "How long send() waits for metadata or memory.", at_least(0))
    max_in_flight_requests_per_connection: int = int32(
        5, "Requests on their way to one broker at the same time.", at_least(1), importance=LOW
    )
    max_request_size: int = int32(1_048_576, "Largest request in bytes, and so the largest record.", at_least(0))
    metadata_max_idle_ms: int = int64(
        300_000, "Time after which a topic that nothing is sent to is forgotten.", at_least(5_000), importance=LOW
    )
    partitioner_adaptive_partitioning_enable: bool = flag(
        True, "Whether records without a key avoid partitions whose broker is slow.", importance=LOW
    )
    partitioner_availability_timeout_ms: int = int64(
        0,
        "Time after which a broker that takes nothing counts as unavailable; 0 is never.",
        at_least(0),
        importance=LOW,
    )
    partitioner_class: Partitioner | str | None = python(
        None, "Function that picks the partition, or round-robin; None hashes the key as Java's client.", to_partitioner
    )
    partitioner_ignore_keys: bool = flag(False, "Whether records with a key are spread as if they had none.")
    retries: int = int32(
        INT32_MAX, "Retries at most, within delivery.timeout.ms.", between(0, INT32_MAX), importance=HIGH
    )
    serializer_encoding: str | None = text(
        None, "Encoding of keys and values with StringSerializer and UUIDSerializer.", importance=LOW
    )
    transaction_timeout_ms: int = int32(
        60_000, "Time after which the broker aborts a transaction by itself.", at_least(1), importance=LOW
    )
    transaction_two_phase_commit_enable: bool = flag(
        False,
        "Whether an outer coordinator decides on commits; that is not offered.",
        Check("False: commits by an outer coordinator are not offered", lambda value: not value),
        importance=LOW,
    )
    transactional_id: str | None = text(
        None, "Name that lives longer than this producer and makes transactions possible.", NOT_EMPTY, importance=LOW
    )
    value_serializer: Serializer | None = python(
        None,
        "Function that turns a value into bytes, or its Java class name; None takes bytes as they are.",
        to_serializer,
        importance=HIGH,
    )
    value_serializer_encoding: str | None = text(
        None, "Encoding of values with StringSerializer and UUIDSerializer.", importance=LOW
    )
