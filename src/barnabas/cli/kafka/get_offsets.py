"""`kafka-get-offsets.sh`: an offset of each partition, as topic:partition:offset."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.cli.command import Refused
from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, Flag, Options, Tool, integer, long, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.types import TopicPartition

Chooses = Callable[[str, int], bool]
SPECS = {"latest": -1, "earliest": -2, "max-timestamp": -3, "earliest-local": -4, "latest-tiered": -5}
RULE = re.compile(r"([^:,]*)(?::(?:([0-9]*)|(?:([0-9]*)-([0-9]*))))?")
TIMES = "-1 or latest / -2 or earliest / -3 or max-timestamp / -4 or earliest-local / -5 or latest-tiered"
TOOL = Tool(
    "kafka-get-offsets.sh",
    "An interactive shell for getting topic-partition offsets.",
    (
        *CONNECTION,
        Flag("topic", "Topics, as a regular expression (default: all).", "TOPIC"),
        Flag("partitions", "Partitions (default: all).", "NUMBER,..."),
        Flag("topic-partitions", "Instead of both: topic1:1,topic2:0-3,topic3,topic4:5-,topic5:-3", "RULE,..."),
        Flag("time", f"A timestamp in ms, or {TIMES}.", "TIME", default="latest"),
        Flag("exclude-internal-topics", "Leave out internal topics."),
    ),
)


def _check(options: Options) -> None:
    options.require("bootstrap-server")
    for address in options.value("bootstrap-server").split(","):
        if not re.fullmatch(r".*:\d+", address.strip()):
            refuse("Please provide valid host:port like host1:9091,host2:9092\n")


def _run(admin: Admin, options: Options) -> None:
    if options.has("topic-partitions") and options.given_of("topic", "partitions"):
        raise Refused("--topic-partitions cannot be used with --topic or --partitions")
    timestamp = _timestamp(options.value("time"))
    chooses = _rules(options.value("topic-partitions")) if options.has("topic-partitions") else _one_rule(options)
    partitions = _partitions(admin, chooses, internal=not options.has("exclude-internal-topics"))
    if not partitions:
        raise Refused("Could not match any topic-partitions with the specified filters")
    for (topic, partition), offset in _offsets(admin, partitions, timestamp).items():
        print(f"{topic}:{partition}:{offset}")


def _timestamp(text: str) -> int:
    try:
        return SPECS[text] if text in SPECS else long(text)
    except ValueError:
        raise Refused(
            f"Malformed time argument {text}. Please use {TIMES}, or a specified long format timestamp"
        ) from None


def _one_rule(options: Options) -> Chooses:
    from barnabas.cli.kafka.topics import topic_pattern

    topics = topic_pattern(options.value("topic") or ".*")
    listed = options.value("partitions")
    try:
        partitions = {integer(each) for each in listed.split(",")} if listed else set()
    except ValueError:
        raise Refused(
            f"--partitions expects a comma separated list of numeric partition ids, but received: {listed}"
        ) from None
    return lambda topic, number: bool(topics.fullmatch(topic)) and (not partitions or number in partitions)


def _rules(text: str) -> Chooses:
    from barnabas.cli.kafka.topics import topic_pattern

    rules: list[tuple[re.Pattern[str], range]] = []
    for rule in text.split(","):
        parts = RULE.fullmatch(rule)
        if parts is None:
            raise Refused(f"Invalid rule specification: {rule}")
        topic, only, lower, upper = parts.groups()
        numbers = range(int(lower or 0), int(upper) if upper else sys.maxsize)
        if only:
            numbers = range(int(only), int(only) + 1)
        rules.append((topic_pattern(topic or ".*"), numbers))
    return lambda topic, number: any(names.fullmatch(topic) and number in numbers for names, numbers in rules)


def _partitions(admin: Admin, chooses: Chooses, *, internal: bool) -> list[TopicPartition]:
    from barnabas.types import TopicPartition

    listed = admin.list_topics(include_internal=internal).values()
    found = [TopicPartition(topic.name, number) for topic in listed for number in range(topic.partitions)]
    return sorted((each for each in found if chooses(*each)), key=lambda each: f"{each.topic}-{each.partition}")


def _offsets(admin: Admin, partitions: list[TopicPartition], timestamp: int) -> dict[TopicPartition, int]:
    """A partition whose offset cannot be listed is reported and left out."""
    from barnabas.cli.kafka.connection import kafka_exception
    from barnabas.client.admin import AdminError

    try:
        found = admin.list_offsets(dict.fromkeys(partitions, timestamp))
    except AdminError as error:
        found = error.results
        for key, failure in error.errors.items():
            reason = f"{key.topic}-{key.partition} due to error: {kafka_exception(failure)}"
            print(f"Skip getting offsets for topic-partition {reason}", file=sys.stderr)
    return {each: found[each].offset for each in partitions if each in found and found[each].offset >= 0}


main = TOOL.main(_check, with_admin(_run, FailureReport("Error occurred: ", also=(Refused, ValueError))))
