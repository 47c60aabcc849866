"""The processes of the demo: started with their output in a file, watched, and stopped with all they started.

Each has a session of its own. Ctrl-C in the terminal then reaches the demo alone, which stops them in order; and what a
process leaves behind when it ends (a JVM, say) can be found and ended by its session.
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

_LOOK_S: Final = 0.05
_LAST_WORDS: Final = 15


class ProcessError(Exception):
    """A process ended that should not have; the text has its last words."""


class DemoProcess:
    """`python -m barnabas ARGUMENTS`."""

    def __init__(self, name: str, arguments: list[str], folder: Path, stop_signal: signal.Signals) -> None:
        self.name = name
        self._stop_signal = stop_signal
        self._output = folder / f"{name}.out"
        package = str(Path(barnabas.__file__).parents[1])
        paths = filter(None, [package, os.environ.get("PYTHONPATH")])
        environment = os.environ | {"PYTHONPATH": os.pathsep.join(paths), "PYTHONUNBUFFERED": "1"}
        with self._output.open("wb") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "barnabas", *arguments],
                stdin=subprocess.DEVNULL,
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
        return self._output.read_text(errors="replace")

    def has_said(self, words: re.Pattern[str]) -> bool:
        """Raises ProcessError if it never will."""
        ended = self.has_ended
        if words.search(self.printed):
            return True
        if ended:
            self.check_well(may_be_done=False)
        return False

    def check_well(self, *, may_be_done: bool) -> None:
        """Raises ProcessError if it has ended, or has failed where it may be done."""
        status = self._process.poll()
        if status is None or (status == 0 and may_be_done):
            return
        lines = [f"  {line}" for line in self.printed.splitlines()[-_LAST_WORDS:]]
        raise ProcessError("\n".join([f"the {self.name} has ended with status {status}; its last words:", *lines]))

    def stop(self, patience_s: float) -> bool:
        """With the signal that it takes for a wish, then by force; in the end nothing of its session is left.

        Whether force was needed."""
        is_forced = False
        if not self.has_ended:
            self._process.send_signal(self._stop_signal)
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(patience_s)
        until = time.monotonic() + patience_s
        while self._rest():
            # What it started ends with it, but not in the same moment; Spark's workers end when their JVM is gone.
            if time.monotonic() > until or not self.has_ended:
                is_forced = True
                for pid in self._rest():
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(pid, signal.SIGKILL)
            self._process.poll()
            time.sleep(_LOOK_S)
        self._process.wait()
        return is_forced

    def _rest(self) -> list[int]:
        """The processes of its session that live, by /proc; where there is none, its process group stands for it."""
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
