"""What an old and a new client cost on the same broker, and what it costs to start a broker or a command."""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
from pathlib import Path

from benchmarks import ROOT
from benchmarks.session import Contender, Session
from benchmarks.start import TRIAL

CLIENT = "barnabas"
COUNTS = {("produce", 100): 1_000_000, ("produce", 1000): 500_000}
READS = {100: 4_000_000, 1000: 1_000_000}
PURE_COUNT = 60_000

START_CPU = "start of a broker: CPU until a client has metadata"
START_MEMORY = "start of a broker: resident memory"
IN_PROCESS_CPU = "test broker in a Python process: CPU"
HELP_CPU = "`barnabas --help`: CPU"


def start(session: Session, sources: dict[str, Path]) -> None:
    session.board.row(START_CPU, "s")
    session.board.row(START_MEMORY, "MB")
    session.board.row(IN_PROCESS_CPU, "s")
    session.board.row(HELP_CPU, "s")
    for round_number in range(-1, 2 * session.rounds):
        for name in _turns(round_number, sources):
            with session.fresh(name, "start") as contender:
                values = {START_CPU: contender.broker.cpu_seconds()}
                values[START_MEMORY] = contender.broker.resident_bytes() / 1e6
            values[IN_PROCESS_CPU] = cpu_of_python(sources[name], "-c", TRIAL)
            values[HELP_CPU] = cpu_of_python(sources[name], "-m", "barnabas", "--help")
            _note(session, name, round_number, values)


def run(session: Session, sources: dict[str, Path]) -> None:
    share = 4 if session.quick else 1
    (_, host) = session.contenders  # the new broker serves both clients
    for size in (100, 1000):
        count = COUNTS["produce", size] // share
        _produce(session, host, sources, f"client produce, {size} B", count, size)
        _produce(session, host, sources, f"client produce, {size} B, pure twin", PURE_COUNT, size, pure=True)
        filled = host.new_topic()
        _worker(sources["new"], "produce", host, filled, READS[size] // share, size)
        for work in ("consume", "poll_arrow"):
            _read(session, host, sources, work, filled, READS[size] // share, size)
        host.delete_topic(filled)


def _produce(
    session: Session, host: Contender, sources: dict[str, Path], title: str, count: int, size: int, pure: bool = False
) -> None:
    rate, cpu, memory = f"{title}: rate", f"{title}: client CPU per million", f"{title}: most memory"
    session.board.row(rate, "records/s")
    session.board.row(cpu, "s")
    session.board.row(memory, "MB")
    for round_number in range(-1, session.rounds):
        for name in _turns(round_number, sources):
            topic = host.new_topic()
            made = _worker(sources[name], "produce", host, topic, count, size, pure=pure)
            host.delete_topic(topic)
            values = {rate: count / made["seconds"], cpu: made["cpu"] / count * 1e6, memory: made["resident"] / 1e6}
            _note(session, name, round_number, values)


def _read(
    session: Session, host: Contender, sources: dict[str, Path], work: str, topic: str, count: int, size: int
) -> None:
    title = f"client {work}, {size} B"
    rate, cpu = f"{title}: rate", f"{title}: client CPU per million"
    session.board.row(rate, "records/s")
    session.board.row(cpu, "s")
    for round_number in range(-1, session.rounds):
        for name in _turns(round_number, sources):
            read = _worker(sources[name], work, host, topic, count, size)
            values = {rate: count / read["seconds"], cpu: read["cpu"] / count * 1e6}
            _note(session, name, round_number, values)


def _worker(
    source: Path, work: str, host: Contender, topic: str, count: int, size: int, pure: bool = False
) -> dict[str, float]:
    """The worker of this checkout with the client of that source folder."""
    command = [sys.executable, "-m", "benchmarks.client_worker", CLIENT, work, host.bootstrap, topic]
    environment = os.environ | {"PYTHONPATH": str(source)} | ({"BARNABAS_PURE": "1"} if pure else {})
    done = subprocess.run(
        [*command, str(count), str(size)],
        env=environment,
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
        timeout=300,
    )
    if done.returncode:
        raise RuntimeError(f"{source} {work}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def cpu_of_python(source: Path, *arguments: str) -> float:
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    environment = os.environ | {"PYTHONPATH": str(source)}
    subprocess.run([sys.executable, *arguments], env=environment, cwd=ROOT, capture_output=True, check=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _turns(round_number: int, sources: dict[str, Path]) -> list[str]:
    return list(sources) if round_number % 2 == 0 else list(sources)[::-1]


def _note(session: Session, name: str, round_number: int, values: dict[str, float]) -> None:
    """The first round warms up."""
    if round_number >= 0:
        for title, value in values.items():
            session.board.add(title, name, value)
