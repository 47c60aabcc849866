"""Startup until a client has metadata, memory after startup, and the test broker inside a Python process."""

from __future__ import annotations

import subprocess
import sys

from benchmarks import ROOT
from benchmarks.board import BARNABAS, under
from benchmarks.session import Session

START = "start until a client has metadata"
MEMORY = "resident memory at start"
IN_PROCESS = "test broker in a Python process: ready"
IN_PROCESS_IMPORT = "test broker in a Python process: ready, import included"

TRIAL = """
import time
before = time.perf_counter()
from barnabas.testing import Broker
imported = time.perf_counter()
with Broker():
    ready = time.perf_counter()
    print(ready - imported, ready - before)
"""


def run(session: Session) -> None:
    session.board.row(START, "s", under(0.5))
    session.board.row(MEMORY, "MB", under(80))
    session.board.row(IN_PROCESS, "s", under(0.2))
    session.board.row(IN_PROCESS_IMPORT, "s")
    for _ in range(session.rounds):
        for name in session.names:
            with session.fresh(name, "start") as contender:
                session.board.add(START, name, contender.broker.start_seconds)
                session.board.add(MEMORY, name, contender.broker.resident_bytes() / 1e6)
    for _ in range(session.rounds):
        ready, with_import = in_process_seconds()
        session.board.add(IN_PROCESS, BARNABAS, ready)
        session.board.add(IN_PROCESS_IMPORT, BARNABAS, with_import)


def in_process_seconds() -> tuple[float, float]:
    environment = {"PYTHONPATH": str(ROOT / "src")}
    done = subprocess.run([sys.executable, "-c", TRIAL], env=environment, capture_output=True, text=True, check=True)
    ready, with_import = map(float, done.stdout.split())
    return ready, with_import
