"""`python -m barnabas server` as a real process on a free port, for tests that need kill -9, signals or exit codes."""

from __future__ import annotations

import os
import re
import sys
import time
from pathlib import Path
from typing import Self

from server_process import START_SECONDS, ServerFailed, ServerProcess, free_port

SOURCES = Path(__file__).resolve().parents[2] / "src"
READY_LINE = re.compile(r"^barnabas (\S+) ready on (\S+) \(node (\d+), data (.+)\)$", re.MULTILINE)


class BarnabasProcess(ServerProcess):
    """One Barnabas broker; a stopped or killed one can be started again on the same port and data directory."""

    def __init__(self, directory: Path, *options: str, settings: dict[str, str] | None = None, sources: Path = SOURCES):
        port = free_port()
        self.data = directory / "data"
        command = [sys.executable, "-m", "barnabas", "server"]
        command += ["--listen", f"127.0.0.1:{port}", "--data-dir", str(self.data)]
        for key, value in (settings or {}).items():
            command += ["--set", f"{key}={value}"]
        environment = os.environ | {"PYTHONPATH": str(sources), "PYTHONUNBUFFERED": "1"}
        super().__init__([*command, *options], directory, "127.0.0.1", port, environment)

    def start(self, timeout: float = START_SECONDS) -> Self:
        super().start(timeout)
        # The line is printed once the listener serves, so a quick client may get its metadata a moment earlier.
        deadline = time.monotonic() + timeout
        while READY_LINE.search(self.printed()) is None:
            if time.monotonic() > deadline or not self.alive:
                self.kill()
                raise ServerFailed(f"it serves without its ready line:\n{self.output_tail()}")
            time.sleep(0.005)
        return self
