"""`barnabas`: noun, then verb. This file knows the words and nothing else; each command lives in its own module."""

import importlib
import sys
from collections.abc import Sequence

from barnabas.cli.standard_output import complain, seeing_output_out

COMMANDS = {
    "server": ("barnabas.cli.server", "run a broker"),
    "topic": ("barnabas.cli.commands.topic", "create, list, describe, alter, delete topics; offsets; records"),
    "group": ("barnabas.cli.commands.group", "groups, their members, offsets and lag; reset offsets"),
    "config": ("barnabas.cli.commands.config", "settings of topics, brokers and groups"),
    "cluster": ("barnabas.cli.commands.cluster", "brokers and controller, and whether all is well"),
    "produce": ("barnabas.cli.commands.produce", "send lines of stdin or files to a topic"),
    "consume": ("barnabas.cli.commands.consume", "print records of topics"),
    "partition": ("barnabas.cli.commands.partition", "where partitions live and who leads them"),
    "transaction": ("barnabas.cli.commands.transaction", "transactions, their producers, and what hangs"),
    "acl": ("barnabas.cli.commands.acl", "rules that say who may do what"),
    "user": ("barnabas.cli.commands.user", "users with a password, and quotas"),
    "perf": ("barnabas.cli.commands.perf", "measure: produce, consume, latency"),
    "pipeline": ("barnabas.cli.commands.pipeline", "the warehouse pipeline on Spark, and sample traffic for it"),
    "log": ("barnabas.cli.commands.log", "show what stands in the files of a log; accept the loss of a damaged one"),
    "completion": ("barnabas.cli.commands.completion", "what makes a shell complete these words"),
}

USAGE_ERROR = 2


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    return seeing_output_out("barnabas", lambda: _run(words))


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return 0 if words else USAGE_ERROR
    if words[0] in ("-V", "--version"):
        from barnabas import __version__

        print(f"barnabas {__version__}")
        return 0
    row = COMMANDS.get(words[0])
    if row is None:
        import difflib

        near = difflib.get_close_matches(words[0], COMMANDS, n=1)
        hint = f" Did you mean {near[0]}?" if near else ""
        complain(f"barnabas: there is no command {words[0]!r}.{hint} See barnabas --help.")
        return USAGE_ERROR
    status: int = importlib.import_module(row[0]).main(words[1:])
    return status


def _help() -> str:
    width = max(len(name) for name in COMMANDS)
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    return f"usage: barnabas COMMAND [options]\n\ncommands:\n{rows}\n\nbarnabas COMMAND --help tells more."
