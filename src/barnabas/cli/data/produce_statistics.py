"""Latencies and rates of a produce load, and Kafka's lines about them (ProducerPerformance).

Latencies are whole milliseconds, so a count for each value holds all of them and percentiles are exact. `record` is
called on the producer's I/O thread, or in the sender's if a batch was quick.
"""

import threading
import time
from collections.abc import Callable, Sequence
from typing import NamedTuple

from barnabas.cli.data.java_text import fixed, ratio

REPORTING_INTERVAL_MS = 5000
PERCENTILES = (0.5, 0.95, 0.99, 0.999)


class Run(NamedTuple):
    """Records next to each other in one batch: `sent` has how many were sent at which millisecond."""

    size: int
    sent: tuple[tuple[int, int], ...]


class Totals(NamedTuple):
    records: int
    records_per_second: float
    megabytes_per_second: float
    average_ms: float
    max_ms: int
    percentiles_ms: tuple[int, ...]
    failed: int = 0


def labelled(percentiles_ms: Sequence[float], shares: Sequence[float]) -> dict[str, float]:
    """`{"50": 1, "99.9": 7}`: each percentile under its name."""
    return {f"{share * 100:g}": value for share, value in zip(shares, percentiles_ms, strict=True)}


class ProduceStatistics:
    def __init__(self, report: Callable[[str], None] | None = None) -> None:
        self._report = report
        self._lock = threading.Lock()
        self._latencies: dict[int, int] = {}
        self._size = 0
        self.failed = 0
        self._window_max = 0
        self.start()

    def start(self) -> None:
        """The clock starts now: what came before was no part of the load."""
        self._started_ms = now_ms()
        self._new_window()

    def record(self, run: Run) -> None:
        """The broker has them."""
        now = now_ms()
        with self._lock:
            latencies = self._latencies
            for sent_ms, count in run.sent:
                latency = max(0, now - sent_ms)
                latencies[latency] = latencies.get(latency, 0) + count
                self._window_count += count
                self._window_latency += latency * count
                self._window_max = max(self._window_max, latency)
            self._size += run.size
            self._window_size += run.size
            if now - self._window_started_ms >= REPORTING_INTERVAL_MS:
                if self._report is not None:
                    self._report(self._window_line(now))
                self._new_window()

    def fail(self, run: Run) -> None:
        with self._lock:
            self.failed += sum(count for _, count in run.sent)

    def totals(self) -> Totals:
        with self._lock:
            latencies = dict(self._latencies)
            size, failed = self._size, self.failed
        elapsed = now_ms() - self._started_ms
        count = sum(latencies.values())
        return Totals(
            count,
            ratio(1000.0 * count, elapsed),
            ratio(1000.0 * size, elapsed) / 2**20,
            ratio(float(sum(latency * number for latency, number in latencies.items())), count),
            max(latencies, default=0),
            tuple(_percentile(latencies, int(share * count)) for share in PERCENTILES),
            failed,
        )

    def _new_window(self) -> None:
        self._window_started_ms = now_ms()
        self._window_count = 0
        self._window_size = 0
        self._window_latency = 0
        self._window_max = 0

    def _window_line(self, now: int) -> str:
        elapsed = now - self._window_started_ms
        return (
            f"{self._window_count} records sent, {fixed(ratio(1000.0 * self._window_count, elapsed), 1)} records/sec"
            f" ({fixed(ratio(1000.0 * self._window_size, elapsed) / 2**20, 2)} MB/sec),"
            f" {fixed(ratio(self._window_latency, self._window_count), 1)} ms avg latency,"
            f" {fixed(self._window_max, 1)} ms max latency."
        )


def total_line(totals: Totals) -> str:
    middle, tail, far, farthest = totals.percentiles_ms
    return (
        f"{totals.records} records sent, {fixed(totals.records_per_second, 1)} records/sec"
        f" ({fixed(totals.megabytes_per_second, 2)} MB/sec), {fixed(totals.average_ms, 2)} ms avg latency,"
        f" {fixed(totals.max_ms, 2)} ms max latency, {middle} ms 50th, {tail} ms 95th, {far} ms 99th,"
        f" {farthest} ms 99.9th."
    )


def failure_line(totals: Totals, wanted: int) -> str:
    return f"{wanted - totals.records} of {wanted} records were not produced"


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def _percentile(latencies: dict[int, int], index: int) -> int:
    """The latency at this place among all of them in order."""
    for latency in sorted(latencies):
        index -= latencies[latency]
        if index < 0:
            return latency
    return 0
