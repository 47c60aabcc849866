"""kafka-server-start.sh: [-daemon] server.properties [--override property=value]*

The broker of `barnabas server`, with Kafka's words. As Kafka's it writes its output to kafkaServer.out in $LOG_DIR when
it is a daemon (without $LOG_DIR: in the data directory), and fails with status 1 whatever the reason. Differences: with
-daemon it returns when the broker is ready, or has failed; without `listeners` it listens on 127.0.0.1 only.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.command import Refused, UsageError
from barnabas.cli.exit_status import FAILED, OK, run_program
from barnabas.cli.kafka.failures import plain_failure
from barnabas.cli.kafka.flags import KAFKA_VERSION, WrongUse

PROGRAM = "kafka-server-start.sh"
USAGE = f"USAGE: {PROGRAM} [-daemon] server.properties [--override property=value]*"
OUTPUT = "kafkaServer.out"
HELP = f"""{USAGE}
-daemon
        Run in the background; the output goes to {OUTPUT} in $LOG_DIR, or in the data directory.
--override property=value
        Optional property that should override values set in server.properties file
--version
        The version of Kafka whose command this is."""


def main(arguments: Sequence[str] | None = None) -> int:
    words = list(sys.argv[1:] if arguments is None else arguments)
    return run_program(PROGRAM, lambda: _run(words), plain_failure)


def parsed(words: Sequence[str]) -> argparse.Namespace:
    """The options of `barnabas server` that these words stand for. Raises WrongUse."""
    left = list(words)
    daemon = left[:1] == ["-daemon"]
    if daemon:
        left.pop(0)
    if not left:
        raise WrongUse(USAGE)
    file = left.pop(0)
    overrides = []
    while left:
        word = left.pop(0)
        name, equals, value = word.partition("=")
        if name != "--override":
            raise WrongUse(f"Found non argument parameters: {word}" if not word.startswith("-") else USAGE)
        if not equals and not left:
            raise WrongUse("Option override requires an argument")
        overrides.append(value if equals else left.pop(0))
    return argparse.Namespace(config=file, set=overrides, daemon=daemon)


def _run(words: list[str]) -> int:
    if words[:1] in (["--help"], ["--version"]):
        print(HELP if words[0] == "--help" else KAFKA_VERSION)
        return OK
    options = parsed(words)
    from barnabas.cli.server import start

    directory = os.environ.get("LOG_DIR")
    options.listen = options.data_dir = options.node_id = options.pid_file = options.metadata = None
    options.log_level = "INFO"
    options.log_file = str(Path(directory) / OUTPUT) if directory else None
    options.log_name = OUTPUT
    try:
        return FAILED if start(options, PROGRAM) else OK
    except (Refused, UsageError) as error:
        raise WrongUse(f"{PROGRAM}: {error}") from None


if __name__ == "__main__":
    raise SystemExit(main())
