"""`barnabas produce`: lines of stdin or of files become records.

Exit status 1 if a record was not acknowledged: nothing more is sent after the first failure. Ctrl-C sends what was
read and ends.
"""

import argparse
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import FAILED, UsageError, add_connection_arguments, add_json_argument, guarded
from barnabas.cli.command_parser import CommandParser
from barnabas.cli.data.escapes import unescaped
from barnabas.cli.data.line_input import messages
from barnabas.cli.data.short_options import getopt_words
from barnabas.cli.numbers import int32

if TYPE_CHECKING:
    from barnabas.cli.data.stopping import Stopping
    from barnabas.client.producer import Producer
    from barnabas.client.producer.fast_path import Delivery

Headers = list[tuple[str, bytes | None]]


def main(arguments: Sequence[str]) -> int:
    reader = parser()
    options = reader.parse(getopt_words(reader, arguments))
    return guarded("barnabas produce", lambda: produce(options))


def parser() -> CommandParser:
    parser = CommandParser(
        prog="barnabas produce", description="Send each line of stdin, or of files, to a topic as a record."
    )
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("files", metavar="FILE", nargs="*", help="read these instead of stdin (`-` is stdin)")
    parser.add_argument("-k", "--key", help="the key of every record that brings none")
    parser.add_argument("-K", "--key-separator", metavar="SEP", help="what stands before it in a line is the key")
    parser.add_argument("-D", "--delimiter", metavar="SEP", default="\\n", help="what ends a record (default \\n)")
    parser.add_argument("-H", "--header", metavar="K=V", action="append", default=[], help="a header (repeatable)")
    parser.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    parser.add_argument("-p", "--partition", type=int32, metavar="N", help="send all to this partition")
    parser.add_argument("-z", "--compression", metavar="CODEC", help="none, gzip, snappy, lz4 or zstd")
    parser.add_argument("--acks", choices=["all", "-1", "1", "0"], help="who must have a record (default all)")
    add_json_argument(parser)
    add_connection_arguments(parser)
    return parser


class Line(NamedTuple):
    key: bytes | None
    value: bytes | None


class Outcomes:
    """What became of the records; called on the I/O thread of the producer."""

    def __init__(self, told: bool, as_json: bool) -> None:
        self._told = told
        self._as_json = as_json
        self.produced = 0
        self.failed = 0
        self.first_error: Exception | None = None
        self._last_line = ""

    def on_delivery(self, delivery: "Delivery") -> None:
        error = delivery.exception(0)
        if error is not None:
            self.failed += 1
            self.first_error = self.first_error or error
            return
        self.produced += 1
        if self._told or self.produced == 1:
            self._last_line = _told(delivery, self._as_json)
            if self._told:
                print(self._last_line, flush=True)

    def summary(self, topic: str) -> str:
        """One record is told in full; many are counted."""
        return self._last_line if self.produced == 1 else f"Produced {self.produced} records to {topic}."


def produce(options: argparse.Namespace) -> int:
    from barnabas.cli.data.clients import producer_client
    from barnabas.cli.data.stopping import Stopping

    separator = None if options.key_separator is None else unescaped(options.key_separator)
    if separator == b"" or not options.delimiter:
        raise UsageError("a separator has at least one letter")
    lines = _lines(options, separator)
    interactive = not options.files and sys.stdin.isatty()
    outcomes = Outcomes(options.verbose or options.json or interactive, options.json)
    own = {"acks": options.acks, "compression.type": options.compression}
    with producer_client(options, own) as producer, Stopping() as stopping:
        read = _send(producer, options, lines, outcomes, stopping)
        producer.flush()
    if outcomes.first_error is not None:
        failed = f"{outcomes.failed} of {read} records were not produced"
        print(f"barnabas produce: {failed}: {_message(outcomes.first_error)}", file=sys.stderr)
        return FAILED
    if not (options.verbose or options.json or interactive):
        print(outcomes.summary(options.topic))
    return 0


def _send(
    producer: "Producer", options: argparse.Namespace, lines: Iterator[Line], outcomes: Outcomes, stopping: "Stopping"
) -> int:
    from barnabas.cli.data.progress import Progress

    topic, partition = options.topic, options.partition
    headers = _headers(options.header)
    with Progress("producing") as progress:
        while (line := stopping.next_of(lines)) is not None:
            key, value = line
            producer.send(topic, value, key, partition=partition, headers=headers, on_delivery=outcomes.on_delivery)
            progress.add(len(value or b"") + len(key or b""))
            if stopping.asked or outcomes.failed:
                break
        return progress.records


def _lines(options: argparse.Namespace, separator: bytes | None) -> Iterator[Line]:
    fixed = None if options.key is None else options.key.encode()
    for line in messages(options.files, unescaped(options.delimiter)):
        key: bytes | None = None
        value: bytes | None = line
        if separator is not None:
            before, found, after = line.partition(separator)
            if found:
                key, value = before, after
        if options.null:
            key, value = key or None, value or None
        yield Line(fixed if key is None else key, value)


def _headers(pairs: Sequence[str]) -> Headers | None:
    """`name=value`; a name alone has a null value."""
    if not pairs:
        return None
    split = [pair.partition("=") for pair in pairs]
    return [(name, value.encode() if equals else None) for name, equals, value in split]


def _told(delivery: "Delivery", as_json: bool) -> str:
    metadata = delivery.result(0)
    if as_json:
        import json

        return json.dumps(metadata._asdict())
    return (
        f"Produced to partition {metadata.partition} at offset {metadata.offset} with timestamp {metadata.timestamp}."
    )


def _message(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split())
