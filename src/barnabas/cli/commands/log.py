"""`barnabas log dump` and `accept`: the files of a log. No broker is involved; each verb has a module of its own."""

from collections.abc import Sequence

from barnabas.cli.command import run
from barnabas.cli.commands.log_accept import ACCEPT
from barnabas.cli.dump.command import DUMP


def main(arguments: Sequence[str]) -> int:
    return run("log", "Files of a log: segments, indexes, snapshots.", VERBS, arguments)


VERBS = (DUMP, ACCEPT)
