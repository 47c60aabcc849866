"""`kafka-verifiable-consumer.sh`: reads a topic as a member of a group, and prints each event as a line of JSON.

Used by system tests. SIGTERM and Ctrl-C: leaves the group, then shutdown_complete.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.kafka.flags import BOOTSTRAP_SERVER, COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, refuse

if TYPE_CHECKING:
    from barnabas.cli.kafka.json_events import JsonEvents
    from barnabas.client.consumer import Consumer, RebalanceListener
    from barnabas.records.codec import ConsumerRecord
    from barnabas.types import TopicPartition

POLL_S = 0.2
TOOL = Tool(
    "kafka-verifiable-consumer.sh",
    "This tool consumes messages from a specific topic and emits consumer events (e.g. group rebalances, received"
    " messages, and offsets committed) as JSON objects to STDOUT.",
    (
        BOOTSTRAP_SERVER,
        Flag("topic", "The topic to read (required).", "TOPIC"),
        Flag("group-id", "The group to read with (required).", "GROUP"),
        Flag("group-instance-id", "Name of a static member.", "ID"),
        Flag("group-protocol", "classic or consumer.", "PROTOCOL", default="classic"),
        Flag("group-remote-assignor", "The broker's assignor, with --group-protocol consumer.", "ASSIGNOR"),
        Flag("max-messages", "How many; -1 is until it is stopped.", "N", int, default=-1),
        Flag("session-timeout", "Session timeout of a classic member.", "MS", int, default=30000),
        Flag("verbose", "Print each record too."),
        Flag("enable-autocommit", "Commit automatically instead of after each poll."),
        Flag("reset-policy", "earliest, latest or none.", "POLICY", default="earliest"),
        Flag(
            "assignment-strategy",
            "Assignor of a classic member.",
            "CLASS",
            default="org.apache.kafka.clients.consumer.RangeAssignor",
        ),
        COMMAND_CONFIG,
        COMMAND_PROPERTY,
    ),
)


def check(options: Options) -> None:
    for name in ("bootstrap-server", "topic", "group-id"):
        if not options.has(name):
            refuse(f"argument --{name} is required")


def consume(options: Options) -> int:
    from barnabas.cli.kafka.connection import kafka_exception
    from barnabas.cli.kafka.json_events import JsonEvents
    from barnabas.cli.known_options import known_options
    from barnabas.cli.outages import kafka_warning, report_outages
    from barnabas.client.consumer import Consumer
    from barnabas.client.options import ConsumerOptions
    from barnabas.errors import KafkaError
    from barnabas.stop_signals import StopRequest

    events = JsonEvents()
    with report_outages(kafka_warning), StopRequest() as stop:
        try:
            consumer = Consumer.from_config(known_options(ConsumerOptions, _config(options)))
        except KafkaError as error:
            refuse(kafka_exception(error))
        reading = _Reading(options, consumer, events)
        events.emit("startup_complete")
        try:
            consumer.subscribe([options.value("topic")], _listener(events))
            while not stop.requested and not reading.finished:
                records = consumer.poll(POLL_S)
                if records:
                    reading.take(records)
        except KafkaError as error:
            print(f"Error during processing, terminating consumer process: {kafka_exception(error)}", file=sys.stderr)
        finally:
            consumer.close()
            events.emit("shutdown_complete")
        return stop.status


class _Reading:
    """Reports the records, up to --max-messages, and commits just those."""

    def __init__(self, options: Options, consumer: "Consumer", events: "JsonEvents") -> None:
        self._limit: int = options.value("max-messages")
        self._verbose = options.has("verbose")
        self._commits = not options.has("enable-autocommit")
        self._consumer = consumer
        self._events = events
        self._consumed = 0

    @property
    def finished(self) -> bool:
        return 0 <= self._limit <= self._consumed

    def take(self, records: "list[ConsumerRecord]") -> None:
        offsets: dict[tuple[str, int], int] = {}
        summaries: list[dict[str, Any]] = []
        for partition, of_partition in _by_partition(records).items():
            if self._limit >= 0:
                of_partition = of_partition[: self._limit - self._consumed]
            first, last = of_partition[0].offset, of_partition[-1].offset
            offsets[partition] = last + 1
            named = {"topic": partition[0], "partition": partition[1]}
            summaries.append({**named, "count": len(of_partition), "minOffset": first, "maxOffset": last})
            if self._verbose:
                self._emit_records(of_partition)
            self._consumed += len(of_partition)
            if self.finished:
                break
        self._events.emit("records_consumed", count=len(records), partitions=summaries)
        if self._commits:
            self._commit(offsets)

    def _emit_records(self, records: "list[ConsumerRecord]") -> None:
        for record in records:
            self._events.emit(
                "record_data",
                key=_text(record.key),
                value=_text(record.value),
                topic=record.topic,
                partition=record.partition,
                offset=record.offset,
            )

    def _commit(self, offsets: Mapping[tuple[str, int], int]) -> None:
        from barnabas.cli.kafka.connection import kafka_text
        from barnabas.client.errors import FencedError
        from barnabas.errors import KafkaError

        committed = [
            {"topic": topic, "partition": number, "offset": offset} for (topic, number), offset in offsets.items()
        ]
        try:
            self._consumer.commit(offsets)
        except FencedError:
            raise
        except KafkaError as error:
            self._events.emit("offsets_committed", offsets=committed, error=kafka_text(error), success=False)
        else:
            self._events.emit("offsets_committed", offsets=committed, success=True)


def _listener(events: "JsonEvents") -> "RebalanceListener":
    from barnabas.client.consumer import RebalanceListener

    class Listener(RebalanceListener):
        def on_revoked(self, partitions: "Sequence[TopicPartition]") -> None:
            events.emit("partitions_revoked", partitions=[each._asdict() for each in partitions])

        def on_assigned(self, partitions: "Sequence[TopicPartition]") -> None:
            events.emit("partitions_assigned", partitions=[each._asdict() for each in partitions])

    return Listener()


def _by_partition(records: "list[ConsumerRecord]") -> "dict[tuple[str, int], list[ConsumerRecord]]":
    found: dict[tuple[str, int], list[ConsumerRecord]] = {}
    for record in records:
        found.setdefault((record.topic, record.partition), []).append(record)
    return found


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode(errors="replace")


def _config(options: Options) -> dict[str, str]:
    from barnabas.cli.kafka.connection import client_config

    config = {"allow.auto.create.topics": "true", **client_config(options)}
    if options.value("group-protocol").lower() == "consumer":
        config["group.protocol"] = "consumer"
        if options.has("group-remote-assignor"):
            config["group.remote.assignor"] = options.value("group-remote-assignor")
    else:
        config["partition.assignment.strategy"] = options.value("assignment-strategy")
        config["session.timeout.ms"] = str(options.value("session-timeout"))
    if options.has("group-instance-id"):
        config["group.instance.id"] = options.value("group-instance-id")
    return {
        **config,
        "group.id": options.value("group-id"),
        "enable.auto.commit": str(options.has("enable-autocommit")).lower(),
        "auto.offset.reset": options.value("reset-policy"),
    }


main = TOOL.main(check, consume)
