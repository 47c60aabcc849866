"""`barnabas log accept`: a person accepts what a damaged log has lost. Works on the files of a stopped broker.

Exit status: 0 accepted, and what is lost is printed; 1 not done (in use, no such partition, not damaged); 2 wrong use.
"""

import argparse
import json
import time
from collections.abc import Sequence

from barnabas.cli.command import FAILED, OK, UsageError, add_json_argument
from barnabas.cli.command_parser import CommandParser
from barnabas.cli.examples import examples_text
from barnabas.cli.standard_output import complain


def parser() -> CommandParser:
    parser = CommandParser(
        prog="barnabas log accept",
        description="Accepts that a partition which is refused as damaged has lost records. Its log is cut where\n"
        "the damage begins, and the broker serves it at its next start. The broker must be stopped.",
        epilog=examples_text("log accept"),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("directory", metavar="DIR", help="the log directory (--data-dir of the broker)")
    parser.add_argument("partition", metavar="PARTITION", help="the partition as its folder is called, like orders-0")
    add_json_argument(parser)
    return parser


def main(arguments: Sequence[str]) -> int:
    options = parser().parse(arguments)
    from barnabas.errors import StorageError
    from barnabas.storage.acceptance import accept_damaged_log
    from barnabas.storage.file_names import parse_folder_name

    topic_partition = parse_folder_name(options.partition)
    if topic_partition is None:
        raise UsageError(f"{options.partition}: expected TOPIC-PARTITION, like orders-0")
    try:
        accepted = accept_damaged_log(options.directory, topic_partition, time.time_ns() // 1_000_000)
    except StorageError as error:
        complain(f"barnabas log accept: {error}")
        return FAILED
    _show(options, accepted)
    return OK


def _show(options: argparse.Namespace, accepted: object) -> None:
    from barnabas.storage.acceptance import Acceptance

    assert isinstance(accepted, Acceptance)
    first, following = accepted.first_lost_offset, accepted.next_kept_offset
    if options.json:
        lost = None if first == following else {"from": first, "to": following - 1}
        value = {
            "partition": options.partition,
            "reason": accepted.reason,
            "lost": lost,
            "log_start_offset": accepted.log_start_offset,
            "log_end_offset": accepted.log_end_offset,
        }
        print(json.dumps(value))
        return
    print(f"{options.partition} was refused: {accepted.reason}")
    if first == following:
        print("no offset is lost")
    else:
        print(f"lost: offsets {first} to {following - 1}, at most {following - first} records")
    start, end = accepted.log_start_offset, accepted.log_end_offset
    kept = f"offsets {start} to {end - 1}" if end > start else "no records"
    print(f"the log has {kept}; the next record gets offset {end}. The broker serves it at its next start.")
