"""Options of the source and the sink: the official connector's, checked all at once, with the nearest name for a typo.

Names are case-insensitive, as everywhere in Spark. Options that start with `kafka.` go to the clients. An option
of the official connector that has no meaning here is rejected with a line that says what to do; none is ignored.
"""

import difflib
import uuid
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from barnabas.client.errors import ConfigError
from barnabas.spark.key_stores import key_store_faults
from barnabas.spark.offsets import OffsetSpec, parse_assignment, parse_offsets, parse_timestamp, parse_timestamps

CLIENT_PREFIX: Final = "kafka."
BOOTSTRAP: Final = "kafka.bootstrap.servers"

Parser = Callable[[str], Any]


@dataclass(frozen=True, slots=True)
class SourceOptions:
    client: dict[str, str]
    """Kafka's dotted names, without the prefix."""
    subscribe: tuple[str, ...] = ()
    subscribe_pattern: str | None = None
    assign: dict[str, tuple[int, ...]] = field(default_factory=dict)
    starting: OffsetSpec | None = None
    ending: OffsetSpec | None = None
    max_offsets_per_trigger: int | None = None
    min_offsets_per_trigger: int | None = None
    max_trigger_delay_ms: int = 900_000
    min_partitions: int | None = None
    max_records_per_partition: int | None = None
    max_tasks: int | None = None
    fail_on_data_loss: bool = True
    include_headers: bool = False
    group_id: str | None = None
    group_id_prefix: str | None = None
    poll_timeout_ms: int = 120_000
    offset_retries: int = 3
    offset_retry_interval_ms: int = 1000


@dataclass(frozen=True, slots=True)
class SinkOptions:
    client: dict[str, str]
    topic: str | None = None
    include_headers: bool = True
    """Whether a column `headers` is written."""
    exactly_once: bool = True
    transactional_id_prefix: str = "barnabas-sink"


def read_source_options(given: Mapping[str, str]) -> SourceOptions:
    """Raises ConfigError with all faults."""
    values, client, faults = _read(given, _SOURCE, _REFUSED)
    ways = [name for name in ("subscribe", "subscribePattern", "assign") if name in values]
    if len(ways) != 1:
        one_of = "subscribe, subscribePattern or assign"
        faults.append(f"{' and '.join(ways)} exclude each other: use one" if ways else f"one of {one_of} is required")
    starts = [name for name in _STARTS if name in values]
    ends = [name for name in _ENDS if name in values]
    # The official connector's order of precedence: one time for all, times by partition, offsets.
    strategy = values.get("startingOffsetsByTimestampStrategy", "error")
    for name in [*_CLIENT_OF_THE_SOURCE]:
        if name in client:
            faults.append(f"{CLIENT_PREFIX}{name}: {_CLIENT_OF_THE_SOURCE[name]}")
    _check_together(values, faults)
    if faults:
        raise ConfigError(faults)
    start = values[starts[0]] if starts else None
    plain = {_FIELDS[name]: value for name, value in values.items() if name in _FIELDS}
    return SourceOptions(
        client=client,
        starting=None if start is None else start.with_strategy(strategy),
        ending=values[ends[0]] if ends else None,
        **plain,
    )


def with_group(options: SourceOptions) -> SourceOptions:
    """The consumers of a query use kafka.group.id as their group id, else a generated one after groupIdPrefix.

    As with the official connector it is only for ACLs and quotas: nothing is committed to it.
    """
    if options.group_id_prefix is None or "group.id" in options.client:
        return options
    group_id = f"{options.group_id_prefix}-{uuid.uuid4()}"
    return replace(options, client={**options.client, "group.id": group_id})


def read_sink_options(given: Mapping[str, str]) -> SinkOptions:
    # Spark passes its own options of a streaming write to the sink.
    given = {name: value for name, value in given.items() if name.lower() not in _OF_SPARK}
    values, client, faults = _read(given, _SINK, _REFUSED)
    for name, instead in _CLIENT_OF_THE_SINK.items():
        if name in client:
            faults.append(f"{CLIENT_PREFIX}{name}: {instead}")
    if faults:
        raise ConfigError(faults)
    return SinkOptions(client=client, **{_SINK_FIELDS[name]: value for name, value in values.items()})


def _check_together(values: dict[str, Any], faults: list[str]) -> None:
    least, most = values.get("minOffsetsPerTrigger"), values.get("maxOffsetsPerTrigger")
    if least is not None and most is not None and least > most:
        faults.append(f"minOffsetsPerTrigger ({least}) is greater than maxOffsetsPerTrigger ({most})")


def _read(
    given: Mapping[str, str], table: Mapping[str, Parser], refused: Mapping[str, str]
) -> tuple[dict[str, Any], dict[str, str], list[str]]:
    names = {name.lower(): name for name in (*table, *refused)}
    values: dict[str, Any] = {}
    client: dict[str, str] = {}
    faults: list[str] = []
    for spelled, text in given.items():
        name = names.get(spelled.lower())
        if name is not None and name in refused:
            faults.append(f"{name}: {refused[name]}")
        elif name is not None:
            try:
                values[name] = table[name](text)
            except ValueError as fault:
                faults.append(f"{name}: {text!r} is not allowed, {fault}")
        elif spelled.lower().startswith(CLIENT_PREFIX):
            client[spelled[len(CLIENT_PREFIX) :].lower()] = text
        else:
            near = difflib.get_close_matches(spelled.lower(), names, n=1)
            hint = f", did you mean {names[near[0]]}?" if near else ""
            faults.append(f"{spelled}: unknown option{hint}")
    faults += key_store_faults(client)
    if "bootstrap.servers" not in client:
        faults.append(f"{BOOTSTRAP}: is required, as host:port,...")
    return values, client, faults


