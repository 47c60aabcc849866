"""`barnabas consume`: records of topics to stdout, from and to where one likes, within a group or not."""

import argparse
import re
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, UsageError, command_main
from barnabas.cli.data.partition_ranges import PartitionRange, parse_partitions, partitions_in
from barnabas.cli.data.read_range import BEGINNING, STORED, ReadRange

if TYPE_CHECKING:
    from barnabas.client.consumer import Consumer
    from barnabas.types import TopicPartition

FORMAT_HELP = """\
letters of -f:
  %t topic    %p partition    %o offset    %T timestamp in ms    %h headers
  %k key      %K its length   %s value     %S its length         %R the same, 4 bytes
  %% percent  \\n \\r \\t \\xNN escapes; the length of null is -1

-o takes beginning, end, stored, an offset, -N for the last N, s@TIME to start and e@TIME to stop at a time, which is
given in milliseconds or like 2026-01-31T12:00. s@ and e@ may be given together.
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("topics", metavar="TOPIC", nargs="+", help="names, or regular expressions that begin with ^")
    parser.add_argument("-f", "--format", metavar="FORMAT", help="how to print a record (default %%s\\n)")
    parser.add_argument("-J", "--json", action="store_true", help="a line of JSON for each record")
    parser.add_argument("-K", "--key-separator", metavar="SEP", help="print the key and this before the value")
    parser.add_argument("-D", "--delimiter", metavar="SEP", help="print this after a record (default \\n)")
    parser.add_argument("-Z", "--null", action="store_true", help="print null as NULL instead of nothing")
    parser.add_argument(
        "-o", "--offset", metavar="OFFSET", action="append", default=[], help="where to start, see below"
    )
    parser.add_argument("-e", "--exit", action="store_true", help="stop at the end")
    parser.add_argument("-c", "--count", type=int, metavar="N", help="stop after N records")
    parser.add_argument("-p", "--partitions", metavar="N,...", help="only these partitions: 0,2 or 0-3")
    parser.add_argument(
        "-g", "--group", metavar="GROUP", help="read as a member of a group, which remembers the offsets"
    )
    parser.add_argument("--isolation-level", choices=["read_uncommitted", "read_committed"], help="see open and aborted"
                        " transactions or not (default read_uncommitted)")  # fmt: skip


def consume(options: argparse.Namespace) -> None:
    from barnabas.cli.data.clients import CLOSE_S, consumer_client
    from barnabas.cli.data.reading import GroupPartitions, Partitions, print_records
    from barnabas.cli.data.record_format import compiled, json_lines
    from barnabas.cli.outages import outage_line, report_outages
    from barnabas.cli.progress import Progress

    bounds = ReadRange.parse(options.offset, options.exit)
    _check(options, bounds)
    ranges = None if options.partitions is None else parse_partitions(options.partitions)
    write = json_lines if options.json else compiled(_layout(options), b"NULL" if options.null else b"")
    reset = "earliest" if bounds.start in (BEGINNING, STORED) else "latest"
    own = {
        "group.id": options.group,
        "isolation.level": options.isolation_level,
        "auto.offset.reset": reset if bounds.given else None,
        # A group that a file names is somebody else's: reading the records must not move its offsets.
        "enable.auto.commit": "false" if options.group is None else None,
    }
    defaults = {
        "auto.offset.reset": reset,
        "allow.auto.create.topics": "false",
        # Closing waits for the fetch in flight: where the end is near, that must be short.
        "fetch.max.wait.ms": "50" if bounds.at_end or options.count is not None else None,
    }
    with consumer_client(options, own, defaults) as consumer:
        partitions: Partitions | GroupPartitions
        if options.group is not None:
            consumer.subscribe(_subscription(consumer, options.topics))
            partitions = GroupPartitions(consumer, bounds)
        else:
            chosen = _chosen(consumer, options, ranges)
            consumer.assign(chosen)
            bounds.seek(consumer, chosen)
            partitions = Partitions(consumer, chosen, bounds)
        with report_outages(outage_line("barnabas consume")):
            output = sys.stdout.buffer
            progress = Progress.beside("consuming", output)
            print_records(consumer, partitions, write, output, options.count, progress)
            consumer.close(CLOSE_S)


def _layout(options: argparse.Namespace) -> str:
    """-f, or what -K and -D make of the usual one; a percent sign in them is itself."""
    if options.format:
        return str(options.format)
    key = "" if options.key_separator is None else "%k" + options.key_separator.replace("%", "%%")
    return key + "%s" + ("\\n" if options.delimiter is None else options.delimiter.replace("%", "%%"))


def _check(options: argparse.Namespace, bounds: ReadRange) -> None:
    if options.count is not None and options.count < 1:
        raise UsageError(f"-c {options.count}: expected a number above 0")
    separators = options.key_separator is not None or options.delimiter is not None
    if options.json and (options.format or separators):
        raise UsageError("-J prints JSON: leave out -f, -K and -D")
    if options.format and separators:
        raise UsageError("-f says what stands where: leave out -K and -D")
    if options.group is None:
        if bounds.start == STORED:
            raise UsageError("-o stored: only a group (-g) stores offsets")
        return
    if options.partitions:
        raise UsageError("-p: the group (-g) decides who reads which partition; leave out one of the two")
    if isinstance(bounds.start, int) or bounds.start_ms is not None or bounds.stop_ms is not None:
        raise UsageError("-o: a group (-g) starts where it was; `barnabas group reset-offsets` puts it elsewhere")


def _subscription(consumer: "Consumer", topics: Sequence[str]) -> Sequence[str] | re.Pattern[str]:
    from barnabas.cli.data.reading import existing_topics

    return _pattern(topics) if _has_pattern(topics) else existing_topics(consumer, topics)


def _has_pattern(topics: Sequence[str]) -> bool:
    return any(topic.startswith("^") for topic in topics)


def _pattern(topics: Sequence[str]) -> re.Pattern[str]:
    try:
        return re.compile("|".join(topic if topic.startswith("^") else f"^{re.escape(topic)}$" for topic in topics))
    except re.error as error:
        raise UsageError(f"not a regular expression: {error}") from None


def _chosen(
    consumer: "Consumer", options: argparse.Namespace, ranges: Sequence[PartitionRange] | None
) -> "list[TopicPartition]":
    from barnabas.cli.data.reading import existing_topics
    from barnabas.types import TopicPartition

    if _has_pattern(options.topics):
        pattern = _pattern(options.topics)
        names: Sequence[str] = sorted(name for name in consumer.list_topics() if pattern.search(name))
        if not names:
            raise UsageError(f"no topic matches {' '.join(options.topics)}")
    else:
        names = existing_topics(consumer, options.topics)
    chosen = []
    for name in names:
        there = sorted(each.partition for each in consumer.partitions_for(name))
        wanted = there if ranges is None else partitions_in(ranges, name, there)
        chosen += [TopicPartition(name, number) for number in wanted]
    return chosen


COMMAND = Command(
    "consume",
    "print records of topics until Ctrl-C, or a given number of them",
    add_arguments,
    consume,
    notes=FORMAT_HELP,
    like_getopt=True,
    may_be_bytes=("format", "key_separator", "delimiter"),
)
main = command_main(COMMAND)
