"""`kafka-storage.sh`: ids, what log directories are, and users that are there before the first start.

Kafka's brokers need their directories formatted before the first start. A broker of Barnabas does that by itself, so
`format` only says so, and writes the users of --add-scram into the metadata: scripts that call it first go on.
"""

from __future__ import annotations

import argparse
import base64
import uuid
from pathlib import Path

from barnabas.cli.command import Command, Refused, no_arguments
from barnabas.cli.exit_status import FAILED
from barnabas.cli.kafka.add_scram import ScramUser, parse_users
from barnabas.cli.kafka.releases import print_dependencies, print_mapping
from barnabas.cli.kafka.subcommands import tool_main

META = "meta.properties"
DEFAULT_DIRECTORY = "/tmp/kafka-logs"
NO_FORMAT = (
    "Nothing was formatted: a Barnabas broker needs none, it prepares its log directories by itself at the first start"
    " (and chooses its cluster id then)."
)


def config_argument(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--config", "-c", metavar="FILE", required=True, help="server.properties")


def format_arguments(parser: argparse.ArgumentParser) -> None:
    config_argument(parser)
    parser.add_argument("--cluster-id", "-t", metavar="ID", required=True)
    parser.add_argument(
        "--add-scram",
        "-S",
        metavar="SCRAM",
        action="append",
        default=[],
        help="a user, as 'SCRAM-SHA-256=[name=alice,password=alice-secret]' (repeatable)",
    )
    for flag in ("--release-version", "-r", "--feature", "-f", "--initial-controllers", "-I"):
        parser.add_argument(flag, action="append", help=argparse.SUPPRESS)
    for flag in ("--ignore-formatted", "-g", "--standalone", "-s", "--no-initial-controllers", "-N"):
        parser.add_argument(flag, action="store_true", help=argparse.SUPPRESS)


def mapping_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--release-version", "-r", metavar="RELEASE")


def dependency_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--feature", "-f", action="append", required=True, metavar="FEATURE=LEVEL")


def _format(options: argparse.Namespace) -> None:
    _directories(options.config)
    users = parse_users(options.add_scram)
    print(NO_FORMAT)
    if users:
        _add(users, options.config)


def _add(users: list[ScramUser], path: str) -> None:
    """A user that is there keeps the password: `format` may run before each start."""
    from barnabas.cli.first_users import open_users
    from barnabas.cli.server_config import config_of

    given = argparse.Namespace(config=path, listen=None, data_dir=None, node_id=None, set=[])
    with open_users(config_of(given, f"{path} cannot be used")) as known:
        for user in users:
            if user.mechanism in known.credentials_of(user.name):
                print(f"User {user.name} has a {user.mechanism} credential already: it stays as it is.")
                continue
            known.put(user.name, {user.mechanism: user.credential})
            print(f"Added user {user.name} ({user.mechanism}).")


def random_uuid() -> str:
    """In Kafka's alphabet; never with a leading dash, which would look like a flag."""
    while True:
        text = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        if not text.startswith("-"):
            return text


def _directories(config: str) -> list[str]:
    from barnabas.config.properties import parse_properties

    try:
        given = parse_properties(Path(config).read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise Refused(f"{config} cannot be read: {error}") from None
    listed = given.get("log.dirs") or given.get("log.dir") or DEFAULT_DIRECTORY
    found = {each.strip() for each in listed.split(",") if each.strip()}
    metadata = given.get("metadata.log.dir")
    return sorted({*found, *([metadata] if metadata else [])})


def _info(directories: list[str]) -> int | None:
    from barnabas.config.properties import parse_properties

    problems = [f"{each} does not exist" for each in directories if not Path(each).is_dir()]
    there = [each for each in directories if Path(each).is_dir()]
    unformatted = [each for each in there if not (Path(each) / META).is_file()]
    problems = sorted([*problems, *(f"{each} is not formatted." for each in unformatted)])
    _section("Found log directory:", "Found log directories:", there)
    formatted = [each for each in there if each not in unformatted]
    if formatted:
        meta = parse_properties((Path(formatted[0]) / META).read_text(encoding="utf-8"))
        print(f"Found metadata: {{{', '.join(f'{key}={meta[key]}' for key in sorted(meta))}}}\n")
    _section("Found problem:", "Found problems:", problems)
    return FAILED if problems else None


def _section(one: str, many: str, lines: list[str]) -> None:
    if lines:
        print(one if len(lines) == 1 else many)
        for line in lines:
            print(f"  {line}")
        print()


main = tool_main(
    "kafka-storage.sh",
    "The Kafka storage tool.",
    (
        Command("random-uuid", "Print a random UUID.", no_arguments, lambda _: print(random_uuid())),
        Command(
            "info",
            "What the log directories of a configuration are.",
            config_argument,
            lambda options: _info(_directories(options.config)),
        ),
        Command("format", "Needed only for --add-scram: users before the first start.", format_arguments, _format),
        Command(
            "version-mapping",
            "Features that go with a release.",
            mapping_arguments,
            lambda options: print_mapping(options.release_version),
        ),
        Command(
            "feature-dependencies",
            "What a feature level needs.",
            dependency_arguments,
            lambda options: print_dependencies(options.feature),
        ),
    ),
)
