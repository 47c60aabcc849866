"""`barnabas topic`: create, list, describe, alter, delete topics; their offsets; deleting records."""

import argparse
from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, key_values, noun_main, with_admin
from barnabas.cli.commands.topic_offsets import DELETE_RECORDS, OFFSETS
from barnabas.cli.numbers import int16, int32
from barnabas.cli.output import Output, Table, counted

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.client.admin.types import ConfigResource, CreatedTopic, TopicListing


def create_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("-p", "--partitions", type=int32, metavar="N", help="default: the broker's num.partitions")
    parser.add_argument("-r", "--replication-factor", type=int16, metavar="N", help="default: the broker's")
    parser.add_argument(
        "-a",
        "--assignment",
        metavar="IDS,...",
        help="broker ids of each partition instead of counts: 1:2,2:3 is two partitions with two replicas each",
    )
    parser.add_argument("-c", "--config", metavar="KEY=VALUE", action="append", default=[], help="a setting")
    parser.add_argument("--if-not-exists", action="store_true", help="a topic of that name is fine")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, create nothing")


def create(admin: "Admin", options: argparse.Namespace) -> "dict[str, CreatedTopic]":
    from barnabas.client.admin.types import NewTopic

    assignments = None
    if options.assignment is not None:
        if options.partitions is not None or options.replication_factor is not None:
            raise UsageError("--assignment says how many partitions and replicas: leave out -p and -r")
        assignments = dict(enumerate(_brokers(part) for part in options.assignment.split(",")))
    topics = [
        NewTopic(
            name=name,
            partitions=options.partitions,
            replication_factor=options.replication_factor,
            config=key_values(options.config, "-c"),
            assignments=assignments,
        )
        for name in options.names
    ]
    return admin.create_topics(topics, validate_only=options.dry_run, if_not_exists=options.if_not_exists)


def render_created(options: argparse.Namespace, created: "Mapping[str, CreatedTopic]") -> Output:
    return Output(list(created.values()), [_created_line(options, topic) for topic in created.values()])


def _created_line(options: argparse.Namespace, topic: "CreatedTopic") -> str:
    if topic.existed:
        return f"{topic.name} exists already"
    if options.dry_run:
        return f"{topic.name} could be created (dry run, nothing changed)"
    return f"created {topic.name}{_counts(topic.partitions, topic.replication_factor)}"


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--internal", action="store_true", help="internal topics too (__consumer_offsets, ...)")


def list_topics(admin: "Admin", options: argparse.Namespace) -> "list[TopicListing]":
    return list(admin.list_topics(include_internal=options.internal).values())


def render_topics(options: argparse.Namespace, topics: "list[TopicListing]") -> Output:
    rows = [(topic.name, topic.partitions, topic.replication_factor) for topic in topics]
    return Output(topics, [Table(["NAME", "PARTITIONS", "REPLICAS"], rows)])


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("--all-config", action="store_true", help="settings that are at their default too")


def describe(admin: "Admin", options: argparse.Namespace) -> list[dict[str, Any]]:
    from barnabas.client.admin.types import ConfigResource

    topics = admin.describe_topics(options.names)
    configs = admin.describe_configs(ConfigResource.topic(name) for name in topics)
    return [
        {
            "topic": topic,
            "config": {
                key: entry.value
                for key, entry in configs[ConfigResource.topic(name)].items()
                if options.all_config or not entry.is_default
            },
        }
        for name, topic in topics.items()
    ]


def render_descriptions(options: argparse.Namespace, described: list[dict[str, Any]]) -> Output:
    text = [part for each in described for part in ("", *_description(each["topic"], each["config"]))]
    return Output(described, text[1:])


def _description(topic: Any, config: dict[str, str | None]) -> Iterator[str | Table | dict[str, object]]:
    yield {
        "name": topic.name,
        "topic id": topic.topic_id,
        "partitions": len(topic.partitions),
        "replicas": topic.replication_factor,
        "internal": topic.is_internal,
        **{f"config {key}": value for key, value in sorted(config.items())},
    }
    yield ""
    headers = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE"]
    rows: list[list[object]] = [
        [each.partition, each.leader, each.leader_epoch, each.replicas, each.isr, each.offline_replicas]
        for each in topic.partitions
    ]
    if any(each.eligible_leader_replicas for each in topic.partitions):
        headers += ["ELR", "LAST-KNOWN-ELR"]
        for row, each in zip(rows, topic.partitions):
            row += [each.eligible_leader_replicas, each.last_known_eligible_leader_replicas]
    yield Table(headers, rows)