def _boolean(text: str) -> bool:
    if text.lower() not in ("true", "false"):
        raise ValueError("it must be true or false")
    return text.lower() == "true"


def _positive(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        number = 0
    if number < 1:
        raise ValueError("it must be a positive integer")
    return number


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",") if name.strip())
    if not names:
        raise ValueError("it must be topic names, separated by commas")
    return names


def _pattern(text: str) -> str:
    import re

    try:
        re.compile(text)
    except re.error as error:
        raise ValueError(f"it is not a regular expression: {error}") from None
    return text


def _delay(text: str) -> int:
    """Milliseconds of a duration such as 15m, 10s, 100ms."""
    import re

    found = re.fullmatch(r"\s*(\d+)\s*(ms|s|m|min|h|d)?\s*", text.lower())
    if found is None:
        raise ValueError("it must be a duration such as 100ms, 10s or 15m")
    units = {"ms": 1, None: 1, "s": 1000, "m": 60_000, "min": 60_000, "h": 3_600_000, "d": 86_400_000}
    return int(found[1]) * units[found[2]]


def _strategy(text: str) -> str:
    if text.lower() not in ("error", "latest"):
        raise ValueError("it must be error or latest")
    return text.lower()


def _delivery(text: str) -> bool:
    if text.lower() not in ("exactly-once", "at-least-once"):
        raise ValueError("it must be exactly-once or at-least-once")
    return text.lower() == "exactly-once"


_SOURCE: Final[dict[str, Parser]] = {
    "subscribe": _names,
    "subscribePattern": _pattern,
    "assign": parse_assignment,
    "startingOffsets": lambda text: parse_offsets(text, may_be=("earliest", "latest")),
    "startingTimestamp": parse_timestamp,
    "startingOffsetsByTimestamp": parse_timestamps,
    "startingOffsetsByTimestampStrategy": _strategy,
    "endingOffsets": lambda text: parse_offsets(text, may_be=("latest",)),
    "endingTimestamp": parse_timestamp,
    "endingOffsetsByTimestamp": parse_timestamps,
    "maxOffsetsPerTrigger": _positive,
    "minOffsetsPerTrigger": _positive,
    "maxTriggerDelay": _delay,
    "minPartitions": _positive,
    "maxRecordsPerPartition": _positive,
    "maxTasks": _positive,
    "failOnDataLoss": _boolean,
    "includeHeaders": _boolean,
    "groupId": str,
    "groupIdPrefix": str,
    "kafkaConsumer.pollTimeoutMs": _positive,
    "fetchOffset.numRetries": _positive,
    "fetchOffset.retryIntervalMs": _positive,
}
_STARTS: Final = ("startingTimestamp", "startingOffsetsByTimestamp", "startingOffsets")
_ENDS: Final = ("endingTimestamp", "endingOffsetsByTimestamp", "endingOffsets")
_FIELDS: Final = {
    "subscribe": "subscribe",
    "subscribePattern": "subscribe_pattern",
    "assign": "assign",
    "maxOffsetsPerTrigger": "max_offsets_per_trigger",
    "minOffsetsPerTrigger": "min_offsets_per_trigger",
    "maxTriggerDelay": "max_trigger_delay_ms",
    "minPartitions": "min_partitions",
    "maxRecordsPerPartition": "max_records_per_partition",
    "maxTasks": "max_tasks",
    "failOnDataLoss": "fail_on_data_loss",
    "includeHeaders": "include_headers",
    "groupId": "group_id",
    "groupIdPrefix": "group_id_prefix",
    "kafkaConsumer.pollTimeoutMs": "poll_timeout_ms",
    "fetchOffset.numRetries": "offset_retries",
    "fetchOffset.retryIntervalMs": "offset_retry_interval_ms",
}
_SINK: Final[dict[str, Parser]] = {
    "topic": str,
    "includeHeaders": _boolean,
    "delivery": _delivery,
    "transactionalIdPrefix": str,
}
_OF_SPARK: Final = ("checkpointlocation", "queryname", "outputmode")
_SINK_FIELDS: Final = {
    "topic": "topic",
    "includeHeaders": "include_headers",
    "delivery": "exactly_once",
    "transactionalIdPrefix": "transactional_id_prefix",
}
_REFUSED: Final = {
    "path": "this format reads and writes topics, not files: omit the path (streaming: start(), not start(path))",
}
_CLIENT_OF_THE_SOURCE: Final = {
    "auto.offset.reset": "use startingOffsets",
    "enable.auto.commit": "Spark's checkpoint keeps the offsets; to see the lag use groupId",
    "key.deserializer": "keys are binary: cast them",
    "value.deserializer": "values are binary: cast them",
    "interceptor.classes": "not supported",
}
_CLIENT_OF_THE_SINK: Final = {
    "key.serializer": "keys are binary or string columns",
    "value.serializer": "values are binary or string columns",
    "transactional.id": "use transactionalIdPrefix",
}
