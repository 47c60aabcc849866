"""Commands of Barnabas run as processes: output in a file, watched, and stopped with their children.

`barnabas up` and the demo start brokers and pipelines with it. Each process has its own session: Ctrl-C in the terminal
then reaches only the parent, which stops them in order; and a child that a process leaves behind (such as a JVM) can be
found and killed by its session.
"""

import contextlib
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import barnabas

_POLL_S: Final = 0.05
_LAST_LINES: Final = 15


class ProcessError(Exception):
    """A process exited unexpectedly; the text has its last output."""


class ChildProcess:
    """`python -m barnabas ARGUMENTS`."""

    def __init__(
        self, name: str, arguments: list[str], folder: Path, stop_signal: signal.Signals, *, holds_stdin: bool = False
    ) -> None:
        self.name = name
        self._stop_signal = stop_signal
        self._output = folder / f"{name}.out"
        package = str(Path(barnabas.__file__).parents[1])
        paths = filter(None, [package, os.environ.get("PYTHONPATH")])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        with self._output.open("ab") as output:
            self._output_start = output.tell()
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", *arguments],
                # Only this process has the other end: however it ends, the child then reads the end of its input.
                stdin=subprocess.PIPE if holds_stdin else subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env=environment,
                start_new_session=True,
            )

    @property
    def has_ended(self) -> bool:
        return self._process.poll() is not None

    @property
    def printed(self) -> str:
        """What it wrote since its start."""
        with self._output.open("rb") as output:
            output.seek(self._output_start)
            return output.read().decode(errors="replace")

    def has_printed(self, words: re.Pattern[str]) -> bool:
        """Whether the output matches. Raises ProcessError if the process has exited without."""
        ended = self.has_ended
        if words.search(self.printed):
            return True
        if ended:
            self.check_running(may_be_done=False)
        return False

    def check_running(self, *, may_be_done: bool) -> None:
        """Raises ProcessError if it has exited, or with `may_be_done` if it has failed."""
        status = self._process.poll()
        if status is None or (status == 0 and may_be_done):
            return
        lines = [f"  {line}" for line in self.printed.splitlines()[-_LAST_LINES:]]
        raise ProcessError("\n".join([f"the {self.name} has exited with status {status}; its last output:", *lines]))

    def signal(self) -> None:
        """Sends its stop signal and does not wait. A second one is harmless: the first has begun the stop."""
        if not self.has_ended:
            self._process.send_signal(self._stop_signal)

    def stop(self, patience_s: float) -> bool:
        """Sends its stop signal, then kills it and what is left of its session. Returns whether it had to kill."""
        is_forced = False
        if not self.has_ended:
            self.signal()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        until = time.monotonic() + patience_s
        while self._rest():
            # Its children exit shortly after it; Spark's workers exit when their JVM is gone.
            if time.monotonic() > until or not self.has_ended:
                is_forced = True
                for pid in self._rest():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            self._process.poll()
            time.sleep(_POLL_S)
        self._process.wait()
        return is_forced

    def _rest(self) -> list[int]:
        """The live processes of its session, from /proc; without /proc, its process group."""
        if Path("/proc/self/stat").exists():
            return [pid for pid in map(int, filter(str.isdecimal, os.listdir("/proc"))) if self._is_mine(pid)]
        try:
            os.killpg(self._process.pid, 0)
        except (ProcessLookupError, PermissionError):
            return []
        return [-self._process.pid]

    def _is_mine(self, pid: int) -> bool:
        try:
            state, _, _, session = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[:4]
        except (OSError, ValueError):
            return False
        return int(session) == self._process.pid and state != "Z"
