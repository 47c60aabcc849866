"""`barnabas log dump` and `accept`: the files of a log. No broker is asked; each verb has its own module."""

import argparse
from collections.abc import Sequence

from barnabas.cli.command import guarded
from barnabas.cli.command_parser import CommandParser


def main(arguments: Sequence[str]) -> int:
    if arguments and arguments[0] == "dump":
        # The dump reads the same files as the broker and imports its storage: only when it is asked for.
        from barnabas.cli.dump.command import main as dump

        return guarded("barnabas log dump", lambda: dump(arguments[1:]))
    if arguments and arguments[0] == "accept":
        from barnabas.cli.commands.log_accept import main as accept

        return guarded("barnabas log accept", lambda: accept(arguments[1:]))
    parser().parse(arguments)
    return 0


def parser() -> CommandParser:
    parser = CommandParser(prog="barnabas log", description="Files of a log: segments, indexes, snapshots.")
    words = parser.add_subparsers(metavar="VERB", required=True)
    words.add_parser("dump", help="show what stands in the files of a log", add_help=False)
    words.add_parser("accept", help="accept the loss of a log that is refused as damaged", add_help=False)
    return parser


def verb_parsers() -> dict[str, argparse.ArgumentParser]:
    """For the completion of words."""
    from barnabas.cli.commands.log_accept import parser as accept_parser
    from barnabas.cli.dump.command import parser as dump_parser

    return {"dump": dump_parser(), "accept": accept_parser()}
