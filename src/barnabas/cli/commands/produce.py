"""`barnabas produce`: lines of stdin or of files become records.

Exit status 1 if a record was not acknowledged: nothing more is sent after the first failure. Ctrl-C sends what was
read and ends; a second one gives up what is on its way. Either way it is said how many records were not produced. A
file that was not read to its end is a failure too: the last line says how far it went, and the status is 130.

Lines are read, sent and counted in blocks, so that a line costs little more than its `send`.
"""

import argparse
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import repeat
from typing import TYPE_CHECKING, Any

from barnabas.cli.command import Command, UsageError, add_json_argument, command_main
from barnabas.cli.command_parser import is_text
from barnabas.cli.data.escapes import unescaped
from barnabas.cli.data.line_input import LineInput
from barnabas.cli.exit_status import FAILED, INTERRUPTED
from barnabas.cli.numbers import partition
from barnabas.cli.output import counted
from barnabas.cli.times import duration_ms, milliseconds

if TYPE_CHECKING:
    from barnabas.client.producer import Producer
    from barnabas.client.producer.fast_path import Delivery
    from barnabas.stop_signals import StopRequest

PROGRAM = "barnabas produce"
PATIENCE_S = 0.5
Headers = list[tuple[str, bytes | None]]
Record = tuple[bytes | None, bytes | None]
Send = Callable[[bytes | None, bytes | None], "Delivery"]


def add_arguments(parser: argparse.ArgumentParser) -> None:
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
    due = parser.add_mutually_exclusive_group()
    due.add_argument("--deliver-at", metavar="TIME", help="deliver the records then: 2026-01-31T12:00 (UTC), or ms")
    due.add_argument("--deliver-after", metavar="TIME", help="deliver the records after this time: 90s, 15m, 2h, 7d")
    add_json_argument(parser)


class Outcomes:
    """The outcomes of the records. `on_delivery` is called on the I/O thread, where each record is reported."""

    def __init__(self, reported: bool, as_json: bool) -> None:
        from barnabas.cli.data.deliveries import Deliveries

        self.reported = reported
        """Each record by a line; else they are counted, which is much cheaper."""
        self._as_json = as_json
        self._unreported = Deliveries()
        self._first: Delivery | None = None
        self._produced = 0
        self._failed = 0
        self._error: Exception | None = None
        self._refused: Exception | None = None
        self.read = 0
        self.place = ""
        """Where the last record stands that the producer was given."""

    @property
    def produced(self) -> int:
        return self._produced + self._unreported.acknowledged

    @property
    def failed(self) -> int:
        return self._failed + self._unreported.failed

    @property
    def was_refused(self) -> bool:
        return self._refused is not None

    @property
    def waiting(self) -> int:
        return self.read - self.produced - self.failed

    def add(self, sent: "list[Delivery]") -> None:
        """A block was handed to the producer."""
        self.read += len(sent)
        if not self.reported:
            self._first = self._first or (sent[0] if sent else None)
            self._unreported.add(sent)
            self._unreported.settle()

    def settle(self) -> None:
        self._unreported.settle()

    def refuse(self, error: Exception) -> None:
        """The producer did not take the record after those that were added."""
        self.read += 1
        self._failed += 1
        self._refused = error

    def on_delivery(self, delivery: "Delivery") -> None:
        error = delivery.exception(0)
        if error is not None:
            self._failed += 1
            self._error = self._error or error
            return
        self._produced += 1
        print(_delivery_text(delivery, self._as_json), flush=True)

    def summary(self, topic: str) -> str:
        """One record is reported in full; many are counted."""
        if self.produced == 1 and self._first is not None:
            return _delivery_text(self._first, self._as_json)
        return f"Produced {self.produced} records to {topic}."

    def failures(self, interrupted: bool) -> str:
        lost = f"{self.read - self.produced} of {self.read} records were not produced"
        error = self._error or self._unreported.first_error
        if error is None and self._refused is not None and not interrupted:
            return f"{lost}: {self.place}: {_message(self._refused)}; nothing after it was sent"
        if error is None or interrupted:
            return f"{lost}: interrupted before a broker had them"
        return f"{lost}: {_message(error)}"


def produce(options: argparse.Namespace) -> int:
    if not options.topic:
        raise UsageError("a topic has a name")
    separator = None if options.key_separator is None else unescaped(options.key_separator)
    if separator == b"" or not options.delimiter:
        raise UsageError("a separator has at least one letter")
    source = LineInput(options.files, unescaped(options.delimiter))
    reported = options.verbose or options.json or (not options.files and sys.stdin.isatty())
    outcomes = Outcomes(reported, options.json)
    status = 0
    try:
        status = _send_all(options, source, separator, outcomes)
    except KeyboardInterrupt:
        status = INTERRUPTED
    outcomes.settle()
    if outcomes.produced < outcomes.read:
        print(f"{PROGRAM}: {outcomes.failures(status == INTERRUPTED)}", file=sys.stderr)
        return status or FAILED
    if status:
        produced = f"after {outcomes.place}, {counted(outcomes.produced, 'record')} produced"
        print(f"{PROGRAM}: interrupted {produced if outcomes.place else 'before the first record'}", file=sys.stderr)
    elif not reported:
        print(outcomes.summary(options.topic))
    return status


