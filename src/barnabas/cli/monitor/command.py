"""`barnabas monitor`: a live table of brokers, topics, groups, rates and lag, until a key or Ctrl-C ends it.

The looking is the console's (`console/collector`), so numbers mean the same there and here; the base install is enough.
"""

import argparse
import logging

from barnabas.cli.command import Command, UsageError, command_main
from barnabas.cli.numbers import seconds

LISTS = ("topics", "groups", "brokers")
NOTES = """\
keys:
  q quit    Tab next list    s sort by the next column    r reverse    / filter (Enter, Esc)
  i internal topics    up, down, PgUp, PgDn    space pause

examples:
  barnabas monitor                                  the cluster on localhost:9092
  barnabas monitor --show groups --sort lag
  barnabas monitor --once --json | jq .groups
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--show", choices=LISTS, default="topics", help="which list comes first (default topics)")
    parser.add_argument("--sort", metavar="COLUMN", default="", help="such as name, rate, lag, lag_seconds, size_bytes")
    parser.add_argument("--filter", metavar="TEXT", default="", help="only names that contain it")
    parser.add_argument("--internal", action="store_true", help="internal topics, too")
    parser.add_argument("--interval", metavar="SECONDS", type=seconds, default=1.0, help="between pictures (default 1)")
    parser.add_argument("--once", action="store_true", help="one picture, with rates over two seconds, and end")
    parser.add_argument("--json", action="store_true", help="that picture as JSON for programs")


def monitor(options: argparse.Namespace) -> int:
    import asyncio

    from barnabas.cli.connection import client_config
    from barnabas.cli.log_level import log_level
    from barnabas.cli.monitor.monitor import Monitor
    from barnabas.cli.monitor.picture import Choice, sorts_of

    if options.sort and options.sort not in sorts_of(options.show):
        raise UsageError(f"--sort {options.sort}: of {options.show} there are {', '.join(sorts_of(options.show))}")
    if options.json and not options.once:
        raise UsageError("--json: add --once")
    choice = Choice(options.show, options.sort, filter=options.filter, internal=options.internal)
    # What a client would log is in the picture; on top of it, it would spoil it.
    with log_level(logging.DEBUG if options.verbose else None):
        return asyncio.run(Monitor(client_config(options), options, choice).run())


COMMAND = Command(
    "monitor", "watch brokers, topics, groups and lag in the terminal", add_arguments, monitor, notes=NOTES
)
main = command_main(COMMAND)