def alter_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("-s", "--set", metavar="KEY=VALUE", action="append", default=[], help="give a setting a value")
    parser.add_argument("-u", "--unset", metavar="KEY", action="append", default=[], help="back to the default")
    parser.add_argument("--append", metavar="KEY=VALUE", action="append", default=[], help="add to a list")
    parser.add_argument("--subtract", metavar="KEY=VALUE", action="append", default=[], help="take from a list")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")


def alter(admin: "Admin", options: argparse.Namespace) -> "Iterable[ConfigResource]":
    from barnabas.cli.commands.setting_names import check_settings
    from barnabas.client.admin.types import ConfigChange, ConfigResource

    change = ConfigChange(
        set=key_values(options.set, "--set"),
        delete=options.unset,
        append=key_values(options.append, "--append"),
        subtract=key_values(options.subtract, "--subtract"),
    )
    if not (change.set or change.delete or change.append or change.subtract):
        raise UsageError("nothing to do: give --set, --unset, --append or --subtract")
    changes = {ConfigResource.topic(name): change for name in options.names}
    if options.unset:
        check_settings(admin, changes, options.unset, "a topic has")
    admin.alter_configs(changes, validate_only=options.dry_run)
    return changes


def render_altered(options: argparse.Namespace, topics: "Iterable[ConfigResource]") -> Output:
    names = [topic.name for topic in topics]
    line = "{} could be altered (dry run, nothing changed)" if options.dry_run else "altered {}"
    return Output([{"topic": name, "altered": not options.dry_run} for name in names], map(line.format, names))


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is fine")


def delete(admin: "Admin", options: argparse.Namespace) -> dict[str, bool]:
    """By name, whether the topic was there."""
    from barnabas.client.admin import AdminError
    from barnabas.errors import ErrorCode

    try:
        admin.delete_topics(options.names)
    except AdminError as error:
        missing = {name for name, each in error.errors.items() if each.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        if not options.if_exists or missing != set(error.errors):
            raise
        return dict.fromkeys(error.results, True) | dict.fromkeys(missing, False)
    return dict.fromkeys(options.names, True)


def render_deleted(options: argparse.Namespace, deleted: Mapping[str, object]) -> Output:
    existed = {name: result is not False for name, result in deleted.items()}
    return Output(
        [{"topic": name, "deleted": found} for name, found in existed.items()],
        [f"deleted {name}" if found else f"{name} does not exist" for name, found in existed.items()],
    )


def add_partitions_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    count = parser.add_mutually_exclusive_group(required=True)
    count.add_argument("--to", type=int32, metavar="TOTAL", help="the number of partitions to have")
    count.add_argument("--by", type=int32, metavar="N", help="how many to add")
    parser.add_argument("-a", "--assignment", metavar="IDS,...", help="broker ids of each new partition: 1:2,2:3")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")


def add_partitions(admin: "Admin", options: argparse.Namespace) -> dict[str, Any]:
    assignments = None if options.assignment is None else [_brokers(part) for part in options.assignment.split(",")]
    before = len(admin.describe_topic(options.name).partitions)
    total = options.to if options.to is not None else int32(before + options.by)
    admin.add_partitions(options.name, total, assignments=assignments, validate_only=options.dry_run)
    return {"topic": options.name, "partitions": total, "before": before, "dry_run": options.dry_run}


def render_partitions(options: argparse.Namespace, done: dict[str, Any]) -> Output:
    name, total, before = options.name, done["partitions"], done["before"]
    line = f"{name} has {total} partitions, before {before}; keys may map to other partitions from now on"
    if options.dry_run:
        line = f"{name} could have {total} partitions instead of {before} (dry run, nothing changed)"
    return Output([done], [line])


def _brokers(text: str) -> list[int]:
    try:
        return [int32(each) for each in text.split(":")]
    except ValueError:
        raise UsageError(f"--assignment: {text!r} is not a list of broker ids like 1:2") from None


def _counts(partitions: int | None, replicas: int | None) -> str:
    if partitions is None or replicas is None:
        return ""
    return f": {counted(partitions, 'partition')}, {counted(replicas, 'replica')} each"


VERBS = (
    Command("create", "create topics", create_arguments, with_admin(create), render_created, partial=True),
    Command("list", "list topics", list_arguments, with_admin(list_topics), render_topics),
    Command(
        "describe",
        "show partitions and settings of topics",
        describe_arguments,
        with_admin(describe),
        render_descriptions,
    ),
    Command("alter", "change settings of topics", alter_arguments, with_admin(alter), render_altered, partial=True),
    Command("delete", "delete topics", delete_arguments, with_admin(delete), render_deleted, partial=True),
    Command(
        "add-partitions",
        "raise the number of partitions",
        add_partitions_arguments,
        with_admin(add_partitions),
        render_partitions,
    ),
    OFFSETS,
    DELETE_RECORDS,
)

main = noun_main("topic", "Topics: what there is, and changing it.", VERBS)
