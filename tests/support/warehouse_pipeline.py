"""`barnabas pipeline run` as a real process with a real Spark, which tests can end in every way.

A run is a tree of processes: the launcher (Python), the driver (the JVM), and Python workers, which are children of the
JVM in local mode. `kill` ends all of them at once, as a machine that goes down does.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Self

SOURCES = Path(__file__).resolve().parents[2] / "src"
BATCH = re.compile(r"^batch (\d+): ", re.MULTILINE)
SETTINGS = {
    "spark.driver.memory": "1g",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.driver.host": "127.0.0.1",
    "spark.sql.streaming.pollingDelay": "20ms",
    "spark.ui.showConsoleProgress": "false",
}


class PipelineFailed(Exception):
    """It ended when it should not, or did not end when it should; the message carries the end of its output."""


class PipelineProcess:
    """One pipeline; whatever becomes of a run, the next `start` goes on from its checkpoint."""

    def __init__(
        self, directory: Path, bootstrap: str, *options: str, master: str = "local[2,4]", name: str = ""
    ) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self.checkpoint = directory / "checkpoint"
        self.output = directory / f"pipeline{name}.out"
        self.bootstrap = bootstrap
        command = [sys.executable, "-m", "barnabas", "pipeline", "run", "-b", bootstrap]
        command += ["--checkpoint", str(self.checkpoint), "--master", master]
        for key, value in {**SETTINGS, "spark.local.dir": str(directory / "spark")}.items():
            command += ["--conf", f"{key}={value}"]
        self.command = [*command, *options]
        self.environment = os.environ | {
            "PYTHONPATH": str(SOURCES),
            "PYTHONUNBUFFERED": "1",
            "PYSPARK_PYTHON": sys.executable,
            "SPARK_LOCAL_IP": "127.0.0.1",
        }
        self.process: subprocess.Popen[bytes] | None = None
        self._output_start = 0

    def start(self, *options: str) -> Self:
        with self.output.open("ab") as output:
            self._output_start = output.tell()
            self.process = subprocess.Popen(
                [*self.command, *options],
                stdout=output,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
                env=self.environment,
                cwd=self.output.parent,
                start_new_session=True,
            )
        return self

    def command_of(self, verb: str, *options: str) -> str:
        """Another verb of `barnabas pipeline`, to its end; what it printed."""
        command = [sys.executable, "-m", "barnabas", "pipeline", verb, "-b", self.bootstrap, *options]
        done = subprocess.run(command, env=self.environment, check=True, capture_output=True, text=True)
        return done.stdout

    def run_once(self, timeout: float = 240.0) -> Self:
        """What is there, to the end."""
        status = self.start("--once").wait(timeout)
        if status != 0:
            raise PipelineFailed(f"exit status {status}:\n{self.printed()[-4000:]}")
        return self

    def wait(self, timeout: float) -> int:
        assert self.process is not None, "not started"
        try:
            return self.process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()
            raise PipelineFailed(f"still running after {timeout} s:\n{self.printed()[-4000:]}") from None

    def stop(self, timeout: float = 60.0) -> int:
        """Ctrl-C, as in a terminal."""
        assert self.process is not None, "not started"
        self.process.send_signal(signal.SIGINT)
        return self.wait(timeout)

    def kill(self) -> None:
        """kill -9 of launcher, driver and workers."""
        if self.process is not None:
            if self.process.poll() is None:
                kill_tree(self.process.pid)
            self.process.wait()

    @property
    def alive(self) -> bool:
        return self.process is not None and self.process.poll() is None

    def printed(self) -> str:
        """Since the last start."""
        return self.output.read_bytes()[self._output_start :].decode(errors="replace")

    def batches(self) -> list[int]:
        """Numbers of the batches it has told of since its last start."""
        return [int(found[1]) for found in BATCH.finditer(self.printed())]

    def wait_for(self, pattern: str, timeout: float = 60.0) -> str:
        """Until it prints something; what it printed."""
        deadline = time.monotonic() + timeout
        while True:
            found = re.search(pattern, self.printed())
            if found is not None:
                return found[0]
            if not self.alive or time.monotonic() > deadline:
                how = f"within {timeout} s" if self.alive else "before it ended"
                raise PipelineFailed(f"{pattern!r} was not printed {how}:\n{self.printed()[-4000:]}")
            time.sleep(0.05)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()


def process_tree(root: int) -> list[int]:
    """A process and all that come from it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in os.scandir("/proc"):
        if entry.name.isdecimal():
            try:
                fields = Path(entry.path, "stat").read_text().rpartition(")")[2].split()
            except OSError:
                continue  # it has just ended
            children.setdefault(int(fields[1]), []).append(int(entry.name))
    found = [root]
    for pid in found:
        found += children.get(pid, [])
    return found


def kill_tree(root: int) -> None:
    for pid in process_tree(root):
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
