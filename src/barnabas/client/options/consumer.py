"""Options of the consumer."""

import re
from collections.abc import Iterator
from typing import Any

from barnabas.client.options.common import CommonOptions, address_faults, backoff_faults
from barnabas.client.options.option import HIGH, LOW, choice, flag, int32, int64, python, text
from barnabas.client.options.plugins import Deserializer, to_assignors, to_consumer_interceptors, to_deserializer
from barnabas.client.options.refused import CONSUMER_REFUSED
from barnabas.client.options.security import sasl_faults, tls_faults
from barnabas.config.checks import NOT_EMPTY, at_least
from barnabas.config.table import settings_table

DURATION = re.compile(
    r"by_duration:P(?=.)(?:([0-9]+)D)?(?:T(?=.)(?:([0-9]+)H)?(?:([0-9]+)M)?(?:([0-9]+(?:\.[0-9]+)?)S)?)?", re.IGNORECASE
)


def to_offset_reset(given: Any) -> str:
    found = given.strip().lower() if isinstance(given, str) else ""
    if found in ("earliest", "latest", "none"):
        return found
    if DURATION.fullmatch(found):
        return "by_duration:" + found[12:].upper()
    raise ValueError("must be earliest, latest, none, or by_duration:PnDTnHnMnS")


def reset_duration_ms(auto_offset_reset: str) -> int | None:
    """How far back `by_duration:P1DT2H` goes in milliseconds; None for the other strategies."""
    match = DURATION.fullmatch(auto_offset_reset)
    if match is None:
        return None
    days, hours, minutes, seconds = (float(part or 0) for part in match.groups())
    return int(1000 * (seconds + 60 * (minutes + 60 * (hours + 24 * days))))


def derive(values: dict[str, Any]) -> None:
    """Without a group nothing can be committed, so by default nothing is."""
    group_id = values.get("group_id")
    instance = values.get("group_instance_id")
    values.setdefault("client_id", f"consumer-{group_id}-{instance}" if instance else "barnabas-consumer")
    if group_id is None:
        values.setdefault("enable_auto_commit", False)


def group_faults(options: "ConsumerOptions") -> Iterator[str]:
    if options.group_id is None:
        if options.enable_auto_commit:
            yield "enable_auto_commit: needs a group_id to commit to"
        if options.group_instance_id is not None:
            yield "group_instance_id: needs a group_id"
    elif not options.group_id.strip():
        yield "group_id: must not be empty"
    if options.group_protocol == "classic":
        if options.group_remote_assignor is not None:
            yield "group_remote_assignor: needs group_protocol='consumer'"
        if options.heartbeat_interval_ms >= options.session_timeout_ms:
            yield "heartbeat_interval_ms: must be less than session_timeout_ms, a third of it is usual"
        return
    for name in ("heartbeat_interval_ms", "session_timeout_ms", "partition_assignment_strategy"):
        if name in options.given:
            yield f"{name}: with group_protocol='consumer' the broker's group settings decide, leave it out"


def fetch_faults(options: "ConsumerOptions") -> Iterator[str]:
    if options.fetch_max_wait_ms >= options.request_timeout_ms:
        yield "fetch_max_wait_ms: must be less than request_timeout_ms, or every quiet fetch would time out"


@settings_table
class ConsumerOptions(CommonOptions):
    """Options of `Consumer`."""

    rules = (address_faults, backoff_faults, sasl_faults, tls_faults, group_faults, fetch_faults)
    refused = CONSUMER_REFUSED
    derived = staticmethod(derive)

    given: frozenset[str] = frozenset()

    allow_auto_create_topics: bool = flag(
        False,
        "Whether subscribing may create a topic that is missing, if the broker allows it; Java's default is true.",
    )
    auto_commit_interval_ms: int = int32(5_000, "Pause between two automatic commits.", at_least(0), importance=LOW)
    auto_offset_reset: str = python(
        "latest", "Where to begin when nothing was committed: earliest, latest, none, by_duration:P1D.", to_offset_reset
    )
    check_crcs: bool = flag(True, "Whether the checksum of each batch is checked.", importance=LOW)
    client_rack: str = text("", "Rack of this client: records are fetched from a replica there.", importance=LOW)
    connections_max_idle_ms: int = int64(540_000, "Idle time after which a connection is closed; negative is never.")
    default_api_timeout_ms: int = int32(60_000, "Time-out of calls that are given none.", at_least(0))
    deserializer_encoding: str | None = text(
        None, "Encoding of keys and values with StringDeserializer and UUIDDeserializer.", importance=LOW
    )
    enable_auto_commit: bool = flag(True, "Whether positions are committed by themselves.")
    exclude_internal_topics: bool = flag(True, "Whether a pattern leaves out internal topics.")
    fetch_max_bytes: int = int32(52_428_800, "Bytes that one response may have.", at_least(0))
    fetch_max_wait_ms: int = int32(500, "How long the broker waits for fetch.min.bytes.", at_least(0), importance=LOW)
    fetch_min_bytes: int = int32(1, "Bytes that a response should have at least.", at_least(0), importance=HIGH)
    group_id: str | None = text(None, "Group that shares the partitions and the committed positions.", importance=HIGH)
    group_instance_id: str | None = text(
        None, "Name that keeps this member's partitions over a restart (static membership).", NOT_EMPTY
    )
    group_protocol: str = choice(
        "classic",
        "How the group is coordinated: classic, or consumer (KIP-848).",
        "classic",
        "consumer",
        importance=HIGH,
    )
    group_remote_assignor: str | None = text(None, "Assignor of the broker, with group.protocol consumer.")
    heartbeat_interval_ms: int = int32(3_000, "Pause between two heartbeats.", at_least(1), importance=HIGH)
    interceptor_classes: tuple[Any, ...] = python(
        (),
        "Objects, or classes to make them of, that see records after they are fetched, and commits.",
        to_consumer_interceptors,
        importance=LOW,
    )
    isolation_level: str = choice(
        "read_uncommitted",
        "Whether records of open and aborted transactions are seen.",
        "read_committed",
        "read_uncommitted",
    )
    key_deserializer: Deserializer | None = python(
        None,
        "Function that turns bytes into the key, or its Java class name; None leaves bytes.",
        to_deserializer,
        importance=HIGH,
    )
    key_deserializer_encoding: str | None = text(
        None, "Encoding of keys with StringDeserializer and UUIDDeserializer.", importance=LOW
    )
    max_partition_fetch_bytes: int = int32(
        1_048_576,
        "Bytes of one partition in one response. Unless given, up to 8 MiB are requested if few partitions are read.",
        at_least(0),
        importance=HIGH,
    )
    max_poll_interval_ms: int = int32(
        300_000, "Time between two polls after which the member leaves the group.", at_least(1)
    )
    max_poll_records: int = int32(500, "Records that one poll returns at most.", at_least(1))
    partition_assignment_strategy: tuple[Any, ...] = python(
        ("range", "cooperative-sticky"), "Assignors this member knows, the preferred one first.", to_assignors
    )
    session_timeout_ms: int = int32(
        45_000,
        "Time without a heartbeat after which the broker counts the member as dead.",
        at_least(1),
        importance=HIGH,
    )
    value_deserializer: Deserializer | None = python(
        None,
        "Function that turns bytes into the value, or its Java class name; None leaves bytes.",
        to_deserializer,
        importance=HIGH,
    )
    value_deserializer_encoding: str | None = text(
        None, "Encoding of values with StringDeserializer and UUIDDeserializer.", importance=LOW
    )
