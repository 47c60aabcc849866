"""The frame of Kafka's tools that have sub-commands (`kafka-transactions.sh list`).

    def main(arguments=None):
        return run(_parser(), arguments, _run)

Flags for the connection go before the sub-command or after it. Exit status: 0, or 1 for whatever went wrong.
Nothing here imports the clients: `--help` must not wait for them.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, NoReturn

from barnabas.cli.kafka.flags import FAILED, INTERRUPTED, KAFKA_VERSION, OK, WrongUse, java_words
from barnabas.cli.standard_output import seeing_output_out

if TYPE_CHECKING:
    from barnabas.client.admin import Admin

Subparsers = argparse._SubParsersAction


class Failed(Exception):
    """What went wrong, in the words that are printed."""


class Parser(argparse.ArgumentParser):
    """Python's, with Kafka's exit status for wrong use."""

    def error(self, message: str) -> NoReturn:
        self.print_usage(sys.stderr)
        self.exit(FAILED, f"{self.prog}: error: {message}\n")


def tool_parser(program: str, description: str) -> tuple[Parser, Subparsers[Parser]]:
    parser = Parser(prog=program, description=description, allow_abbrev=False)
    parser.add_argument("--version", action="version", version=KAFKA_VERSION, help="the version of Kafka it is like")
    _add_connection(parser, None)
    return parser, parser.add_subparsers(dest="command", metavar="COMMAND", required=True, parser_class=Parser)


def subcommand(commands: Subparsers[Parser], name: str, summary: str) -> Parser:
    parser = commands.add_parser(name, help=summary, description=summary, allow_abbrev=False)
    _add_connection(parser, argparse.SUPPRESS)
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


def run(parser: Parser, arguments: Sequence[str] | None, work: Callable[[argparse.Namespace], int | None]) -> int:
    words = java_words(sys.argv[1:] if arguments is None else arguments)
    return seeing_output_out(parser.prog, lambda: _status(parser, words, work))


def _status(parser: Parser, words: list[str], work: Callable[[argparse.Namespace], int | None]) -> int:
    if not words:
        parser.print_help(sys.stderr)
        return FAILED
    options = parser.parse_args(words)
    try:
        return work(options) or OK
    except (Failed, WrongUse) as error:
        print(error, file=sys.stderr)
        return FAILED
    except KeyboardInterrupt:
        return INTERRUPTED


@contextmanager
def admin_of_options(options: argparse.Namespace) -> Iterator[Admin]:
    """An unexpected refusal of the cluster ends the command with what Kafka's exception would say."""
    from barnabas.cli.kafka.connection import admin_of, kafka_exception, properties_file
    from barnabas.errors import KafkaError

    config = properties_file(options.command_config) if options.command_config else {}
    if options.bootstrap_server and options.bootstrap_controller:
        raise Failed("You cannot specify both --bootstrap-controller and --bootstrap-server.")
    address = options.bootstrap_server or options.bootstrap_controller
    if not address and "bootstrap.servers" not in config:
        raise Failed("You must specify either --bootstrap-controller or --bootstrap-server.")
    if address:
        config["bootstrap.servers"] = address
    try:
        with admin_of(config) as admin:
            yield admin
    except KafkaError as error:
        first: KafkaError = next(iter(getattr(error, "errors", {}).values()), error)
        raise Failed(kafka_exception(first)) from error
