"""Python clients side by side on the same Barnabas broker: each run is its own process, in turns.

The slower a client, the fewer records it gets, so that every run takes about the same time; rates are compared. Nothing
is read while produced data is still being written to disk. All read the same topic, which confluent-kafka has filled.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from statistics import median

from benchmarks import ROOT, loopback
from benchmarks.board import BARNABAS, number
from benchmarks.session import Contender, Session

OURS = "barnabas"
PURE = "barnabas, pure twin"
CONFLUENT = "confluent-kafka"
DEEP = "confluent-kafka, deep queues"
AIOKAFKA = "aiokafka"
KAFKA_PYTHON = "kafka-python"
CLIENTS = (OURS, PURE, CONFLUENT, DEEP, AIOKAFKA, KAFKA_PYTHON)
PRODUCERS = tuple(client for client in CLIENTS if client != DEEP)
# Records per run at 100 B; at 1000 B a quarter of that.
COUNTS = {OURS: 1_000_000, PURE: 60_000, CONFLUENT: 1_000_000, AIOKAFKA: 200_000, KAFKA_PYTHON: 60_000}
FAST_PRODUCERS = (OURS, CONFLUENT)
FAST_CONSUMERS = (OURS, DEEP)
# These read this many, of either size, so that the time to connect (20 ms) is negligible.
FAST_RECORDS = 4_000_000
# The fast ones repeat this often per round, because one outlier of three would decide.
FAST_RUNS = 3
# Enough, of either size, that its pauses at full queues have their long-run share.
CONFLUENT_RECORDS = 1_000_000
BUFFER_MEMORY_MB = 33.6
HELP_LIMIT_MS = 150
LOOPBACK = "for comparison: 1000 B records as bare bytes, sendfile to recv over loopback, no broker and no client"


@dataclass(slots=True)
class ClientRow:
    title: str
    unit: str
    goals: tuple[tuple[str, Callable[[ClientRow], bool]], ...] = ()
    samples: dict[str, list[float]] = field(default_factory=dict)

    def of(self, client: str) -> float:
        return median(self.samples[client])

    def line(self) -> str:
        cells = [self.title, self.unit, *(self._cell(client) for client in CLIENTS)]
        verdicts = [f"{text}: {'yes' if reached(self) else 'NO'}" for text, reached in self.goals]
        return "| " + " | ".join([*cells, "; ".join(verdicts)]) + " |"

    def _cell(self, client: str) -> str:
        samples = self.samples.get(client)
        if not samples:
            return "-"
        spread = f" ({number(min(samples))}-{number(max(samples))})" if len(samples) > 1 else ""
        return number(median(samples)) + spread


def table(rows: list[ClientRow]) -> str:
    head = ["what", "unit", *CLIENTS, "must: reached"]
    return "\n".join([f"| {' | '.join(head)} |", "|---" * len(head) + "|", *(row.line() for row in rows)])


def at_least(factor: float, other: str, client: str = OURS) -> tuple[str, Callable[[ClientRow], bool]]:
    name = "" if client == OURS else f"{client} "
    return f"{name}>= {factor:g} x {other}", lambda row: row.of(client) >= factor * row.of(other)


def run(session: Session) -> None:
    rounds = min(session.rounds, 3)
    rows: dict[str, ClientRow] = {}
    with session.fresh(BARNABAS, "clients") as contender:
        for size in (100, 1000):
            _measure(session, contender, size, rounds, rows)
    rows["help"] = ClientRow(
        "`barnabas --help`", "ms", ((f"< {HELP_LIMIT_MS}", lambda row: row.of(OURS) < HELP_LIMIT_MS),)
    )
    for _ in range(max(rounds, 3)):
        _add(rows["help"], OURS, help_ms())
    rows["loopback"] = ClientRow(LOOPBACK, "records/s")
    for _ in range(max(rounds, 3)):
        _add(rows["loopback"], OURS, loopback.bytes_per_second(session.directory) / 1000)
    session.extra_tables["Python clients on the same broker"] = table(list(rows.values()))


def _measure(session: Session, contender: Contender, size: int, rounds: int, rows: dict[str, ClientRow]) -> None:
    produce = rows.setdefault(
        f"produce {size}",
        ClientRow(
            f"produce, {size} B",
            "records/s",
            (at_least(5, AIOKAFKA), at_least(1, CONFLUENT), at_least(1, KAFKA_PYTHON, PURE)),
        ),
    )
    memory = rows.setdefault(
        f"memory {size}",
        ClientRow(
            f"produce, {size} B: most memory of the process",
            "MB",
            ((f"< buffer.memory + 60 = {BUFFER_MEMORY_MB + 60:g}", lambda row: row.of(OURS) < BUFFER_MEMORY_MB + 60),),
        ),
    )
    consume = rows.setdefault(
        f"consume {size}",
        ClientRow(
            f"consume, {size} B: records",
            "records/s",
            (at_least(1, CONFLUENT), at_least(1, DEEP), at_least(1, KAFKA_PYTHON, PURE)),
        ),
    )
    arrow = rows.setdefault(
        f"arrow {size}",
        ClientRow(
            f"consume, {size} B: poll_arrow",
            "records/s",
            tuple(
                (f">= 4 x {other}'s records", lambda row, other=other: row.of(OURS) >= 4 * consume.of(other))
                for other in (CONFLUENT, DEEP)
            ),
        ),
    )
    share = 4 if session.quick else 1
    counts = {client: max(1000, count // (1 if size == 100 else 4) // share) for client, count in COUNTS.items()}
    reads = counts | dict.fromkeys(FAST_CONSUMERS, FAST_RECORDS // share) | {CONFLUENT: CONFLUENT_RECORDS // share}
    for round_number in range(-1, FAST_RUNS * rounds):
        for client in _turns(round_number, PRODUCERS if round_number < rounds else FAST_PRODUCERS):
            topic = contender.new_topic()
            made = _worker(client, "produce", contender, topic, counts[client], size)
            contender.delete_topic(topic)
            if round_number >= 0:
                _add(produce, client, counts[client] / made["seconds"])
                _add(memory, client, made["resident"] / 1e6)
    filled = contender.new_topic()
    _worker(CONFLUENT, "produce", contender, filled, max(reads.values()), size)
    os.sync()  # or the consumers would be measured while it is still being written to disk
    for round_number in range(-1, FAST_RUNS * rounds):
        for client in _turns(round_number, CLIENTS if round_number < rounds else FAST_CONSUMERS):
            read = _worker(client, "consume", contender, filled, reads[client], size)
            columns = _worker(client, "poll_arrow", contender, filled, reads[client], size) if client == OURS else None
            if round_number < 0:
                continue
            _add(consume, client, reads[client] / read["seconds"])
            if columns is not None:
                _add(arrow, client, reads[client] / columns["seconds"])
    contender.delete_topic(filled)


def _turns(round_number: int, clients: tuple[str, ...]) -> tuple[str, ...]:
    return clients if round_number % 2 == 0 else clients[::-1]


def _add(row: ClientRow, client: str, value: float) -> None:
    row.samples.setdefault(client, []).append(value)
    print(f"  {client:20} {row.title}: {number(value)} {row.unit}", flush=True)


def _worker(client: str, work: str, contender: Contender, topic: str, count: int, size: int) -> dict[str, float]:
    environment = os.environ | {"PYTHONPATH": str(ROOT / "src")}
    if client == PURE:
        environment["BARNABAS_PURE"] = "1"
    name = OURS if client == PURE else client
    command = [
        sys.executable,
        "-m",
        "benchmarks.client_worker",
        name,
        work,
        contender.bootstrap,
        topic,
        str(count),
        str(size),
    ]
    done = subprocess.run(command, env=environment, cwd=ROOT, capture_output=True, text=True, check=False, timeout=300)
    if done.returncode:
        raise RuntimeError(f"{client} {work}: {done.stderr[-2000:]}")
    result: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return result


def help_ms() -> float:
    started = time.perf_counter()
    subprocess.run([sys.executable, "-m", "barnabas", "--help"], cwd=ROOT, capture_output=True, check=True)
    return (time.perf_counter() - started) * 1000
