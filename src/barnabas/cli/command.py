"""How Barnabas's commands are declared, parsed, called and rendered, and how they fail.

    VERBS = (Command("list", "list topics", list_arguments, with_admin(list_topics), render_topics), ...)
    main = noun_main("topic", "Topics of a cluster.", VERBS)

    COMMAND = Command("produce", "send lines of stdin or files to a topic", add_arguments, produce)
    main = command_main(COMMAND)

`arguments` adds a command's options to its parser, `call` does the work and returns a result, `render` turns that into
an `Output`: text for people, a document for --json. Kafka's commands with sub-commands are declared with the same class
(kafka/subcommands.py), those with flags alone with `Tool` (kafka/flags.py).

Nothing here imports the clients: `--help` must not wait for them. A command's functions import what they need.
"""

import argparse
import os
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, TypeVar

from barnabas.cli.command_parser import CommandParser
from barnabas.cli.examples import examples_text
from barnabas.cli.exit_status import FAILED, USAGE_ERROR, Failure, complain, run_program
from barnabas.cli.numbers import NumberError, seconds
from barnabas.cli.output import Output, show

if TYPE_CHECKING:
    from barnabas.client.admin import Admin
    from barnabas.errors import KafkaError

Result = TypeVar("Result")
DEFAULT_BOOTSTRAP = "localhost:9092"
# What to do about an error, by its code: the clients name methods, the commands name commands and options.
_HINTS = {
    "TOPIC_ALREADY_EXISTS": "add --if-not-exists if that is fine",
    "GROUP_ID_NOT_FOUND": "`barnabas group list` shows those there are",
    "TRANSACTIONAL_ID_NOT_FOUND": "`barnabas transaction list` shows those there are",
    "DELEGATION_TOKEN_NOT_FOUND": "`barnabas token list` shows those there are",
    "OFFSET_OUT_OF_RANGE": "`barnabas topic offsets` shows the earliest and latest",
    "BROKER_ID_NOT_REGISTERED": "`barnabas cluster describe` shows the brokers",
    "TRANSACTION_COORDINATOR_FENCED": "`barnabas transaction producers` shows the coordinator epoch to use",
}


class Command(NamedTuple, Generic[Result]):
    """A noun without verbs, a verb of one, or a sub-command of a Kafka tool.

    Without `render`, `call` prints and returns the status.
    """

    name: str
    summary: str
    arguments: Callable[[argparse.ArgumentParser], None]
    call: Callable[[argparse.Namespace], Result]
    render: Callable[[argparse.Namespace, Result], Output] | None = None
    partial: bool = False
    """Where a call about several names fails for some of them, those that succeeded are rendered before the failure."""
    connects: bool = True
    """Whether it has the options of a connection."""
    description: str = ""
    """For --help; the summary unless there is more to say."""
    notes: str = ""
    """For the end of --help, before the examples."""
    like_getopt: bool = False
    """Whether one-letter options take their values as getopt does (data/short_options.py)."""
    may_be_bytes: tuple[str, ...] = ()
    """Options whose values need not be UTF-8."""


class UsageError(Exception):
    """The options contradict each other or a value makes no sense; nothing was done."""


class Refused(Exception):
    """The state of the cluster does not allow it; nothing was done."""


def no_arguments(parser: argparse.ArgumentParser) -> None:
    """For commands without options of their own."""


def with_admin(call: "Callable[[Admin, argparse.Namespace], Result]") -> Callable[[argparse.Namespace], Result]:
    """The same call with an admin client made from the options, and closed after it."""

    def connected(options: argparse.Namespace) -> Result:
        from barnabas.cli.connection import admin_client

        with admin_client(options) as admin:
            return call(admin, options)

    return connected


def noun_main(noun: str, description: str, commands: Sequence[Command[Any]]) -> Callable[[Sequence[str]], int]:
    """The entry point of a noun with verbs."""

    def main(arguments: Sequence[str]) -> int:
        options = parser_of(noun, description, commands).parse(arguments)
        program = f"barnabas {noun} {options.command.name}"
        return run_own(program, lambda: _call(program, options.command, options))

    return main


