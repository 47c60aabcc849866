"""`kafka-topics.sh`: lists, creates, describes, grows and deletes topics.

As in Kafka, `--topic` is a regular expression except for --create, and a failure is reported on stdout.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from barnabas.cli.kafka.failures import FailureReport, with_admin
from barnabas.cli.kafka.flags import CONNECTION, BadValue, Flag, Options, Tool, WrongUse, integer, refuse

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

ACTIONS = ("alter", "create", "describe", "list", "delete")
REPORTS = (
    "under-replicated-partitions",
    "under-min-isr-partitions",
    "at-min-isr-partitions",
    "unavailable-partitions",
)
TOOL = Tool(
    "kafka-topics.sh",
    "This tool helps to create, delete, describe, or change a topic.",
    (
        *CONNECTION,
        Flag("list", "Names of the topics."),
        Flag("create", "Create a topic."),
        Flag("delete", "Delete topics."),
        Flag("alter", "Add partitions. (Settings are changed with kafka-configs.sh.)"),
        Flag("describe", "Partitions, leaders, replicas and settings of topics."),
        Flag("topic", "The topic; a regular expression except with --create.", "TOPIC"),
        Flag("topic-id", "The topic to describe, by its id.", "ID"),
        Flag("config", "A setting of the new topic (repeatable).", "NAME=VALUE"),
        Flag("delete-config", "Not supported any more: use kafka-configs.sh.", "NAME"),
        Flag("partitions", "How many partitions the topic is to have (default: the cluster's).", "COUNT", integer),
        Flag("replication-factor", "How many replicas each partition is to have.", "COUNT", integer),
        Flag("replica-assignment", "Replicas of each partition, e.g. 0:1,1:2", "ID:ID,ID:ID,..."),
        Flag("under-replicated-partitions", "Describe only partitions with replicas that are not in sync."),
        Flag("unavailable-partitions", "Describe only partitions whose leader is not available."),
        Flag("under-min-isr-partitions", "Describe only partitions with fewer in-sync replicas than the minimum."),
        Flag("at-min-isr-partitions", "Describe only partitions with as many in-sync replicas as the minimum."),
        Flag("topics-with-overrides", "Describe only topics that have settings of their own."),
        Flag("if-exists", "With --alter, --delete, --describe: do nothing if the topic is missing."),
        Flag("if-not-exists", "With --create: do nothing if the topic is there."),
        Flag("exclude-internal", "Leave out internal topics."),
        Flag("partition-size-limit-per-response", "Accepted for Kafka's sake; the client pages by itself.", "N", int),
    ),
)


def _check(options: Options) -> None:
    if len(options.given_of(*ACTIONS)) != 1:
        refuse("Command must include exactly one action: --list, --describe, --create, --alter or --delete")
    if not options.has("bootstrap-server"):
        raise WrongUse("--bootstrap-server must be specified")
    if options.has("describe") and options.has("if-exists") and not options.given_of("topic", "topic-id"):
        refuse("--topic or --topic-id is required to describe a topic")
    if not options.given_of("list", "describe"):
        options.require("topic")
    if options.has("alter"):
        if options.has("config"):
            refuse('Option "[config]" can\'t be used with option "[alter]" (kafka-configs.sh changes settings)')
        options.require("partitions")
    for flag, allowed in {
        "config": ("create",),
        "partitions": ("alter", "create"),
        "replication-factor": ("create",),
        "replica-assignment": ("alter", "create"),
        "topics-with-overrides": ("describe",),
        "if-exists": ("alter", "delete", "describe"),
        "if-not-exists": ("create",),
        "exclude-internal": ("list", "describe"),
        **dict.fromkeys(REPORTS, ("describe",)),
    }.items():
        options.forbid(flag, *(action for action in ACTIONS if action not in allowed))
    if options.has("create"):
        options.forbid("replica-assignment", "partitions", "replication-factor")
    options.forbid("topics-with-overrides", *REPORTS)


def _run(admin: Admin, options: Options) -> None:
    from barnabas.cli.kafka.topics_describe import describe_topics

    if options.has("create"):
        _create(admin, options)
    elif options.has("alter"):
        _alter(admin, options)
    elif options.has("delete"):
        names = matching_topics(admin, options)
        if names:
            admin.delete_topics(names)
    elif options.has("list"):
        print("\n".join(matching_topics(admin, options, must_exist=False)))
    else:
        describe_topics(admin, options)


def matching_topics(admin: Admin, options: Options, *, must_exist: bool = True) -> list[str]:
    """Names that --topic matches, all of them without it."""
    wanted = options.value("topic")
    names = sorted(admin.list_topics(include_internal=not options.has("exclude-internal")))
    if wanted is not None:
        pattern = topic_pattern(wanted)
        names = [name for name in names if pattern.fullmatch(name)]
    if must_exist and wanted and not names and not options.has("if-exists"):
        raise ValueError(f"Topic '{wanted}' does not exist as expected")
    return names


def topic_pattern(text: str) -> re.Pattern[str]:
    """Kafka's lists of topics: a regular expression in which commas mean "or"; blanks and outer quotes do not count."""
    expression = text.strip().replace(",", "|").replace(" ", "").strip("\"'")
    try:
        return re.compile(expression)
    except re.error:
        raise ValueError(f"{expression} is an invalid regex.") from None


