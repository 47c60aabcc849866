"""`barnabas server stop` and `barnabas server status`: for a broker that runs somewhere on this machine.

The broker is found by its pid file, and the pid file by the broker's settings or by --pid-file. Exit status of stop: 0
stopped cleanly; 1 there was nothing to stop, or it did not stop. Of status, as init scripts have it: 0 running; 1 not
running, but its pid file is still there, because it was killed; 3 not running.
"""

import argparse
import os
import signal
import time
from collections.abc import Sequence
from pathlib import Path

from barnabas.cli.command import Refused, add_json_argument, run_own
from barnabas.cli.command_parser import CommandParser
from barnabas.cli.exit_status import FAILED, OK, USAGE_ERROR
from barnabas.cli.numbers import seconds
from barnabas.cli.output import Output, show
from barnabas.cli.pid_file import Found, default_paths, is_held, look_at

NOT_RUNNING = 3
STOP, STATUS = "stop", "status"
DEFAULT_TIMEOUT_S = 60.0
POLL_S = 0.05
SUMMARIES = {
    STOP: "Stop a broker of this machine cleanly and wait until it has ended.",
    STATUS: "Show whether a broker runs. Exit status: 0 running, 1 dead with a pid file left behind, 3 not running.",
}


def main(verb: str, arguments: Sequence[str]) -> int:
    options = parser(verb).parse(arguments)
    program = f"barnabas server {verb}"
    return run_own(program, lambda: _run(verb, options, program))


def _run(verb: str, options: argparse.Namespace, program: str) -> int:
    try:
        found = _find(options, program)
        if found is None:
            return USAGE_ERROR
        output = _stop(found, options.timeout) if verb == STOP else _status(found)
    except OSError as error:
        raise Refused(f"{error.filename}: {error.strerror}") from None
    show(output, as_json=options.json)
    return output.status


def parser(verb: str) -> CommandParser:
    from barnabas.cli.server_config import add_config_arguments

    made = CommandParser(
        prog=f"barnabas server {verb}",
        description=SUMMARIES[verb],
        epilog=f"example: barnabas server {verb} --data-dir /var/lib/barnabas",
    )
    add_config_arguments(made)
    made.set_defaults(listen=None, node_id=None)
    if verb == STOP:
        made.add_argument(
            "--timeout",
            metavar="SECONDS",
            type=seconds,
            default=DEFAULT_TIMEOUT_S,
            help=f"how long to wait for the end (default {DEFAULT_TIMEOUT_S:g})",
        )
    add_json_argument(made)
    return made


def _find(options: argparse.Namespace, program: str) -> Found | None:
    """The pid file of the broker that the options are about; None if they are wrong, which has been printed."""
    if options.pid_file:
        return look_at(Path(options.pid_file))
    from barnabas.cli.server import config_or_faults

    config = config_or_faults(options, program)
    if config is None:
        return None
    looks = [look_at(path) for path in default_paths(config)]
    return next((each for each in looks if each.running), next((each for each in looks if each.exists), looks[0]))


def _status(found: Found) -> Output:
    status = OK if found.running else FAILED if found.exists else NOT_RUNNING
    state = {OK: "running", FAILED: "dead", NOT_RUNNING: "stopped"}[status]
    line = {
        OK: f"running, pid {found.pid} ({found.path})",
        FAILED: f"not running: {found.path} was left behind by pid {found.pid}, which did not stop cleanly",
        NOT_RUNNING: f"not running (no {found.path})",
    }[status]
    pid = found.pid if found.running else None
    return Output({"state": state, "pid": pid, "pid_file": str(found.path)}, [line], status)


def _stop(found: Found, timeout_s: float) -> Output:
    if not found.running:
        left = f", {found.path} was left behind by a broker that was killed" if found.exists else ""
        raise Refused(f"no broker is running here{left or f' (no {found.path})'}")
    if found.pid is None:
        raise Refused(f"{found.path} is held, but names no process")
    # Held open, so that what is waited for is the end of this process, whatever becomes of the file's name.
    file = os.open(found.path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        os.kill(found.pid, signal.SIGTERM)
        started = time.monotonic()
        while is_held(file):
            if time.monotonic() - started >= timeout_s:
                raise Refused(
                    f"pid {found.pid} is still stopping after {timeout_s:g} s; a longer --timeout waits for it"
                )
            time.sleep(POLL_S)
        if os.fstat(file).st_nlink:
            raise Refused(f"pid {found.pid} ended without a clean stop; its next start checks the logs")
    except PermissionError:
        raise Refused(f"pid {found.pid} belongs to another user: stop it as that user") from None
    finally:
        os.close(file)
    return Output([{"pid": found.pid, "stopped": True}], [f"stopped, pid {found.pid}"])