def command_main(command: Command[Any], program: str | None = None) -> Callable[[Sequence[str]], int]:
    """The entry point of a single command."""
    program = program or f"barnabas {command.name}"

    def main(arguments: Sequence[str]) -> int:
        parser = single_parser(command, program)
        if command.like_getopt:
            from barnabas.cli.data.short_options import getopt_words

            arguments = getopt_words(parser, arguments)
        options = parser.parse(arguments)
        return run_own(program, lambda: _call(program, command, options))

    return main


def run_own(program: str, work: Callable[[], int | None]) -> int:
    """Run the work of one of Barnabas's own commands."""
    return run_program(program, work, lambda error: _failure(program, error))


def _call(program: str, command: Command[Any], options: argparse.Namespace) -> int | None:
    if command.render is None:
        status: int | None = command.call(options)
        return status
    try:
        result = command.call(options)
    except Exception as error:
        succeeded = getattr(error, "results", None) if command.partial else None
        if succeeded:
            show(command.render(options, succeeded), as_json=options.json)
        raise
    output = command.render(options, result)
    show(output, as_json=options.json)
    if output.complaint:
        complain(f"{program}: {output.complaint}")
    return output.status


def _failure(program: str, error: Exception) -> Failure | None:
    if isinstance(error, UsageError | NumberError):
        return Failure(f"{program}: {error}", USAGE_ERROR)
    if isinstance(error, Refused):
        return Failure(f"{program}: {error}")
    from barnabas.errors import KafkaError

    if isinstance(error, KafkaError):
        return Failure(f"{program}: {error_text(error)}", USAGE_ERROR if isinstance(error, ValueError) else FAILED)
    return None


def error_text(error: "KafkaError") -> str:
    """One line, however many failures there are, with the hints of the command line."""
    errors: dict[object, KafkaError] = getattr(error, "errors", None) or {None: error}
    return " ".join("; ".join(map(_one_error, errors.values())).split())


def _one_error(error: "KafkaError") -> str:
    hint = _HINTS.get(error.code.name) if error.hint else None
    return f"{error.reason} ({hint})" if hint else error.message


def default_bootstrap() -> str:
    """The address if neither a flag nor a file names one."""
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
    group.add_argument("-v", "--verbose", action="store_true", help="log on stderr what the client does")
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
    """For an enumeration that maps every unknown word to its UNKNOWN."""
    wrong = [word for word in given if known(word) is known.UNKNOWN]
    if wrong:
        words = ", ".join(each for each in known if each is not known.UNKNOWN)
        raise UsageError(f"{option} {wrong[0]}: expected one of {words}")


def parser_of(noun: str, description: str, commands: Sequence[Command[Any]]) -> CommandParser:
    parser = CommandParser(prog=f"barnabas {noun}", description=description)
    verbs = parser.add_subparsers(metavar="VERB", required=True)
    for command in commands:
        child = verbs.add_parser(command.name, help=command.summary, **_texts(f"{noun} {command.name}", command))
        _add_arguments(child, command)
        child.set_defaults(command=command)
    return parser


def single_parser(command: Command[Any], program: str | None = None) -> CommandParser:
    program = program or f"barnabas {command.name}"
    parser = CommandParser(prog=program, **_texts(program.removeprefix("barnabas "), command))
    _add_arguments(parser, command)
    return parser


def _texts(words: str, command: Command[Any]) -> dict[str, Any]:
    epilog = [text for text in (command.notes, examples_text(words)) if text]
    return {
        "description": command.description or f"{command.summary[0].upper()}{command.summary[1:]}.",
        "epilog": "\n".join(epilog) or None,
        "formatter_class": argparse.RawDescriptionHelpFormatter,
    }


def _add_arguments(parser: CommandParser, command: Command[Any]) -> None:
    parser.may_be_bytes = command.may_be_bytes
    command.arguments(parser)
    if command.render is not None:
        add_json_argument(parser)
    if command.connects:
        add_connection_arguments(parser)
