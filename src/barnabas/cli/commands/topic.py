"""`barnabas topic`: create, list, describe, alter, delete topics; their offsets; deleting records."""

import argparse
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import UsageError, Verb, add_json_argument, key_values, run
from barnabas.cli.commands.topic_offsets import DELETE_RECORDS, OFFSETS
from barnabas.cli.numbers import int16, int32
from barnabas.cli.output import counted, print_done, print_fields, print_json, print_table

if TYPE_CHECKING:
    from barnabas.client.admin.types import ConfigResource, CreatedTopic


def main(arguments: Sequence[str]) -> int:
    return run("topic", "Topics: what there is, and changing it.", VERBS, arguments)


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
    add_json_argument(parser)


def create(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done
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
    with admin_client(options) as admin, telling_what_was_done(lambda made: _print_created(options, made)):
        made = admin.create_topics(topics, validate_only=options.dry_run, if_not_exists=options.if_not_exists)
    _print_created(options, made)


def _print_created(options: argparse.Namespace, made: "Mapping[str, CreatedTopic]") -> None:
    if options.json:
        print_json(list(made.values()))
        return
    for topic in made.values():
        if topic.existed:
            print(f"{topic.name} exists already")
        elif options.dry_run:
            print(f"{topic.name} could be created (dry run, nothing changed)")
        else:
            print(f"created {topic.name}{_counts(topic.partitions, topic.replication_factor)}")


def list_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--internal", action="store_true", help="internal topics too (__consumer_offsets, ...)")
    add_json_argument(parser)


def list_topics(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    with admin_client(options) as admin:
        topics = admin.list_topics(include_internal=options.internal)
    if options.json:
        print_json(list(topics.values()))
    else:
        rows = [(topic.name, topic.partitions, topic.replication_factor) for topic in topics.values()]
        print_table(["NAME", "PARTITIONS", "REPLICAS"], rows)


def describe_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("--all-config", action="store_true", help="settings that are at their default too")
    add_json_argument(parser)


def describe(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin.types import ConfigResource

    with admin_client(options) as admin:
        topics = admin.describe_topics(options.names)
        configs = admin.describe_configs(ConfigResource.topic(name) for name in topics)
    shown = {
        resource.name: {
            name: entry.value for name, entry in entries.items() if options.all_config or not entry.is_default
        }
        for resource, entries in configs.items()
    }
    if options.json:
        print_json([{"topic": topic, "config": shown[name]} for name, topic in topics.items()])
        return
    for index, (name, topic) in enumerate(topics.items()):
        if index:
            print()
        _print_topic(topic, shown[name])


def _print_topic(topic: Any, config: dict[str, str | None]) -> None:
    print_fields(
        {
            "name": topic.name,
            "topic id": topic.topic_id,
            "partitions": len(topic.partitions),
            "replicas": topic.replication_factor,
            "internal": topic.is_internal,
            **{f"config {key}": value for key, value in sorted(config.items())},
        }
    )
    print()
    headers = ["PARTITION", "LEADER", "EPOCH", "REPLICAS", "ISR", "OFFLINE"]
    rows: list[list[object]] = [
        [each.partition, each.leader, each.leader_epoch, each.replicas, each.isr, each.offline_replicas]
        for each in topic.partitions
    ]
    if any(each.eligible_leader_replicas for each in topic.partitions):
        headers += ["ELR", "LAST-KNOWN-ELR"]
        for row, each in zip(rows, topic.partitions):
            row += [each.eligible_leader_replicas, each.last_known_eligible_leader_replicas]
    print_table(headers, rows)


def alter_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("-s", "--set", metavar="KEY=VALUE", action="append", default=[], help="give a setting a value")
    parser.add_argument("-u", "--unset", metavar="KEY", action="append", default=[], help="back to the default")
    parser.add_argument("--append", metavar="KEY=VALUE", action="append", default=[], help="add to a list")
    parser.add_argument("--subtract", metavar="KEY=VALUE", action="append", default=[], help="take from a list")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")
    add_json_argument(parser)


def alter(options: argparse.Namespace) -> None:
    from barnabas.cli.commands.setting_names import check_settings
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done
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
    with admin_client(options) as admin:
        if options.unset:
            check_settings(admin, changes, options.unset, "a topic has")
        with telling_what_was_done(lambda done: _print_altered(options, done)):
            admin.alter_configs(changes, validate_only=options.dry_run)
    _print_altered(options, changes)


def _print_altered(options: argparse.Namespace, topics: "Iterable[ConfigResource]") -> None:
    names = [topic.name for topic in topics]
    line = "{} could be altered (dry run, nothing changed)" if options.dry_run else "altered {}"
    done = [{"topic": name, "altered": not options.dry_run} for name in names]
    print_done(options, done, [line.format(name) for name in names])


def delete_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument("--if-exists", action="store_true", help="a topic that is not there is fine")
    add_json_argument(parser)


def delete(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin import AdminError
    from barnabas.errors import ErrorCode

    with admin_client(options) as admin:
        try:
            admin.delete_topics(options.names)
        except AdminError as error:
            gone = {name for name, each in error.errors.items() if each.code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
            if not options.if_exists or gone != set(error.errors):
                if error.results:
                    _print_deleted(options, error.results, ())
                raise
            _print_deleted(options, error.results, gone)
            return
    _print_deleted(options, options.names, ())


def _print_deleted(options: argparse.Namespace, deleted: Iterable[str], missing: Iterable[str]) -> None:
    found = [(name, True) for name in deleted] + [(name, False) for name in missing]
    print_done(
        options,
        [{"topic": name, "deleted": existed} for name, existed in found],
        [f"deleted {name}" if existed else f"{name} does not exist" for name, existed in found],
    )


def add_partitions_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME")
    count = parser.add_mutually_exclusive_group(required=True)
    count.add_argument("--to", type=int32, metavar="TOTAL", help="how many partitions there shall be")
    count.add_argument("--by", type=int32, metavar="N", help="how many to add")
    parser.add_argument("-a", "--assignment", metavar="IDS,...", help="broker ids of each new partition: 1:2,2:3")
    parser.add_argument("--dry-run", action="store_true", help="have it checked, change nothing")
    add_json_argument(parser)


def add_partitions(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    assignments = None if options.assignment is None else [_brokers(part) for part in options.assignment.split(",")]
    with admin_client(options) as admin:
        before = len(admin.describe_topic(options.name).partitions)
        total = options.to if options.to is not None else int32(before + options.by)
        admin.add_partitions(options.name, total, assignments=assignments, validate_only=options.dry_run)
    done = {"topic": options.name, "partitions": total, "before": before, "dry_run": options.dry_run}
    if options.dry_run:
        line = f"{options.name} could have {total} partitions instead of {before} (dry run, nothing changed)"
    else:
        line = f"{options.name} has {total} partitions, before {before}; keys may map to other partitions from now on"
    print_done(options, [done], [line])


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
    Verb("create", "create topics", create_arguments, create),
    Verb("list", "list topics", list_arguments, list_topics),
    Verb("describe", "show partitions and settings of topics", describe_arguments, describe),
    Verb("alter", "change settings of topics", alter_arguments, alter),
    Verb("delete", "delete topics", delete_arguments, delete),
    Verb("add-partitions", "raise the number of partitions", add_partitions_arguments, add_partitions),
    OFFSETS,
    DELETE_RECORDS,
)
