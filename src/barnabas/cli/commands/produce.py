"""`barnabas produce`: lines of stdin or of files become records.

Exit status 1 if a record was not acknowledged: nothing more is sent after the first failure. Ctrl-C sends what was
read and ends; a second one gives up what is on its way. Either way it is said how many records were not produced.
"""

import argparse
import os
import sys
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, NamedTuple

from barnabas.cli.command import FAILED, INTERRUPTED, UsageError, add_connection_arguments, add_json_argument, guarded
from barnabas.cli.command_parser import CommandParser, is_text
from barnabas.cli.data.escapes import unescaped
from barnabas.cli.data.line_input import LineInput
from barnabas.cli.data.short_options import getopt_words
from barnabas.cli.numbers import partition
from barnabas.cli.output import counted

if TYPE_CHECKING:
    from barnabas.cli.data.stopping import Stopping
    from barnabas.client.producer import Producer
    from barnabas.client.producer.fast_path import Delivery

PROGRAM = "barnabas produce"
PATIENCE_S = 0.5
Headers = list[tuple[str, bytes | None]]


def main(arguments: Sequence[str]) -> int:
    reader = parser()
    options = reader.parse(getopt_words(reader, arguments))
    return guarded(PROGRAM, lambda: produce(options))


def parser() -> CommandParser:
    parser = CommandParser(prog=PROGRAM, description="Send each line of stdin, or of files, to a topic as a record.")
    parser.may_be_bytes = ("key", "key_separator", "delimiter", "header")
    parser.add_argument("topic", metavar="TOPIC")
    parser.add_argument("files", metavar="FILE", nargs="*", help="read these instead of stdin (`-` is stdin)")
    parser.add_argument("-k", "--key", help="the key of every record that brings none")
    parser.add_argument("-K", "--key-separator", metavar="SEP", help="what stands before it in a line is the key")
    parser.add_argument("-D", "--delimiter", metavar="SEP", default="\\n", help="what ends a record (default \\n)")
    parser.add_argument("-H", "--header", metavar="K=V", action="append", default=[], help="a header (repeatable)")
    parser.add_argument("-Z", "--null", action="store_true", help="an empty key or value is null")
    parser.add_argument("-p", "--partition", type=partition, metavar="N", help="send all to this partition")
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
        self.read = 0
        self.produced = 0
        self.failed = 0
        self.first_error: Exception | None = None
        self._first_place = ""
        self._last_line = ""

    @property
    def waiting(self) -> int:
        return self.read - self.produced - self.failed

    def fail(self, error: Exception, place: str) -> None:
        """The producer did not take the record that stands there."""
        self.failed += 1
        if self.first_error is None:
            self.first_error, self._first_place = error, f"{place}: "

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

    def failures(self, interrupted: bool) -> str:
        told = f"{self.read - self.produced} of {self.read} records were not produced"
        if interrupted or self.first_error is None:
            return f"{told}: interrupted before a broker had them"
        stopped = "; nothing after it was sent" if self._first_place else ""
        return f"{told}: {self._first_place}{_message(self.first_error)}{stopped}"


def produce(options: argparse.Namespace) -> int:
    if not options.topic:
        raise UsageError("a topic has a name")
    separator = None if options.key_separator is None else unescaped(options.key_separator)
    if separator == b"" or not options.delimiter:
        raise UsageError("a separator has at least one letter")
    source = LineInput(options.files, unescaped(options.delimiter))
    told = options.verbose or options.json or (not options.files and sys.stdin.isatty())
    outcomes = Outcomes(told, options.json)
    status = 0
    try:
        _send_all(options, source, _lines(options, source, separator), outcomes)
    except KeyboardInterrupt:
        status = INTERRUPTED
    if outcomes.produced < outcomes.read:
        print(f"{PROGRAM}: {outcomes.failures(status == INTERRUPTED)}", file=sys.stderr)
        return status or FAILED
    if not told:
        print(outcomes.summary(options.topic))
    return status


def _send_all(options: argparse.Namespace, source: LineInput, lines: Iterator[Line], outcomes: Outcomes) -> None:
    from barnabas.cli.data.clients import producer_client
    from barnabas.cli.data.stopping import Stopping
    from barnabas.cli.outages import outages_told, teller

    own = {"acks": options.acks, "compression.type": options.compression}
    with producer_client(options, own) as producer, outages_told(teller(PROGRAM)), Stopping() as stopping:
        _send(producer, options, source, lines, outcomes, stopping)
        _finish(producer, outcomes, stopping)


def _send(
    producer: "Producer",
    options: argparse.Namespace,
    source: LineInput,
    lines: Iterator[Line],
    outcomes: Outcomes,
    stopping: "Stopping",
) -> None:
    from barnabas.cli.data.progress import Progress
    from barnabas.errors import KafkaError

    topic, partition = options.topic, options.partition
    headers = _headers(options.header)
    with Progress("producing") as progress:
        while (line := stopping.next_of(lines)) is not None:
            key, value = line
            outcomes.read += 1
            # The first may wait for a broker that is not there: then there is nothing to finish.
            stopping.interruptible = outcomes.read == 1
            try:
                producer.send(topic, value, key, partition=partition, headers=headers, on_delivery=outcomes.on_delivery)
            except KafkaError as error:
                outcomes.fail(error, source.place)
            stopping.interruptible = False
            progress.add(len(value or b"") + len(key or b""))
            if stopping.asked or outcomes.failed:
                break


def _finish(producer: "Producer", outcomes: Outcomes, stopping: "Stopping") -> None:
    """Until all is acknowledged or has failed. Whoever has asked for the end is told what it waits for."""
    from barnabas.client.errors import ClientTimeoutError

    told = False
    while True:
        try:
            return producer.flush(PATIENCE_S)
        except ClientTimeoutError:
            if stopping.asked and not told:
                waiting = counted(outcomes.waiting, "record")
                print(f"{PROGRAM}: waiting for {waiting}; Ctrl-C again gives them up", file=sys.stderr, flush=True)
                told = True


def _lines(options: argparse.Namespace, source: LineInput, separator: bytes | None) -> Iterator[Line]:
    fixed = None if options.key is None else os.fsencode(options.key)
    for line in source:
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
    for name, _, _ in split:
        if not is_text(name):
            raise UsageError(f"-H: the name of a header is UTF-8 text, not {os.fsencode(name)!r}")
    return [(name, os.fsencode(value) if equals else None) for name, equals, value in split]


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
