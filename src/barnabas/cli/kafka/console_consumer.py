"""`kafka-console-consumer.sh`: records of topics to stdout, until --max-messages, --timeout-ms or Ctrl-C."""

import re
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from typing import TYPE_CHECKING

from barnabas.cli.exit_status import FAILED, leave_quietly
from barnabas.cli.kafka.client_flags import BROKERS, key_values, merge
from barnabas.cli.kafka.flags import COMMAND_CONFIG, COMMAND_PROPERTY, Flag, Options, Tool, WrongUse, integer, refuse

if TYPE_CHECKING:
    from barnabas.cli.kafka.message_formatters import Formatter
    from barnabas.client.consumer import Consumer
    from barnabas.records.codec import ConsumerRecord
    from barnabas.stop_signals import StopRequest

DEFAULT_FORMATTER = "org.apache.kafka.tools.consumer.DefaultMessageFormatter"
LARGEST_OFFSET = (1 << 63) - 1
POLL_S = 0.2
POLL_RECORDS = 500
TOOL = Tool(
    "kafka-console-consumer.sh",
    "This tool helps to read data from Kafka topics and outputs it to standard output.",
    (
        BROKERS,
        Flag("topic", "The topic to read.", "TOPIC"),
        Flag("include", "A regular expression for the topics to read.", "REGEX", synonyms=("whitelist",)),
        Flag("partition", "The partition to read, from its end unless --offset says otherwise.", "N", integer),
        Flag("offset", "Where to start: an offset, earliest or latest.", "OFFSET", default="latest"),
        Flag("from-beginning", "Start at the first record where the group has no offset."),
        Flag("max-messages", "End after so many records.", "N", int),
        Flag("timeout-ms", "End when nothing came for so long.", "MS", int),
        Flag("skip-message-on-error", "Skip a record that cannot be printed instead of ending."),
        Flag("group", "The group to read with.", "GROUP"),
        Flag(
            "isolation-level",
            "read_committed leaves out records of open and aborted transactions.",
            "LEVEL",
            default="read_uncommitted",
        ),
        Flag("formatter", "The class that prints records.", "CLASS", default=DEFAULT_FORMATTER),
        Flag(
            "property",
            "One property for the formatter: print.timestamp print.key print.offset print.epoch print.partition"
            " print.headers print.value key.separator line.separator headers.separator null.literal"
            " key.deserializer value.deserializer headers.deserializer",
            "KEY=VALUE",
            synonyms=("formatter-property",),
        ),
        Flag("formatter-config", "A file of properties for the formatter; --property overrides it.", "FILE"),
        Flag("key-deserializer", "The class that reads keys.", "CLASS"),
        Flag("value-deserializer", "The class that reads values.", "CLASS"),
        Flag("enable-systest-events", "Print shutdown_complete at the end."),
        COMMAND_PROPERTY,
        COMMAND_CONFIG,
    ),
)


class Failed(Exception):
    """Reading ended with an error that was reported already."""


def check(options: Options) -> None:
    if options.has("topic") == options.has("include"):
        refuse("Exactly one of --include/--topic is required. ")
    if options.has("partition"):
        if not options.has("topic"):
            refuse("The topic is required when partition is specified.")
        if options.has("from-beginning") and options.has("offset"):
            refuse("Options from-beginning and offset cannot be specified together.")
    elif options.has("offset"):
        refuse("The partition is required when offset is specified.")
    options.require("bootstrap-server")
    options.value("partition")
    start_offset(options)


def start_offset(options: Options) -> int | str:
    given = str(options.value("offset"))
    if not options.has("offset"):
        return "earliest" if options.has("from-beginning") else "latest"
    if given.lower() in ("earliest", "latest"):
        return given.lower()
    if not given.isdecimal() or int(given) > LARGEST_OFFSET:
        refuse(
            f"The provided offset value '{given}' is incorrect. Valid values are 'earliest', 'latest', or a"
            " non-negative long."
        )
    return int(given)


def consume(options: Options) -> int:
    from barnabas.cli.kafka.connection import consumer_of, kafka_exception
    from barnabas.cli.kafka.message_formatters import formatter
    from barnabas.errors import KafkaError

    config = consumer_config(options)
    write = formatter(options.value("formatter"), _formatter_properties(options))
    try:
        with consumer_of(config) as consumer:
            status = _consume(consumer, options, write)
    except KafkaError as error:
        print(f"Unknown error when running consumer: {kafka_exception(error)}", file=sys.stderr)
        status = FAILED
    if options.has("enable-systest-events"):
        print("shutdown_complete")
    return status


def _consume(consumer: "Consumer", options: Options, write: "Formatter") -> int:
    from barnabas.stop_signals import StopRequest

    status = count = 0
    try:
        with closing(consumer), StopRequest() as stop:
            _start(consumer, options)
            try:
                for records in _received(consumer, options, stop):
                    for record in _taken(consumer, records):
                        count += 1
                        _print(write, record, options.has("skip-message-on-error"))
                    sys.stdout.buffer.flush()
            except BrokenPipeError:
                print("Unable to write to standard out, closing consumer.", file=sys.stderr)
                leave_quietly()
            except Failed:
                status = FAILED
            return stop.status if stop.requested else status
    finally:
        print(f"Processed a total of {count} messages", file=sys.stderr)


