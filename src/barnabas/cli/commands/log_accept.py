"""`barnabas log accept`: a person accepts what a damaged log has lost. Works on the files of a stopped broker.

Exit status: 0 accepted, and what is lost is printed; 1 not done (in use, no such partition, not damaged); 2 wrong use.
"""

import argparse
import time
from typing import TYPE_CHECKING

from barnabas.cli.command import Command, Refused, UsageError
from barnabas.cli.output import Output

if TYPE_CHECKING:
    from barnabas.storage.acceptance import Acceptance


def arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("directory", metavar="DIR", help="the log directory (--data-dir of the broker)")
    parser.add_argument("partition", metavar="PARTITION", help="the partition as its folder is called, like orders-0")


def accept(options: argparse.Namespace) -> "Acceptance":
    from barnabas.errors import StorageError
    from barnabas.storage.acceptance import accept_damaged_log
    from barnabas.storage.file_names import parse_folder_name

    topic_partition = parse_folder_name(options.partition)
    if topic_partition is None:
        raise UsageError(f"{options.partition}: expected TOPIC-PARTITION, like orders-0")
    try:
        return accept_damaged_log(options.directory, topic_partition, time.time_ns() // 1_000_000)
    except StorageError as error:
        raise Refused(str(error)) from None


def render_accepted(options: argparse.Namespace, accepted: "Acceptance") -> Output:
    first, following = accepted.first_lost_offset, accepted.next_kept_offset
    start, end = accepted.log_start_offset, accepted.log_end_offset
    document = {
        "partition": options.partition,
        "reason": accepted.reason,
        "lost": None if first == following else {"from": first, "to": following - 1},
        "log_start_offset": start,
        "log_end_offset": end,
    }
    lost = f"lost: offsets {first} to {following - 1}, at most {following - first} records"
    kept = f"offsets {start} to {end - 1}" if end > start else "no records"
    return Output(
        document,
        [
            f"{options.partition} was refused: {accepted.reason}",
            "no offset is lost" if first == following else lost,
            f"the log has {kept}; the next record gets offset {end}. The broker serves it at its next start.",
        ],
    )


ACCEPT = Command(
    "accept",
    "accept the loss of a log that is refused as damaged",
    arguments,
    accept,
    render_accepted,
    connects=False,
    description="Accepts that a partition which is refused as damaged has lost records. Its log is cut where the\n"
    "damage begins, and the broker serves it at its next start. The broker must be stopped.",
)
