"""`barnabas`: noun, then verb. This file has the table of nouns and nothing else; each has a module of its own."""

import importlib
import sys
from collections.abc import Sequence

from barnabas.cli.command_parser import hint
from barnabas.cli.exit_status import OK, USAGE_ERROR, complain, run_and_flush

COMMANDS = {
    "server": ("barnabas.cli.server", "run a broker"),
    "up": ("barnabas.cli.up", "run the brokers of one machine: one, or a replicated cluster"),
    "console": ("barnabas.cli.commands.console", "serve the web page of a cluster"),
    "monitor": ("barnabas.cli.monitor.command", "watch a cluster in the terminal"),
    "plan": ("barnabas.cli.plan.command", "how many machines, partitions, disk and memory a load needs"),
    "topic": ("barnabas.cli.commands.topic", "create, list, describe, alter, delete topics; offsets; records"),
    "group": ("barnabas.cli.commands.group", "groups, their members, offsets and lag; reset offsets"),
    "config": ("barnabas.cli.commands.config", "settings of topics, brokers and groups"),
    "cluster": ("barnabas.cli.commands.cluster", "brokers and controller, and whether all is well"),
    "broker": ("barnabas.cli.commands.broker", "list brokers, drain one, take one out"),
    "produce": ("barnabas.cli.commands.produce", "send lines of stdin or files to a topic"),
    "consume": ("barnabas.cli.commands.consume", "print records of topics"),
    "delayed": ("barnabas.cli.commands.delayed", "delayed messages: what is pending, cancel one"),
    "mirror": ("barnabas.cli.mirror.command", "copy topics to another cluster, exactly once"),
    "partition": ("barnabas.cli.commands.partition", "where partitions live and who leads them"),
    "transaction": ("barnabas.cli.commands.transaction", "transactions, their producers, and what hangs"),
    "acl": ("barnabas.cli.commands.acl", "rules that say who may do what"),
    "user": ("barnabas.cli.commands.user", "users with a password, and quotas"),
    "token": ("barnabas.cli.commands.token", "delegation tokens: log in for a while without a password"),
    "certificate": ("barnabas.cli.commands.certificate", "make certificates for development"),
    "perf": ("barnabas.cli.commands.perf", "measure: produce, consume, latency"),
    "pipeline": ("barnabas.cli.commands.pipeline", "the warehouse pipeline on Spark, and sample traffic for it"),
    "log": ("barnabas.cli.commands.log", "show what the files of a log contain; accept the loss of a damaged one"),
    "completion": ("barnabas.cli.commands.completion", "what makes a shell complete these words"),
}

SWITCHES = ("-v", "--verbose")
CONNECTION_OPTIONS = ("-b", "--bootstrap-server", "--command-config", "-X", "--timeout", *SWITCHES)
EXAMPLES = """\
  barnabas server                                    a broker on 127.0.0.1:9092
  barnabas topic create orders -p 3
  echo hello | barnabas produce orders
  barnabas consume orders -o beginning -e
  barnabas -b kafka.example:9092 group describe billing"""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_and_flush("barnabas", lambda: _run(words))


def _run(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help", "help"):
        print(_help())
        return OK if words else USAGE_ERROR
    if words[0] in ("-V", "--version"):
        from barnabas import __version__
        from barnabas.records.codec import NATIVE

        print(f"barnabas {__version__} ({'native' if NATIVE else 'pure Python'} codec)")
        return OK
    before, words = _connection_options(words)
    if not words:
        complain("barnabas: a command is missing. See barnabas --help.")
        return USAGE_ERROR
    row = COMMANDS.get(words[0])
    if row is None:
        complain(f"barnabas: there is no command {words[0]!r}{hint(words[0], COMMANDS)}. See barnabas --help.")
        return USAGE_ERROR
    module = importlib.import_module(row[0])
    takes_verb = hasattr(module, "VERBS") and not hasattr(module, "COMMAND")
    verb = words[1:2] if before and takes_verb else []
    status: int = module.main([*verb, *before, *words[1 + len(verb) :]])
    return status


def _connection_options(words: list[str]) -> tuple[list[str], list[str]]:
    """Options about the connection that stand before the command, and the rest: `-b HOST topic list`."""
    taken: list[str] = []
    left = list(words)
    while left and (left[0].partition("=")[0] in CONNECTION_OPTIONS or left[0][:2] in ("-b", "-X")):
        word = left.pop(0)
        taken.append(word)
        is_whole = "=" in word if word.startswith("--") else len(word) > 2
        if word not in SWITCHES and not is_whole and left:
            taken.append(left.pop(0))
    return taken, left


def _help() -> str:
    width = max(len(name) for name in COMMANDS)
    rows = "\n".join(f"  {name:<{width}}  {text}" for name, (_, text) in COMMANDS.items())
    usage = "usage: barnabas [-b HOST:PORT] COMMAND [options]"
    more = "barnabas COMMAND --help shows its options, and examples."
    return f"{usage}\n\ncommands:\n{rows}\n\nexamples:\n{EXAMPLES}\n\n{more}"
