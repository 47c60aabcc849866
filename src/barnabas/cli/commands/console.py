"""`barnabas console`: the web page of a cluster, for any Kafka."""

import argparse
from pathlib import Path

from barnabas.cli.command import Command, Refused, UsageError, command_main
from barnabas.cli.exit_status import OK

DEFAULT_ADDRESS = "127.0.0.1:9080"
NOTES = """\
There is no login yet, so it listens on loopback only; to reach it from elsewhere, forward the port (ssh -L 9080:...).

examples:
  barnabas console                                     the cluster on localhost:9092, page on http://127.0.0.1:9080
  barnabas console -b kafka.example:9092 --read-only
"""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--listen", metavar="HOST:PORT", default=DEFAULT_ADDRESS, help=f"of the page (default {DEFAULT_ADDRESS})"
    )
    parser.add_argument("--read-only", action="store_true", help="refuse every change")
    parser.add_argument("--history", metavar="FILE", help="keep 90 days of history in it (default: an hour in memory)")
    parser.add_argument("--alarms", metavar="FILE", help="TOML file of alarms and where they are sent")
    parser.add_argument(
        "--pipeline", metavar="CHECKPOINT", action="append", default=[], help="show the pipeline of it (repeatable)"
    )
    parser.add_argument(
        "--until-stdin-ends", action="store_true", help="stop when the input ends, as it does with whoever started it"
    )


def console(options: argparse.Namespace) -> int:
    host, _, port = options.listen.rpartition(":")
    if not host or not port.isdecimal() or int(port) > 65_535:
        raise UsageError(f"--listen {options.listen}: expected HOST:PORT, such as {DEFAULT_ADDRESS}")
    try:
        from barnabas.console.alarms.rules import AlarmFileError, AlarmSettings, read_alarm_file
        from barnabas.console.database import DatabaseError
        from barnabas.console.process import serve
        from barnabas.console.security import is_loopback
        from barnabas.console.settings import ConsoleSettings
    except ImportError as error:
        raise Refused(f"the console needs {error.name}: pip install 'barnabas[console]'") from None
    from barnabas.cli.commands.pipeline_topics import absolute
    from barnabas.cli.connection import client_config

    if not is_loopback(host):
        raise UsageError(f"--listen {options.listen}: only loopback addresses, since there is no login yet")
    try:
        settings = ConsoleSettings(
            read_only=options.read_only,
            history=Path(options.history) if options.history else None,
            pipelines=tuple(map(absolute, options.pipeline)),
            alarms=read_alarm_file(Path(options.alarms)) if options.alarms else AlarmSettings(),
        )
        serve(
            client_config(options),
            host,
            int(port),
            lambda address: print(f"console on {address}", flush=True),
            settings=settings,
            until_stdin_ends=options.until_stdin_ends,
        )
    except AlarmFileError as error:
        raise UsageError(str(error)) from None
    except DatabaseError as error:
        raise Refused(str(error)) from None
    except OSError as error:
        raise Refused(f"cannot listen on {options.listen}: {error.strerror}") from None
    return OK


COMMAND = Command("console", "serve the web page of a cluster until Ctrl-C", add_arguments, console, notes=NOTES)
main = command_main(COMMAND)
