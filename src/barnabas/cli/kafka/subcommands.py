"""Kafka's tools that have sub-commands (`kafka-transactions.sh list`), declared like Barnabas's own verbs.

    COMMANDS = (Command("list", "list transactions", list_arguments, with_admin(_list)), ...)
    main = tool_main("kafka-transactions.sh", "This tool is used to ...", COMMANDS)

Flags for the connection go before the sub-command or after it. Exit status: 0, or 1 for any failure.
Nothing here imports the clients: `--help` must not wait for them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, NoReturn

from barnabas.cli.command import Command, Refused
from barnabas.cli.exit_status import FAILED, run_program
from barnabas.cli.kafka.failures import plain_failure
from barnabas.cli.kafka.flags import KAFKA_VERSION, java_words

if TYPE_CHECKING:
    from barnabas.client.admin import Admin


class Parser(argparse.ArgumentParser):
    """Python's, with Kafka's exit status for wrong use."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: error: {message}\n")


def tool_main(
    program: str, description: str, commands: Sequence[Command[Any]]
) -> Callable[[Sequence[str] | None], int]:
    """The entry point of a tool."""

    def main(arguments: Sequence[str] | None = None) -> int:
        words = java_words(sys.argv[1:] if arguments is None else arguments)
        return run_program(program, lambda: _run(_parser(program, description, commands), words), plain_failure)

    return main


def _run(parser: Parser, words: list[str]) -> int | None:
    if not words:
        parser.print_help(sys.stderr)
        return FAILED
    options = parser.parse_args(words)
    status: int | None = options.call(options)
    return status


def _parser(program: str, description: str, commands: Sequence[Command[Any]]) -> Parser:
    parser = Parser(prog=program, description=description, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=KAFKA_VERSION, help="the version of Kafka it is like")
    _add_connection(parser, None)
    children = parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)
    for command in commands:
        child = children.add_parser(command.name, help=command.summary, description=command.summary, allow_abbrev=False)
        _add_connection(child, argparse.SUPPRESS)
        command.arguments(child)
        child.set_defaults(call=command.call)
    return parser


def _add_connection(parser: Parser, default: str | None) -> None:
    group = parser.add_argument_group("connection")
    group.add_argument("--bootstrap-server", "-b", metavar="HOST:PORT", default=default, help="brokers to connect to")
    group.add_argument("--bootstrap-controller", "-C", metavar="HOST:PORT", default=default, help="controllers instead")
    group.add_argument(
        "--command-config",
        "--admin.config",
        metavar="FILE",
        default=default,
        help="a file of properties for the client: TLS, SASL, time-outs",
    )


@contextmanager
def admin_of_options(options: argparse.Namespace) -> Iterator[Admin]:
    """An error of the cluster that the command does not expect ends it with the text of Kafka's exception."""
    from barnabas.cli.kafka.connection import admin_of, kafka_exception, properties_file
    from barnabas.errors import KafkaError

    config = properties_file(options.command_config) if options.command_config else {}
    if options.bootstrap_server and options.bootstrap_controller:
        raise Refused("You cannot specify both --bootstrap-controller and --bootstrap-server.")
    address = options.bootstrap_server or options.bootstrap_controller
    if not address and "bootstrap.servers" not in config:
        raise Refused("You must specify either --bootstrap-controller or --bootstrap-server.")
    if address:
        config["bootstrap.servers"] = address
    try:
        with admin_of(config) as admin:
            yield admin
    except KafkaError as error:
        raise Refused(kafka_exception(error)) from error


def with_admin(
    call: Callable[[Admin, argparse.Namespace], int | None],
) -> Callable[[argparse.Namespace], int | None]:
    """The call with an admin client made from the options, and closed after it."""

    def connected(options: argparse.Namespace) -> int | None:
        with admin_of_options(options) as admin:
            return call(admin, options)

    return connected


def print_table(headers: Sequence[str], rows: Iterable[Sequence[object]]) -> None:
    """As Kafka's newer tools print tables: columns as wide as their widest cell, a tab after each."""
    lines = [list(headers), *([str(cell) for cell in row] for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(headers))]
    for line in lines:
        print("".join(f"{cell:<{width}}\t" for cell, width in zip(line, widths)))
