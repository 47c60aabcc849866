"""`barnabas topic offsets` and `barnabas topic delete-records`: offsets of partitions, and cutting their start."""

import argparse
from collections.abc import Mapping
from typing import TYPE_CHECKING, Literal

from barnabas.cli.command import Command, UsageError, with_admin
from barnabas.cli.commands.partition import partitions_file
from barnabas.cli.numbers import NumberError, int64, partition
from barnabas.cli.output import Output, Table, moment, rows_output
from barnabas.cli.times import milliseconds
from barnabas.types import TopicPartition

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

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


def offsets(admin: "Admin", options: argparse.Namespace) -> Output:
    spec = None if options.at is None else _spec(options.at)
    partitions = partitions_of(admin, options.names)
    return _ranges(admin, partitions, options) if spec is None else _at(admin, partitions, spec, options)


def _ranges(admin: "Admin", partitions: list[TopicPartition], options: argparse.Namespace) -> Output:
    from barnabas.client.admin.types import OffsetSpec

    first = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.EARLIEST))
    last = admin.list_offsets(dict.fromkeys(partitions, OffsetSpec.LATEST), isolation_level=_isolation(options))
    return rows_output(
        ("topic", "partition", "earliest", "latest", "offsets"),
        [(*key, first[key].offset, last[key].offset, last[key].offset - first[key].offset) for key in partitions],
    )


def _isolation(options: argparse.Namespace) -> Literal["read_committed", "read_uncommitted"]:
    return "read_committed" if options.committed else "read_uncommitted"


def _spec(when: str) -> int:
    from barnabas.client.admin.types import OffsetSpec

    return OffsetSpec[when.replace("-", "_").upper()] if when in _SPECS else milliseconds(when, "--at")


def _at(admin: "Admin", partitions: list[TopicPartition], spec: int, options: argparse.Namespace) -> Output:
    found = admin.list_offsets(dict.fromkeys(partitions, spec), isolation_level=_isolation(options))
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "offset": found[key].offset if found[key].offset >= 0 else None,
            "timestamp": found[key].timestamp if found[key].timestamp >= 0 else None,
        }
        for key in partitions
    ]
    shown = [(*key, row["offset"], moment(found[key].timestamp)) for key, row in zip(partitions, rows)]
    return Output(rows, [Table(["TOPIC", "PARTITION", "OFFSET", "TIMESTAMP"], shown)])


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


def _before(word: str) -> int:
    if word == "latest":
        return HIGH_WATERMARK
    if not word.isdecimal():
        raise NumberError(f"{word}: expected an offset or `latest`")
    return int64(word)


def delete_records(admin: "Admin", options: argparse.Namespace) -> dict[TopicPartition, int]:
    if (options.file is None) == (options.name is None):
        raise UsageError("give a topic with --before, or --file")
    if options.name is not None and options.before is None:
        raise UsageError("say up to where with --before OFFSET (or --before latest)")
    return admin.delete_records(
        partitions_file(options.file, "offset", int64) if options.file else _from_options(admin, options)
    )


def render_low_watermarks(options: argparse.Namespace, low_watermarks: Mapping[TopicPartition, int]) -> Output:
    return rows_output(("topic", "partition", "earliest"), [(*key, first) for key, first in low_watermarks.items()])


def _from_options(admin: "Admin", options: argparse.Namespace) -> dict[TopicPartition, int]:
    partitions = partitions_of(admin, [options.name])
    if options.partition is not None:
        partitions = [TopicPartition(options.name, number) for number in options.partition]
    return dict.fromkeys(partitions, options.before)


def partitions_of(admin: "Admin", names: list[str]) -> list[TopicPartition]:
    described = admin.describe_topics(names)
    return [TopicPartition(name, each.partition) for name in described for each in described[name].partitions]


OFFSETS = Command(
    "offsets",
    "show first and last offsets of partitions",
    offsets_arguments,
    with_admin(offsets),
    lambda _, output: output,
)
DELETE_RECORDS = Command(
    "delete-records",
    "delete the oldest records",
    delete_records_arguments,
    with_admin(delete_records),
    render_low_watermarks,
    partial=True,
)
