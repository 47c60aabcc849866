"""What a command prints has to arrive, or somebody has to be told: every command runs inside `seeing_output_out`.

Python flushes stdout once more when it exits. What fails only there ends with status 120 and a text about an ignored
exception, so it is flushed before, where the failure can be told apart: a reader that has seen enough (`| head`) is no
failure, a full disk is one.
"""

import errno
import os
import sys
from collections.abc import Callable
from contextlib import suppress
from typing import TextIO

OK, FAILED = 0, 1
# Only a write fails like this. What else an OSError without a file's name may mean is not known.
_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)


class OutputError(Exception):
    """stdout could not be flushed."""

    def __init__(self, reason: OSError) -> None:
        self.reason = reason


def seeing_output_out(program: str, work: Callable[[], int]) -> int:
    """The work's status, or that of its output if that did not arrive."""
    _open_missing_streams()
    try:
        try:
            return work()
        finally:
            _flush_stderr()
            _flush()
    except OutputError as error:
        return _lost(program, error.reason)
    except BrokenPipeError as error:
        return _lost(program, error)
    except OSError as error:
        # A large text goes past the buffer: then the flush has nothing left that could fail again.
        if error.errno not in _NO_ROOM or error.filename is not None:
            raise
        return _lost(program, error)


def leave_quietly() -> None:
    """What is still in the buffer goes nowhere, without another complaint at exit."""
    _to_nowhere(sys.stdout)


def complain(text: str) -> None:
    """A line on stderr. Who should read it may have gone too (`2>&1 | head`): then the status has to do."""
    with suppress(OSError):
        print(text, file=sys.stderr)
    _flush_stderr()


def _to_nowhere(stream: TextIO) -> None:
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
        _to_nowhere(sys.stderr)


def _flush() -> None:
    try:
        sys.stdout.flush()
    except OSError as error:
        raise OutputError(error) from None


def _lost(program: str, error: OSError) -> int:
    leave_quietly()
    if isinstance(error, BrokenPipeError):
        return OK
    complain(f"{program}: cannot write the output: {error.strerror}")
    return FAILED
