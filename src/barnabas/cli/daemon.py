"""A broker in the background: a child process in a session of its own, with its output in a file.

    return start_daemon(log, serve, announce)

The parent waits until the broker is ready, or has failed; then it shows what the broker has printed. Called before
there are threads or an event loop, so that a fork is safe.
"""

import os
import sys
from collections.abc import Callable
from pathlib import Path

from barnabas.cli.exit_status import FAILED, INTERRUPTED, OK

OnReady = Callable[[str], None]


class LogFileError(Exception):
    """The file for the broker's output cannot be written; nothing was started."""


def start_daemon(log: Path, serve: Callable[[OnReady], int], announce: Callable[[int, str], None]) -> int:
    """`serve` runs in the child and calls its argument with the ready line. Gives the exit status, in both processes.

    `announce` is called in the parent with the process id and that line. Raises LogFileError.
    """
    try:
        log.parent.mkdir(parents=True, exist_ok=True)
        output = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    except OSError as error:
        raise LogFileError(f"cannot write {log}: {error.strerror}") from None
    printed_before = os.fstat(output).st_size
    read_end, write_end = os.pipe()
    sys.stdout.flush()
    sys.stderr.flush()
    pid = os.fork()
    if pid == 0:
        os.close(read_end)
        _detach(output)
        return serve(lambda line: _send(write_end, line))
    os.close(write_end)
    os.close(output)
    try:
        with os.fdopen(read_end) as ready:
            line = ready.read().strip()
    except KeyboardInterrupt:
        print(f"barnabas server: still starting, as pid {pid}; see {log}", file=sys.stderr)
        return INTERRUPTED
    if line:
        announce(pid, line)
        return OK
    return _report_failure(pid, log, printed_before)


def _detach(output: int) -> None:
    os.setsid()
    nothing = os.open(os.devnull, os.O_RDONLY)
    for file, number in ((nothing, 0), (output, 1), (output, 2)):
        os.dup2(file, number)
    os.close(nothing)
    os.close(output)


def _send(write_end: int, line: str) -> None:
    print(line, flush=True)
    try:
        os.write(write_end, line.encode() + b"\n")
    except BrokenPipeError:
        pass  # whoever waited has gone
    os.close(write_end)


def _report_failure(pid: int, log: Path, printed_before: int) -> int:
    """What the child has printed, and its status; the end of the pipe was that of the child."""
    status = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
    with log.open("rb") as file:
        file.seek(printed_before)
        sys.stderr.write(file.read().decode(errors="replace"))
    if status < 0:
        print(f"barnabas server: ended by signal {-status} while it started; see {log}", file=sys.stderr)
    return status if status > 0 else FAILED
