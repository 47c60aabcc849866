"""`python -m benchmarks.delayed [--pending N]`: how late delayed messages are, and what a million that wait cost.

One broker process of its own, one partition, records of 100 bytes. Lateness is the time of the append to the target
(LogAppendTime) after the due time. Three parts: due times spread evenly at 1,000 per second, sent before; 50,000
records due at the same moment; records due in days, for memory and the time from a restart (after kill -9) until all
are known.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from urllib.request import urlopen

from barnabas_process import BarnabasProcess
from server_process import free_port

from barnabas import Admin, Consumer, Producer

VALUE = b"x" * 100
DAY_MS = 86_400_000


class Measured:
    def __init__(self, directory: Path) -> None:
        self._metrics_port = free_port()
        settings = {"metrics.listener": f"127.0.0.1:{self._metrics_port}"}
        self.broker = BarnabasProcess(directory, settings=settings).start()

    def make_topics(self, name: str) -> None:
        with Admin(self.broker.bootstrap) as admin:
            admin.create_topic(name, 1, 1, {"message.timestamp.type": "LogAppendTime"})
            admin.create_topic(f"{name}.delayed", 1, 1, {"delay.target.topic": name})

    def send(self, name: str, due_times: Iterable[int]) -> None:
        with Producer(self.broker.bootstrap, linger_ms=5) as producer:
            for due_ms in due_times:
                producer.send(f"{name}.delayed", VALUE, headers=[("deliver-at", b"%d" % due_ms)])

    def pending(self, name: str) -> int:
        with urlopen(f"http://127.0.0.1:{self._metrics_port}/metrics", timeout=60) as response:
            wanted = f'barnabas_delayed_pending{{topic="{name}.delayed"}} '
            lines = (line for line in response.read().decode().splitlines() if line.startswith(wanted))
            return int(next(lines, "0 -1").split()[-1])

    def wait_for_pending(self, name: str, count: int) -> float:
        began = time.monotonic()
        while self.pending(name) != count:
            time.sleep(0.05)
        return time.monotonic() - began

    def arrivals(self, name: str, count: int) -> list[int]:
        """Timestamps at which they were appended, in order."""
        found: list[int] = []
        options = {"isolation_level": "read_committed", "auto_offset_reset": "earliest"}
        with Consumer(self.broker.bootstrap, group_id=None, **options) as consumer:  # type: ignore[arg-type]
            consumer.assign([(name, 0)])
            while len(found) < count:
                found += [each.timestamp for each in consumer.poll(1.0, max_records=10_000)]
        return found


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def waited_for_cpu(pid: int) -> float:
    """Seconds that its main thread could have run, but others did."""
    return int(Path(f"/proc/{pid}/schedstat").read_text().split()[1]) / 1e9


def load() -> str:
    return f"load average {os.getloadavg()[0]:.1f}"


def spread(measured: Measured, per_second: int, seconds: int) -> None:
    measured.make_topics("spread")
    start_ms = now_ms() + 5_000
    due_times = [start_ms + number * 1000 // per_second for number in range(per_second * seconds)]
    measured.send("spread", due_times)
    assert now_ms() < start_ms, "sending took too long"
    cpu_seconds, waited = measured.broker.cpu_seconds(), waited_for_cpu(measured.broker.pid)
    time.sleep(max(0.0, due_times[-1] - now_ms()) / 1000 + 0.5)  # nobody else asks the broker for anything meanwhile
    cpu_seconds = measured.broker.cpu_seconds() - cpu_seconds
    waited = waited_for_cpu(measured.broker.pid) - waited
    arrived = measured.arrivals("spread", len(due_times))
    late = sorted(there - due for there, due in zip(arrived, due_times, strict=True))
    print(
        f"{per_second} deliveries/s for {seconds} s: late by {late[len(late) // 2]} ms (median),"
        f" {late[len(late) * 99 // 100]} ms (p99), {late[-1]} ms (longest); {late[0]} ms (shortest);"
        f" {cpu_seconds / seconds:.2f} of a core, {waited / seconds:.2f} of the time waiting for one; {load()}",
        flush=True,
    )


def same_moment(measured: Measured, count: int) -> None:
    measured.make_topics("moment")
    due_ms = now_ms() + 8_000
    measured.send("moment", (due_ms for _ in range(count)))
    assert now_ms() < due_ms, "sending took too long"
    arrived = measured.arrivals("moment", count)
    print(f"{count} due at the same moment: the last one {arrived[-1] - due_ms} ms late; {load()}", flush=True)


def many_pending(measured: Measured, count: int) -> None:
    measured.make_topics("many")
    before_mb = measured.broker.resident_bytes() / 1e6
    start_ms = now_ms() + DAY_MS
    measured.send("many", (start_ms + number * 7 % (20 * DAY_MS) for number in range(count)))
    measured.wait_for_pending("many", count)
    sent_mb = measured.broker.resident_bytes() / 1e6
    measured.broker.kill()
    measured.broker.start()
    fresh_mb, started_seconds = measured.broker.resident_bytes() / 1e6, measured.broker.start_seconds
    known_seconds = measured.wait_for_pending("many", count)
    print(
        f"{count} pending: {before_mb:.0f} MB before, {sent_mb:.0f} MB after; restarted after kill -9: serves after"
        f" {started_seconds:.1f} s with {fresh_mb:.0f} MB, all known {known_seconds:.1f} s later with"
        f" {measured.broker.resident_bytes() / 1e6:.0f} MB; {load()}",
        flush=True,
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.delayed", description=__doc__)
    parser.add_argument("--pending", type=int, default=1_000_000)
    parser.add_argument("--seconds", type=int, default=20)
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="barnabas-delayed-") as directory:
        measured = Measured(Path(directory))
        try:
            spread(measured, 1_000, arguments.seconds)
            same_moment(measured, 50_000)
            many_pending(measured, arguments.pending)
        finally:
            measured.broker.stop()


if __name__ == "__main__":
    main()