def _start(consumer: "Consumer", options: Options) -> None:
    from barnabas.types import TopicPartition

    if options.has("include"):
        try:
            consumer.subscribe(re.compile(rf"^(?:{options.value('include')})$"))
        except re.error as error:
            raise WrongUse(f"{options.value('include')} is not a regular expression: {error}") from None
        return
    topic = options.value("topic")
    if not options.has("partition"):
        consumer.subscribe([topic])
        return
    partition = TopicPartition(topic, options.value("partition"))
    consumer.assign([partition])
    start = start_offset(options)
    if start == "earliest":
        consumer.seek_to_beginning([partition])
    elif start == "latest":
        consumer.seek_to_end([partition])
    else:
        consumer.seek(partition, int(start))


def _received(consumer: "Consumer", options: Options, stop: "StopRequest") -> "Iterator[list[ConsumerRecord]]":
    """The records of each poll, never more than --max-messages."""
    from barnabas.cli.kafka.connection import kafka_exception
    from barnabas.errors import KafkaError

    limit = options.value("max-messages")
    left = -1 if limit is None else limit
    timeout_ms = options.value("timeout-ms")
    timeout_s = None if timeout_ms is None or timeout_ms < 0 else timeout_ms / 1000
    last = time.monotonic()
    while left and not stop.requested:
        waited = time.monotonic() - last
        if timeout_s is not None and waited > timeout_s:
            print("Error processing message, terminating consumer process: TimeoutException", file=sys.stderr)
            return
        wait_s = POLL_S if timeout_s is None else min(POLL_S, timeout_s - waited + 0.001)
        try:
            records = consumer.poll(wait_s, POLL_RECORDS if left < 0 else min(left, POLL_RECORDS))
        except KafkaError as error:
            print(f"Error processing message, terminating consumer process: {kafka_exception(error)}", file=sys.stderr)
            return
        if records:
            yield records
            left -= len(records) if left > 0 else 0
            last = time.monotonic()


def _taken(consumer: "Consumer", records: "list[ConsumerRecord]") -> "Iterator[ConsumerRecord]":
    """One by one. When that ends early the position goes back, so that the rest is not committed."""
    taken = 0
    try:
        for record in records:
            taken += 1
            yield record
    finally:
        firsts: dict[tuple[str, int], int] = {}
        for record in records[taken:]:
            firsts.setdefault((record.topic, record.partition), record.offset)
        for partition, offset in firsts.items():
            consumer.seek(partition, offset)


def _print(write: "Formatter", record: "ConsumerRecord", skip_on_error: bool) -> None:
    from barnabas.cli.kafka.deserializers import DeserializationFailed

    try:
        sys.stdout.buffer.write(write(record))
    except DeserializationFailed as error:
        if not skip_on_error:
            print(f"Unknown error when running consumer: {error}", file=sys.stderr)
            raise Failed from None
        print(f"Error processing message, skipping this message: {error}", file=sys.stderr)


def consumer_config(options: Options) -> dict[str, str]:
    import random

    from barnabas.cli.kafka.connection import client_config, properties_file

    config = client_config(options)
    path = options.value("command-config")
    places = [
        options.value("group"),
        None if path is None else properties_file(path).get("group.id"),
        key_values(options.values("command-property")).get("group.id"),
    ]
    groups = {group for group in places if group is not None}
    if len(groups) > 1:
        refuse(
            "The group ids provided in different places (directly using '--group', via '--consumer-property', or via"
            f" '--consumer.config') do not match. Detected group ids: {', '.join(repr(each) for each in groups)}"
        )
    if groups and options.has("partition"):
        refuse("Options group and partition cannot be specified together.")
    _set_reset(config, options)
    config.setdefault("client.id", "console-consumer")
    merge(config, "isolation.level", options, "isolation-level")
    if groups:
        config["group.id"] = groups.pop()
    else:
        # Nobody uses the group again: its offsets need not be kept.
        config["group.id"] = f"console-consumer-{random.randrange(100000)}"
        config.setdefault("enable.auto.commit", "false")
    return config


def _set_reset(config: dict[str, str], options: Options) -> None:
    given = config.setdefault("auto.offset.reset", "earliest" if options.has("from-beginning") else "latest")
    if options.has("from-beginning") and given != "earliest":
        raise WrongUse(
            f"Can't simultaneously specify --from-beginning and 'auto.offset.reset={given}', please remove one option"
        )


def _formatter_properties(options: Options) -> dict[str, str]:
    from barnabas.cli.kafka.connection import properties_file

    path = options.value("formatter-config")
    properties = {} if path is None else properties_file(path)
    for name in ("key", "value"):
        class_name = options.value(f"{name}-deserializer")
        if class_name:
            properties[f"{name}.deserializer"] = class_name
    return {**properties, **key_values(options.values("property"))}


main = TOOL.main(check, consume)
