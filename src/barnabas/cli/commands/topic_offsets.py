"""`barnabas topic offsets` and `barnabas topic delete-records`: offsets of partitions, and cutting their start."""

import argparse
from collections.abc import Mapping
from typing import Any

from barnabas.cli.command import UsageError, Verb, add_json_argument
from barnabas.cli.numbers import NumberError, int32, int64, partition
from barnabas.cli.output import moment, print_json, print_table
from barnabas.cli.times import milliseconds
from barnabas.types import TopicPartition

HIGH_WATERMARK = -1
_SPECS = ("earliest", "latest", "max-timestamp", "earliest-local", "latest-tiered")


def offsets_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("names", metavar="NAME", nargs="+")
    parser.add_argument(
        "--at",
        metavar="WHEN",
        help=f"{', '.join(_SPECS)}, or a time (2026-01-31T12:00 or milliseconds since 1970): the first from then",
    )
    parser.add_argument("--committed", action="store_true", help="the latest offset before every open transaction")
    add_json_argument(parser)


def offsets(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client

    spec = None if options.at is None else _spec(options.at)
    with admin_client(options) as admin:
        partitions = partitions_of(admin, options.names)
        if spec is None:
            _print_ranges(admin, partitions, options)
        else:
            _print_at(admin, partitions, spec, options)


def _print_ranges(admin: Any, partitions: list[TopicPartition], options: argparse.Namespace) -> None:
    from barnabas.client.admin.types import OffsetSpec

    level = "read_committed" if options.committed else "read_uncommitted"
    earliest = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    latest = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=level)
    rows = [
        (key.topic, key.partition, earliest[key].offset, latest[key].offset, latest[key].offset - earliest[key].offset)
        for key in partitions
    ]
    if options.json:
        names = ("topic", "partition", "earliest", "latest", "offsets")
        print_json([dict(zip(names, row)) for row in rows])
    else:
        print_table(["TOPIC", "PARTITION", "EARLIEST", "LATEST", "OFFSETS"], rows)


def _spec(when: str) -> int:
    from barnabas.client.admin.types import OffsetSpec

    return OffsetSpec[when.replace("-", "_").upper()] if when in _SPECS else milliseconds(when, "--at")


def _print_at(admin: Any, partitions: list[TopicPartition], spec: int, options: argparse.Namespace) -> None:
    level = "read_committed" if options.committed else "read_uncommitted"
    found = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=level)
    if options.json:
        print_json(
            [
                {
                    "topic": key.topic,
                    "partition": key.partition,
                    "offset": found[key].offset if found[key].offset >= 0 else None,
                    "timestamp": found[key].timestamp if found[key].timestamp >= 0 else None,
                }
                for key in partitions
            ]
        )
        return
    rows = [
        (
            key.topic,
            key.partition,
            found[key].offset if found[key].offset >= 0 else None,
            moment(found[key].timestamp),
        )
        for key in partitions
    ]
    print_table(["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"], rows)


def delete_records_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("name", metavar="NAME", nargs="?")
    parser.add_argument(
        "-p", "--partition", type=partition, action="append", metavar="N", help="only this one (repeatable)"
    )
    parser.add_argument(
        "--before", metavar="OFFSET", type=_before, help="delete the records before this offset, or `latest`: all"
    )
    parser.add_argument(
        "--file", metavar="JSON", help='Kafka\'s form instead: {"partitions": [{"topic", "partition", "offset"}]}'
    )
    add_json_argument(parser)


def _before(word: str) -> int:
    if word == "latest":
        return HIGH_WATERMARK
    if not word.isdecimal():
        raise NumberError(f"{word}: expected an offset or `latest`")
    return int64(word)


def delete_records(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.cli.partial_success import telling_what_was_done

    if (options.file is None) == (options.name is None):
        raise UsageError("give a topic with --before, or --file")
    if options.name is not None and options.before is None:
        raise UsageError("say up to where with --before OFFSET (or --before latest)")
    with admin_client(options) as admin:
        wanted = _from_file(options.file) if options.file else _from_options(admin, options)
        with telling_what_was_done(lambda done: _print_deleted(options, done)):
            low_watermarks = admin.delete_records(wanted)
    _print_deleted(options, low_watermarks)


def _print_deleted(options: argparse.Namespace, low_watermarks: Mapping[TopicPartition, int]) -> None:
    rows = [(key.topic, key.partition, earliest) for key, earliest in low_watermarks.items()]
    if options.json:
        print_json([dict(zip(("topic", "partition", "earliest"), row)) for row in rows])
    else:
        print_table(["TOPIC", "PARTITION", "EARLIEST"], rows)


def _from_options(admin: Any, options: argparse.Namespace) -> dict[TopicPartition, int]:
    partitions = partitions_of(admin, [options.name])
    if options.partition is not None:
        partitions = [TopicPartition(options.name, number) for number in options.partition]
    return dict.fromkeys(partitions, options.before)


def _from_file(path: str) -> dict[TopicPartition, int]:
    import json

    try:
        with open(path, encoding="utf-8") as file:
            given = json.load(file)["partitions"]
        return {TopicPartition(each["topic"], int32(each["partition"])): int64(each["offset"]) for each in given}
    except OSError as error:
        raise UsageError(f"cannot read {path}: {error.strerror}") from None
    except (ValueError, KeyError, TypeError) as error:
        raise UsageError(
            f'{path}: expected {{"partitions": [{{"topic", "partition", "offset"}}]}} ({error!r})'
        ) from None


def partitions_of(admin: Any, names: list[str]) -> list[TopicPartition]:
    described = admin.describe_topics(names)
    return [TopicPartition(name, each.partition) for name in described for each in described[name].partitions]


OFFSETS = Verb("offsets", "show first and last offsets of partitions", offsets_arguments, offsets)
DELETE_RECORDS = Verb("delete-records", "delete the oldest records", delete_records_arguments, delete_records)
