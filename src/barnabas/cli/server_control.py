"""`barnabas server stop` and `barnabas server status`: for a broker that runs somewhere on this machine.

The broker is found by its pid file, and the pid file by the broker's settings or by --pid-file. Exit status of stop: 0
stopped cleanly; 1 there was nothing to stop, or it did not stop. Of status, as init scripts have it: 0 running; 1 not
running, but its pid file is still there, because it was killed; 3 not running.
"""

import argparse
import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

from barnabas.cli.command import Command, Refused
from barnabas.cli.exit_status import FAILED, OK
from barnabas.cli.numbers import seconds
from barnabas.cli.output import Output
from barnabas.cli.pid_file import Found, default_paths, is_held, look_at
from barnabas.cli.server_config import add_config_arguments, config_of

NOT_RUNNING = 3
DEFAULT_TIMEOUT_S = 60.0
POLL_S = 0.05


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_config_arguments(parser)
    parser.set_defaults(listen=None, node_id=None)


def add_stop_arguments(parser: argparse.ArgumentParser) -> None:
    add_arguments(parser)
    parser.add_argument(
        "--timeout",
        metavar="SECONDS",
        type=seconds,
        default=DEFAULT_TIMEOUT_S,
        help=f"how long to wait for the end (default {DEFAULT_TIMEOUT_S:g})",
    )


def _with_broker(call: Callable[[argparse.Namespace, Found], Output]) -> Callable[[argparse.Namespace], Output]:
    """The call with the pid file of the broker that the options are about."""

    def work(options: argparse.Namespace) -> Output:
        try:
            return call(options, _find(options))
        except OSError as error:
            raise Refused(f"{error.filename}: {error.strerror}") from None

    return work


def _find(options: argparse.Namespace) -> Found:
    if options.pid_file:
        return look_at(Path(options.pid_file))
    config = config_of(options, "nothing was started, because of the settings")
    looks = [look_at(path) for path in default_paths(config)]
    return next((each for each in looks if each.running), next((each for each in looks if each.exists), looks[0]))


def _status(options: argparse.Namespace, found: Found) -> Output:
    status = OK if found.running else FAILED if found.exists else NOT_RUNNING
    state = {OK: "running", FAILED: "dead", NOT_RUNNING: "stopped"}[status]
    line = {
        OK: f"running, pid {found.pid} ({found.path})",
        FAILED: f"not running: {found.path} was left behind by pid {found.pid}, which did not stop cleanly",
        NOT_RUNNING: f"not running (no {found.path})",
    }[status]
    pid = found.pid if found.running else None
    return Output({"state": state, "pid": pid, "pid_file": str(found.path)}, [line], status)


def _stop(options: argparse.Namespace, found: Found) -> Output:
    timeout_s: float = options.timeout
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


def _output(options: argparse.Namespace, output: Output) -> Output:
    return output


STOP = Command(
    "stop",
    "stop a broker of this machine cleanly and wait until it has ended",
    add_stop_arguments,
    _with_broker(_stop),
    _output,
    connects=False,
)
STATUS = Command(
    "status",
    "show whether a broker runs",
    add_arguments,
    _with_broker(_status),
    _output,
    connects=False,
    description="Show whether a broker runs. Exit status: 0 running, 1 dead with a pid file left behind, 3 not"
    " running.",
)
