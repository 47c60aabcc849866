"""The table on the terminal and, between two markers, in docs/benchmarks.md."""

from __future__ import annotations

import os
import platform
import subprocess
from datetime import UTC, datetime
from importlib.metadata import version

from kafka_process import kafka_version, why_no_kafka

from benchmarks import ROOT
from benchmarks.board import Board

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- benchmarks: begin -->", "<!-- benchmarks: end -->"


def write(board: Board, rounds: int, quick: bool, seconds: float) -> None:
    text = f"{machine_facts(rounds, quick, seconds)}\n\n{board.table()}\n"
    page = PAGE.read_text()
    before, _, rest = page.partition(BEGIN)
    _, _, after = rest.partition(END)
    PAGE.write_text(f"{before}{BEGIN}\n{text}{END}{after}")


def machine_facts(rounds: int, quick: bool, seconds: float) -> str:
    load = os.getloadavg()[0]
    system = f"{platform.system()} {platform.release()}"
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    kafka = why_no_kafka() or f"Apache Kafka {kafka_version()} on {java_version()}"
    facts = [
        f"{datetime.now(UTC):%Y-%m-%d}: {os.cpu_count()} cores, {memory:.0f} GiB, {system}",
        f"Python {platform.python_version()}, confluent-kafka {version('confluent-kafka')}, {kafka}",
        f"{rounds} rounds{' (--quick)' if quick else ''}, {seconds / 60:.0f} minutes, load average then {load:.1f}",
    ]
    return "; ".join(facts) + "."


def java_version() -> str:
    told = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return "JDK " + told.partition('"')[2].partition('"')[0]
