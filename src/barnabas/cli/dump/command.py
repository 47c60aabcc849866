"""The command line of the dump: `barnabas log dump FILE...` and `kafka-dump-log.sh --files ...`.

Both print Kafka's lines; `barnabas log dump --json` prints one JSON object for each batch, record or entry. Exit status
1 means that something does not fit: an index and its segment, offsets that do not follow each other, a CRC, bytes after
the last batch, a batch or a file that cannot be read. Under Kafka's name it is as with Kafka: 1 only for the last two.
The words only: what is done is in dumping.py, imported when the words are understood, so that --help need not wait for
the storage.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.command import Command
from barnabas.cli.kafka.flags import Flag, Options, Tool, integer

SHARED = (
    Flag("print-data-log", "print keys and values"),
    Flag("deep-iteration", "look at every record, not only at batches"),
    Flag("verify-index-only", "check the indexes without printing them"),
    Flag("index-sanity-check", "the check that a broker makes at its start"),
    Flag("max-bytes", "read at most this much of a segment", "BYTES", integer),
    Flag("key-decoder-class", "StringDecoder, IntegerDecoder, LongDecoder, ...", "CLASS"),
    Flag("value-decoder-class", "the same for values", "CLASS"),
    Flag("offsets-decoder", "read as __consumer_offsets"),
    Flag("transaction-log-decoder", "read as __transaction_state"),
    Flag("cluster-metadata-decoder", "read as Kafka's __cluster_metadata"),
    Flag("skip-record-metadata", "keys and values alone"),
)
FILES = Flag("files", "the files to dump: .log .index .timeindex .txnindex .snapshot (required)", "FILE,...")
MAX_MESSAGE_SIZE = Flag("max-message-size", "taken for Kafka's sake; messages of any size are read", "BYTES", integer)
TOOL = Tool(
    "kafka-dump-log.sh",
    "This tool helps to parse a log file and dump its contents to the console, useful for debugging a seemingly corrupt"
    " log segment.",
    (FILES, MAX_MESSAGE_SIZE, *SHARED),
)


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "files", metavar="FILE", nargs="+", type=Path, help=".log .index .timeindex .txnindex .snapshot"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object per batch, record or entry")
    for flag in SHARED:
        if flag.value is None:
            parser.add_argument(f"--{flag.name}", action="store_true", help=flag.help)
        else:
            parser.add_argument(f"--{flag.name}", metavar=flag.value, type=flag.type, help=flag.help)


def kafka_main(arguments: Sequence[str] | None = None) -> int:
    """`kafka-dump-log.sh`."""
    return TOOL.run(arguments, lambda options: options.require("files"), _dump_as_kafka)


def _dump_as_kafka(given: Options) -> int:
    options = argparse.Namespace(json=False)
    options.files = [Path(each.strip()) for each in given.value("files").split(",") if each.strip()]
    given.value("max-message-size")  # checked, not used
    for flag in SHARED:
        value = given.has(flag.name) if flag.value is None else given.value(flag.name)
        setattr(options, flag.name.replace("-", "_"), value)
    return _dump(options, as_kafka=True)


def _dump(options: argparse.Namespace, *, as_kafka: bool) -> int:
    from barnabas.cli.dump.dumping import dump

    return dump(options, as_kafka=as_kafka)


DUMP = Command(
    "dump",
    "show what the files of a log contain",
    arguments,
    lambda options: _dump(options, as_kafka=False),
    connects=False,
    description="Shows what the files of a log contain: segments, indexes, snapshots.",
)
