"""What the console costs and does on a large cluster: `python -m benchmarks.console`.

A broker process with 10,000 topics, 30,000 partitions and 1,000 groups, and a console process beside it: memory of the
console, CPU of the broker that the console causes (against the same broker without), times of pages, and the rate of a
search through 1 GB. Says how busy the machine was; with --small everything is a hundredth, for a quick look.
"""

import argparse
import json
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from urllib.parse import quote

from barnabas import Admin, Producer
from barnabas.client.admin.types import NewTopic

READY = {"server": re.compile(r" ready on (\S+) \("), "console": re.compile(r"console on (\S+)")}
RECORDS = (1000, 120)
TICKS = os.sysconf("SC_CLK_TCK")


class Process:
    """A command of Barnabas, until the end of the block."""

    def __init__(self, folder: Path, *words: str) -> None:
        self._output = folder / f"{words[0]}.out"
        with self._output.open("wb") as output:
            self.process = subprocess.Popen([sys.executable, "-m", "barnabas", *words], stdout=output, stderr=output)
        while (found := READY[words[0]].search(self._output.read_text())) is None:
            assert self.process.poll() is None, self._output.read_text()
            time.sleep(0.05)
        self.address = found[1]

    def __enter__(self) -> "Process":
        return self

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait()

    @property
    def cpu(self) -> float:
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / TICKS

    @property
    def memory(self) -> float:
        """MB that it has, and has had at most."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return max(int(found) for found in re.findall(r"Vm(?:RSS|HWM):\s+(\d+) kB", status)) / 1000


def share(process: Process, seconds: float) -> float:
    """Percent of a core over that time."""
    before, began = process.cpu, time.monotonic()
    time.sleep(seconds)
    return 100 * (process.cpu - before) / (time.monotonic() - began)


def prepare(bootstrap: str, topics: int, groups: int) -> None:
    with Admin(bootstrap, default_api_timeout_ms=600_000) as admin:
        for first in range(0, topics, 500):
            admin.create_topics(
                [NewTopic(name=f"topic-{each:05}", partitions=3) for each in range(first, min(topics, first + 500))]
            )
        for each in range(groups):
            name = f"topic-{each % topics:05}"
            admin.alter_group_offsets(f"group-{each:04}", {(name, partition): 0 for partition in range(3)})


def fill(bootstrap: str, topic: str, size: int, record: int) -> None:
    value = b"x" * (record - 20)
    with Admin(bootstrap) as admin:
        admin.create_topic(topic, 1)
    with Producer(bootstrap, linger_ms=20, batch_size=512 * 1024) as producer:
        for number in range(size // record):
            producer.send(topic, value + b"%020d" % number)
        producer.flush()


def timed(address: str, path: str) -> float:
    began = time.monotonic()
    with urllib.request.urlopen(address + path, timeout=120) as response:
        response.read()
    return time.monotonic() - began


def search(address: str, topic: str, text: str) -> tuple[float, float, dict[str, float]]:
    """Seconds to the first match and to the end, and what the end says."""
    path = f"/api/topics/{topic}/messages?start=oldest&limit=10000&filter={quote(json.dumps(text))}"
    began, first, done = time.monotonic(), 0.0, {}
    with urllib.request.urlopen(address + path, timeout=600) as response:
        kind = ""
        for line in response:
            if line.startswith(b"event: "):
                kind = line[7:].strip().decode()
            elif kind == "rows" and not first:
                first = time.monotonic() - began
            elif kind == "done" and line.startswith(b"data: "):
                done = json.loads(line[6:])
    return first, time.monotonic() - began, done


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--small", action="store_true")
    parser.add_argument("--seconds", type=float, default=60.0)
    options = parser.parse_args()
    topics, groups, size = (100, 10, 10_000_000) if options.small else (10_000, 1_000, 1_000_000_000)
    with (
        tempfile.TemporaryDirectory() as name,
        Process(
            Path(name), "server", "--listen", "127.0.0.1:0", "--data-dir", f"{name}/data", "--set", "metrics.listener="
        ) as broker,
    ):
        prepare(broker.address, topics, groups)
        for record in RECORDS:
            fill(broker.address, f"searched-{record}", size, record)
        time.sleep(5)
        rows: list[tuple[str, str]] = []
        quiet = share(broker, options.seconds / 2)
        with Process(Path(name), "console", "-b", broker.address, "--listen", "127.0.0.1:0") as console:
            time.sleep(min(30.0, options.seconds))  # the first look is no steady state
            busy = share(broker, options.seconds)
            rows.append(("broker CPU without and with the console", f"{quiet:.2f} and {busy:.2f} % of a core"))
            rows.append(("console CPU", f"{share(console, options.seconds / 2):.1f} % of a core"))
            for path in ("/api/overview", "/api/topics", "/api/topics?filter=0042", "/api/groups?sort=lag&order=desc"):
                times = [timed(console.address, f"{path}{'&' if '?' in path else '?'}x={each}") for each in range(7)]
                rows.append((path, f"{statistics.median(times) * 1000:.0f} ms, at most {max(times) * 1000:.0f}"))
            rows.append(("console memory", f"{console.memory:.0f} MB"))
            for record in RECORDS:
                before = console.cpu
                first, took, done = search(console.address, f"searched-{record}", f"{42:020d}")
                used = console.cpu - before
                rate = f"{done['bytes'] / took / 1e6:.0f} MB/s, {done['scanned'] / took:,.0f} records/s"
                rows.append((f"search in records of {record} B", f"{rate}, first match after {first * 1000:.0f} ms"))
                per_cpu = f"{done['bytes'] / used / 1e6:.0f} MB, {done['scanned'] / used:,.0f} records"
                rows.append(("  per second of the console's CPU", per_cpu))
            rows.append(("console memory after the searches", f"{console.memory:.0f} MB"))
        load = ", ".join(f"{each:.1f}" for each in os.getloadavg())
        print(f"{topics:,} topics, {groups:,} groups; load of the machine {load} on {os.cpu_count()} cores")
        for what, value in rows:
            print(f"{what:45} {value}")


if __name__ == "__main__":
    main()
