"""Nouns and verbs: how a command is declared, parsed, run, and how it fails.

    VERBS = (Verb("list", "all topics", list_arguments, list_topics), ...)

    def main(arguments):
        return run("topic", "Topics of a cluster.", VERBS, arguments)

Exit status: 0 done; 1 the cluster said no, or cannot be reached (one line on stderr says why and what to do); 2 wrong
use. Nothing here imports the clients: `--help` must not wait for them. A verb's function imports what it needs.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from barnabas.cli.command_parser import CommandParser
from barnabas.cli.examples import examples_text
from barnabas.cli.numbers import NumberError, seconds
from barnabas.cli.standard_output import complain, seeing_output_out

if TYPE_CHECKING:
    from barnabas.errors import KafkaError

OK, FAILED, USAGE_ERROR, INTERRUPTED = 0, 1, 2, 130
DEFAULT_BOOTSTRAP = "localhost:9092"
# What the clients call a thing, and what it is called here.
_WORDS = {
    "ask for if_not_exists": "add --if-not-exists",
    "list_groups shows": "`barnabas group list` shows",
    "list_transactions shows": "`barnabas transaction list` shows",
    "list_offsets shows": "`barnabas topic offsets` shows",
    "describe_cluster shows": "`barnabas cluster describe` shows",
    "describe_producers shows": "`barnabas transaction producers` shows",
}


class Verb(NamedTuple):
    """`run` gets the parsed options and gives the exit status (None: done)."""

    name: str
    summary: str
    add_arguments: Callable[[argparse.ArgumentParser], None]
    run: Callable[[argparse.Namespace], int | None]


class UsageError(Exception):
    """The options contradict each other or a value makes no sense; nothing was done."""


def run(noun: str, description: str, verbs: Sequence[Verb], arguments: Sequence[str]) -> int:
    options = parser_of(noun, description, verbs).parse(arguments)
    verb: Verb = options.verb
    return guarded(f"barnabas {noun} {verb.name}", lambda: verb.run(options))


def guarded(program: str, work: Callable[[], int | None]) -> int:
    """Do the work and turn what it raises into a line and an exit status."""
    return seeing_output_out(program, lambda: _status(program, work))


def _status(program: str, work: Callable[[], int | None]) -> int:
    try:
        return work() or OK
    except (UsageError, NumberError) as error:
        return _fail(program, error, USAGE_ERROR)
    except KeyboardInterrupt:
        return INTERRUPTED
    except Exception as error:
        from barnabas.errors import KafkaError

        if isinstance(error, KafkaError):
            return _fail(program, _in_words(error), USAGE_ERROR if isinstance(error, ValueError) else FAILED)
        raise


def default_bootstrap() -> str:
    """Where to connect to if neither a flag nor a file says it."""
    return os.environ.get("BARNABAS_BOOTSTRAP") or DEFAULT_BOOTSTRAP


def add_connection_arguments(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument(
        "-b",
        "--bootstrap-server",
        metavar="HOST:PORT",
        help=f"brokers to connect to (default bootstrap.servers of the options below, $BARNABAS_BOOTSTRAP,"
        f" {DEFAULT_BOOTSTRAP})",
    )
    group.add_argument("--command-config", metavar="FILE", help="client options as Kafka's properties (TLS, SASL, ...)")
    group.add_argument(
        "-X",
        metavar="KEY=VALUE",
        dest="client_options",
        action="append",
        default=[],
        help="one client option by Kafka's name (repeatable)",
    )
    group.add_argument("-v", "--verbose", action="store_true", help="say on stderr what the client does")
    group.add_argument("--timeout", metavar="SECONDS", type=seconds, help="give up after this time (default 60)")


def add_json_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--json", action="store_true", help="print JSON for programs instead of a table")


def key_values(pairs: Sequence[str], option: str) -> dict[str, str]:
    """`a=1` pairs as a mapping; the value may hold further equal signs."""
    wrong = [pair for pair in pairs if "=" not in pair]
    if wrong:
        raise UsageError(f"{option} {wrong[0]}: expected KEY=VALUE")
    return dict(pair.split("=", 1) for pair in pairs)


def check_words(given: Sequence[str], known: Any, option: str) -> None:
    """Words of an enumeration that takes whatever it does not know as its UNKNOWN."""
    wrong = [word for word in given if known(word) is known.UNKNOWN]
    if wrong:
        words = ", ".join(each for each in known if each is not known.UNKNOWN)
        raise UsageError(f"{option} {wrong[0]}: expected one of {words}")


def parser_of(noun: str, description: str, verbs: Sequence[Verb]) -> CommandParser:
    parser = CommandParser(prog=f"barnabas {noun}", description=description)
    words = parser.add_subparsers(metavar="VERB", required=True)
    for verb in verbs:
        child = words.add_parser(
            verb.name,
            help=verb.summary,
            description=_sentence(verb.summary),
            epilog=examples_text(f"{noun} {verb.name}"),
            formatter_class=argparse.RawDescriptionHelpFormatter,
        )
        verb.add_arguments(child)
        add_connection_arguments(child)
        child.set_defaults(verb=verb)
    return parser


def _sentence(summary: str) -> str:
    return f"{summary[0].upper()}{summary[1:]}."


def _in_words(error: "KafkaError") -> str:
    """In one line, whatever the number of failures, with the names that things have on the command line."""
    errors: dict[object, KafkaError] = getattr(error, "errors", {})
    text = "; ".join(each.message for each in errors.values()) or error.message
    for name, word in _WORDS.items():
        text = text.replace(name, word)
    return " ".join(text.split())


def _fail(program: str, reason: object, status: int) -> int:
    complain(f"{program}: {reason}")
    return status
