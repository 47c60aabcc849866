"""Writes the tables in docs/benchmarks.md, and when and where they were measured, between the two markers.

Only called after a full run (`__main__`), so the page is from one run on one machine.
"""

from __future__ import annotations

import os
import platform
import subprocess
from collections.abc import Mapping
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path

from kafka_process import kafka_version, why_no_kafka

from benchmarks import ROOT
from benchmarks.session import Session

PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN = "<!-- benchmarks: from here, written by `make bench` -->"
END = "<!-- benchmarks: to here -->"


def tables(session: Session) -> str:
    """Broker against broker first, then the others under their titles."""
    parts = [session.board.table()] if session.board.rows else []
    parts += [f"### {title}\n{table}" for title, table in session.extra_tables.items()]
    return "\n\n".join(parts)


def write(tables: str, rounds: int, seconds: Mapping[str, float], load_before: float) -> None:
    """`seconds` is the duration of each group of rows."""
    before, begin, rest = PAGE.read_text().partition(BEGIN)
    _, end, after = rest.partition(END)
    if not (begin and end):
        raise RuntimeError(f"{PAGE} lacks one of the lines {BEGIN} and {END}")
    PAGE.write_text(f"{before}{BEGIN}\n{tables}\n\n{about(rounds, seconds, load_before)}{END}{after}")


def about(rounds: int, seconds: Mapping[str, float], load_before: float) -> str:
    parts = ", ".join(f"{name} {spent / 60:.1f}" for name, spent in seconds.items())
    facts = [
        f"Date: {datetime.now(UTC):%Y-%m-%d %H:%M} UTC",
        f"Machine: {machine()}",
        f"Software: {software()}",
        f"Rounds: {rounds} counted ones, after one or two to warm up. Slow rows have fewer: as many as the row has "
        "ratios, and one where it has no range",
        f"Duration: {sum(seconds.values()) / 60:.1f} minutes ({parts})",
        f"Load average: {load_before:.1f} before the run, {os.getloadavg()[0]:.1f} at its end",
    ]
    return "### About these tables\n" + "".join(f"- {fact}.\n" for fact in facts)


def machine() -> str:
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return f"{os.cpu_count()} cores ({processor()}), {memory:.0f} GiB, {platform.system()} {platform.release()}"


def processor() -> str:
    """As Linux names it; elsewhere as Python does."""
    information = Path("/proc/cpuinfo")
    lines = information.read_text().splitlines() if information.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def software() -> str:
    kafka = why_no_kafka() or f"Apache Kafka {kafka_version()} on {java_version()}"
    barnabas = f"Barnabas {version('barnabas')} ({commit()})"
    return f"{barnabas}, Python {platform.python_version()}, confluent-kafka {version('confluent-kafka')}, {kafka}"


def commit() -> str:
    described = subprocess.run(
        ["git", "-C", str(ROOT), "describe", "--always", "--dirty"], capture_output=True, text=True, check=False
    )
    return described.stdout.strip() or "no commit"


def java_version() -> str:
    printed = subprocess.run(["java", "-version"], capture_output=True, text=True, check=False).stderr
    return "JDK " + printed.partition('"')[2].partition('"')[0]