def _send_all(options: argparse.Namespace, source: LineInput, separator: bytes | None, outcomes: Outcomes) -> int:
    """Gives the exit status of whoever interrupted the reading of files; to interrupt stdin is how it usually ends."""
    from barnabas.cli.data.clients import producer_client
    from barnabas.cli.outages import outage_line, report_outages
    from barnabas.stop_signals import StopRequest

    own = {"acks": options.acks, "compression.type": options.compression}
    with producer_client(options, own) as producer, report_outages(outage_line(PROGRAM)), StopRequest() as stop:
        _send(producer, options, source, separator, outcomes, stop)
        _finish(producer, outcomes, stop)
        return stop.status if options.files and stop.requested else 0


def _send(
    producer: "Producer",
    options: argparse.Namespace,
    source: LineInput,
    separator: bytes | None,
    outcomes: Outcomes,
    stop: "StopRequest",
) -> None:
    from barnabas.cli.progress import Progress

    send = _sender(producer, options, outcomes)
    pieces = _pieces(source)
    with Progress("producing") as progress:
        while (piece := stop.next_of(pieces)) is not None:
            before, lines = piece
            # The first may wait for a broker that is not there: then there is nothing to finish.
            stop.interruptible = outcomes.read == 0
            sent = _send_block(send, _records(options, lines, separator), outcomes)
            stop.interruptible = False
            outcomes.place = source.place(before + sent + outcomes.was_refused)
            progress.add(sum(map(len, lines)), len(lines))
            if stop.requested or outcomes.failed:
                break


def _sender(producer: "Producer", options: argparse.Namespace, outcomes: Outcomes) -> Send:
    """`send(value, key)`, with what is the same for all records. What is not given is not passed: that is quicker."""
    same: dict[str, Any] = {} if options.partition is None else {"partition": options.partition}
    if headers := _headers(options.header):
        same["headers"] = headers
    if options.deliver_at is not None:
        same["deliver_at"] = milliseconds(options.deliver_at, "--deliver-at")
    if options.deliver_after is not None:
        same["deliver_after"] = duration_ms(options.deliver_after, "--deliver-after")
    if outcomes.reported:
        same["on_delivery"] = outcomes.on_delivery
    return partial(producer.send, options.topic, **same)


def _pieces(source: LineInput) -> Iterator[tuple[int, list[bytes]]]:
    """The very first line alone, then blocks; with the number of lines of the same block before them."""
    is_first = True
    for block in source:
        if is_first:
            yield 0, block[:1]
        if not is_first or block[1:]:
            yield int(is_first), block[1:] if is_first else block
        is_first = False


def _send_block(send: Send, records: Iterable[Record], outcomes: Outcomes) -> int:
    """How many records were handed to the producer; after one that it does not take, none."""
    from barnabas.errors import KafkaError

    sent: list[Delivery] = []
    add = sent.append
    try:
        for key, value in records:
            add(send(value, key))
    except KafkaError as error:
        outcomes.refuse(error)
    except KeyboardInterrupt:
        outcomes.read += 1
        raise
    finally:
        outcomes.add(sent)
    return len(sent)


def _finish(producer: "Producer", outcomes: Outcomes, stop: "StopRequest") -> None:
    """Until all is acknowledged or has failed. After Ctrl-C it reports what it waits for."""
    from barnabas.client.errors import ClientTimeoutError

    reported = False
    while True:
        try:
            return producer.flush(PATIENCE_S)
        except ClientTimeoutError:
            if stop.requested and not reported:
                outcomes.settle()
                waiting = counted(outcomes.waiting, "record")
                print(f"{PROGRAM}: waiting for {waiting}; Ctrl-C again gives them up", file=sys.stderr, flush=True)
                reported = True


def _records(options: argparse.Namespace, lines: list[bytes], separator: bytes | None) -> Iterable[Record]:
    """Key and value of each line."""
    fixed = None if options.key is None else os.fsencode(options.key)
    records: Iterable[Record] = zip(repeat(fixed), lines)
    if separator is not None:
        records = (
            (before, after) if found else (fixed, before)
            for before, found, after in (line.partition(separator) for line in lines)
        )
    if options.null:
        return ((key or fixed, value or None) for key, value in records)
    return records


def _headers(pairs: Sequence[str]) -> Headers | None:
    """`name=value`; a name alone has a null value."""
    if not pairs:
        return None
    split = [pair.partition("=") for pair in pairs]
    for name, _, _ in split:
        if not is_text(name):
            raise UsageError(f"-H: the name of a header is UTF-8 text, not {os.fsencode(name)!r}")
    return [(name, os.fsencode(value) if equals else None) for name, equals, value in split]


def _delivery_text(delivery: "Delivery", as_json: bool) -> str:
    metadata = delivery.result(0)
    if as_json:
        import json

        return json.dumps(metadata._asdict())
    return (
        f"Produced to partition {metadata.partition} at offset {metadata.offset} with timestamp {metadata.timestamp}."
    )


def _message(error: Exception) -> str:
    return " ".join(str(getattr(error, "message", error)).split())


COMMAND = Command(
    "produce",
    "send each line of stdin, or of files, to a topic as a record",
    add_arguments,
    produce,
    like_getopt=True,
    may_be_bytes=("key", "key_separator", "delimiter", "header"),
)
main = command_main(COMMAND)