def _create(admin: Admin, options: Options) -> None:
    from barnabas.errors import ErrorCode, KafkaError

    name, partitions, factor = (options.value(each) for each in ("topic", "partitions", "replication-factor"))
    assignments = _assignments(options.value("replica-assignment"))
    config = _config(options.values("config"))
    if "." in name or "_" in name:
        print(
            "WARNING: Due to limitations in metric names, topics with a period ('.') or underscore ('_') could collide."
            " To avoid issues it is best to use either, but not both."
        )
    if factor is not None and not 1 <= factor <= 32767:
        raise ValueError("The replication factor must be between 1 and 32767 inclusive")
    if partitions is not None and partitions < 1:
        raise ValueError("The partitions must be greater than 0")
    try:
        admin.create_topic(name, partitions, factor, config, assignments=assignments)
    except KafkaError as error:
        if error.code is ErrorCode.TOPIC_ALREADY_EXISTS and options.has("if-not-exists"):
            return
        raise
    print(f"Created topic {name}.")


def _alter(admin: Admin, options: Options) -> None:
    total = options.value("partitions")
    assignments = _assignments(options.value("replica-assignment"))
    names = matching_topics(admin, options)
    described = admin.describe_topics(names) if assignments and names else {}
    for name in names:
        added = None
        if assignments:
            added = [
                brokers for partition, brokers in assignments.items() if partition >= len(described[name].partitions)
            ]
        admin.add_partitions(name, total, assignments=added)


def _assignments(text: str | None) -> dict[int, list[int]] | None:
    """`0:1,1:2`: brokers of partition 0, of partition 1, ..."""
    if not text:
        return None
    assignments: dict[int, list[int]] = {}
    for partition, listed in enumerate(text.split(",")):
        brokers = [_broker_id(each) for each in listed.split(":")]
        twice = sorted({each for each in brokers if brokers.count(each) > 1})
        if twice:
            shown = ",".join(map(str, twice))
            raise ValueError(f"Partition replica lists may not contain duplicate entries: {shown}")
        assignments[partition] = brokers
        if len(brokers) != len(assignments[0]):
            raise ValueError(f"Partition {partition} has different replication factor: {brokers}")
    return assignments


def _broker_id(text: str) -> int:
    try:
        return integer(text.strip())
    except ValueError:
        raise ValueError(f'For input string: "{text.strip()}"') from None


def _config(pairs: list[str]) -> dict[str, str]:
    from barnabas.config.topic import TopicConfig

    split = [re.split(r"\s*=\s*", pair.rstrip("=")) for pair in pairs]
    if any(len(pair) != 2 for pair in split):
        raise ValueError(
            'requirement failed: Invalid topic config: all configs to be added must be in the format "key=val".'
        )
    config = {key.strip(): value.strip() for key, value in split}
    for name in config:
        if name not in TopicConfig.settings:
            raise ValueError(f"Unknown topic config name: {name}")
    return config


main = TOOL.main(
    _check,
    with_admin(
        _run,
        FailureReport("Error while executing topic command : ", on_stdout=True, also=(ValueError, BadValue)),
    ),
)
