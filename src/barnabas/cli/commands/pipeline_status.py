"""`barnabas pipeline status`: lag and last batches of a pipeline."""

import argparse

from barnabas.cli.command import add_json_argument
from barnabas.cli.commands.pipeline_topics import DEFAULT_CHECKPOINT, DEFAULT_NAME, absolute
from barnabas.cli.output import print_json, print_table


def status_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--name", default=DEFAULT_NAME, help=f"of the query (default {DEFAULT_NAME})")
    parser.add_argument("--checkpoint", default=DEFAULT_CHECKPOINT, metavar="DIR", help="of the query, for its batches")
    add_json_argument(parser)


def status(options: argparse.Namespace) -> None:
    from barnabas.cli.connection import admin_client
    from barnabas.client.admin.types import OffsetSpec
    from barnabas.pipeline.progress import last_batches

    with admin_client(options) as admin:
        done = {tp: each.offset for tp, each in admin.list_group_offsets(options.name).items() if each is not None}
        ends = admin.list_offsets(dict.fromkeys(done, OffsetSpec.LATEST)) if done else {}
    rows = [(str(tp), done[tp], ends[tp].offset, ends[tp].offset - done[tp]) for tp in sorted(done)]
    batches = last_batches(absolute(options.checkpoint))
    if options.json:
        names = ("partition", "offset", "end", "lag")
        print_json({"partitions": [dict(zip(names, row)) for row in rows], "batches": batches})
        return
    print_table(["PARTITION", "OFFSET", "END", "LAG"], rows)
    if batches:
        print()
        columns = ("batch", "at", "rows", "seconds", "rows_per_second")
        print_table(
            ["BATCH", "AT", "ROWS", "SECONDS", "ROWS/S"], [[each.get(name) for name in columns] for each in batches]
        )
