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

from barnabas.cli.command_parser import CommandParser
from barnabas.cli.standard_output import seeing_output_out


def main(arguments: Sequence[str]) -> int:
    """`barnabas log dump`."""
    options = parser().parse(arguments)
    options.files = options.paths
    return _run(options, as_kafka=False)


def parser() -> CommandParser:
    parser = CommandParser(
        prog="barnabas log dump",
        description="Shows what stands in the files of a log: segments, indexes, snapshots.",
    )
    parser.add_argument(
        "paths", metavar="FILE", nargs="+", type=Path, help=".log .index .timeindex .txnindex .snapshot"
    )
    parser.add_argument("--json", action="store_true", help="one JSON object a batch, record or entry")
    _add_shared(parser)
    return parser


def kafka_main(arguments: Sequence[str] | None = None) -> int:
    """`kafka-dump-log.sh`."""
    return seeing_output_out("kafka-dump-log.sh", lambda: _run(_kafka_parser().parse_args(arguments), as_kafka=True))


def _kafka_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="kafka-dump-log.sh",
        description="This tool helps to parse a log file and dump its contents to the console.",
        allow_abbrev=False,
    )
    parser.add_argument(
        "--files", required=True, type=lambda word: [Path(each.strip()) for each in word.split(",") if each.strip()]
    )
    parser.set_defaults(json=False)
    _add_shared(parser)
    return parser


def _add_shared(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--print-data-log", action="store_true", help="print keys and values")
    parser.add_argument("--deep-iteration", action="store_true", help="look at every record, not only at batches")
    parser.add_argument("--verify-index-only", action="store_true", help="check the indexes without printing them")
    parser.add_argument("--index-sanity-check", action="store_true", help="the check that a broker makes at its start")
    parser.add_argument("--max-message-size", type=int, default=5 * 1024 * 1024, help=argparse.SUPPRESS)
    parser.add_argument("--max-bytes", type=int, help="read at most this much of a segment")
    parser.add_argument("--key-decoder-class", metavar="CLASS", help="StringDecoder, IntegerDecoder, LongDecoder, ...")
    parser.add_argument("--value-decoder-class", metavar="CLASS", help="the same for values")
    parser.add_argument("--offsets-decoder", action="store_true", help="read as __consumer_offsets")
    parser.add_argument("--transaction-log-decoder", action="store_true", help="read as __transaction_state")
    parser.add_argument("--cluster-metadata-decoder", action="store_true", help="read as Kafka's __cluster_metadata")
    parser.add_argument("--skip-record-metadata", action="store_true", help="keys and values alone")


def _run(options: argparse.Namespace, *, as_kafka: bool) -> int:
    from barnabas.cli.dump.dumping import dump

    return dump(options, as_kafka=as_kafka)
