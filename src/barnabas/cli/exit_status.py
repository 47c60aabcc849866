"""How a program ends: its exit status, its last line on stderr, its output flushed. Every command runs in here.

0 done; 1 the cluster refused, or cannot be reached; 2 wrong use (Kafka's own commands: 1); 130 interrupted.

Python flushes stdout once more when it exits. What fails only there ends with status 120 and a text about an ignored
exception, so it is flushed before, where failures can be reported apart: a reader that has seen enough (`| head`) is no
failure, a full disk is one.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import NamedTuple, TextIO

OK, FAILED, USAGE_ERROR, INTERRUPTED = 0, 1, 2, 130
# Only a write fails like this; any other OSError without a file name may mean something else.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(Exception):
    """stdout could not be flushed."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason


class Failure(NamedTuple):
    """How a program ends early: the line on stderr and the status."""

    line: str
    status: int = FAILED


def run_program(program: str, work: Callable[[], int | None], failure_of: Callable[[Exception], Failure | None]) -> int:
    """The status of the work; an exception that `failure_of` does not know is a bug and propagates."""

    def status() -> int:
        try:
            return work() or OK
        except KeyboardInterrupt:
            return INTERRUPTED
        except Exception as error:
            failure = failure_of(error)
            if failure is None:
                raise
            complain(failure.line)
            return failure.status

    return run_and_flush(program, status)


def run_and_flush(program: str, work: Callable[[], int]) -> int:
    """The work's status, or that of its output if that could not be written."""
    _open_missing_streams()
    try:
        try:
            return work()
        finally:
            _flush_stderr()
            _flush()
    except OutputError as error:
        return _output_failed(program, error.reason)
    except BrokenPipeError as error:
        return _output_failed(program, error)
    except OSError as error:
        # A large text bypasses the buffer: then the flush has nothing left that could fail again.
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        return _output_failed(program, error)


def leave_quietly() -> None:
    """Discard what is still buffered, so that Python does not fail on it again at exit."""
    _discard(sys.stdout)


def complain(text: str) -> None:
    """A line on stderr. Its reader may be gone too (`2>&1 | head`): then only the status reports the failure."""
    with suppress(OSError):
        print(text, file=sys.stderr)
    _flush_stderr()


def _discard(stream: TextIO) -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _open_missing_streams() -> None:
    """A shell can start a program without them (`>&-`): Python has None then, and a socket may get the number."""
    if sys.stdout is None:
        sys.stdout = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process
    if sys.stderr is None:
        sys.stderr = open(os.devnull, "w")  # noqa: SIM115 - lives as long as the process


def _flush_stderr() -> None:
    try:
        sys.stderr.flush()
    except OSError:
        _discard(sys.stderr)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(error) from None


def _output_failed(program: str, error: OSError) -> int:
    leave_quietly()
    if isinstance(error, BrokenPipeError):
        return OK
    complain(f"{program}: cannot write the output: {error.strerror}")
    return FAILED
