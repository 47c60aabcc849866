"""`python -m benchmarks.metrics_cost [--rounds 40]`: what counting costs a broker and a client.

There is no switch for it, so a copy of the sources is made without the lines that count, and both are run in turns
with the same work: small batches one by one (the worst for the broker's counters), fetches, and records through the
client's `send` and `poll`. Compared is the processor time of the process that is looked at, which other processes do
not change, and its shortest bursts, since a busy machine makes them longer.
Must reach: under 2 % for the broker, under 1 % for the client.
"""

from __future__ import annotations

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

from barnabas_process import BarnabasProcess
from raw_client import RawClient, batch, fetch_request, produce_request

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 2_000
RECORDS = 50_000
"""Of one burst."""
COUNTING = {
    "server/hosted_partition.py": [r"traffic\.\w+ \+= .*", r"traffic = self\.traffic", r"self\.traffic\.\w+ \+= .*"],
    "server/handlers/fetch.py": [r"read\.hosted\.traffic\.\w+ \+= .*"],
    "server/reading.py": [r"hosted\.traffic\.fetches \+= 1"],
    "server/dispatch.py": [
        r"meter\.count \+= 1",
        r"meter\.local\.add\(.*",
        r"context\.meter\.count \+= 1.*",
        r"\(context\.meter\.local_of_waiting if waits.*",
    ],
    "client/connection.py": [r"self\._meter\.request_size\.add\(.*", r"self\._meter\.responded\(.*"],
    "client/producer/sender.py": [r"self\._meters\.queue_time\.add\(.*", r"self\._meters\.\w+\.add\(.*"],
    "client/producer/outcomes.py": [r"self\._meters\.acknowledged\(.*"],
    "client/consumer/fetcher.py": [r"self\.meters\.\w+\.add\(.*", r"self\.meters\.topic\(.*"],
    "client/consumer/polling.py": [r"self\._meters\.topic\(.*", r"self\._meters\.polled\(.*"],
}
"""Lines that count, by file: what is left of them is `pass`."""
CLIENT = """
import sys, time
from barnabas import Consumer, Producer, TopicPartition
bootstrap, topic, burst = sys.argv[1], sys.argv[2], int(sys.argv[3])
value = b"x" * 100
producer, consumer = Producer(bootstrap), Consumer(bootstrap)
producer.send(topic, value).result(60)
consumer.assign([TopicPartition(topic, 0)])
consumer.seek_to_beginning()
consumer.poll(10)
print("ready", flush=True)
for _ in sys.stdin:
    times = [time.process_time()]
    for _ in range(burst):
        producer.send(topic, value)
    producer.flush()
    times.append(time.process_time())
    left = burst
    while left > 0:
        left -= len(consumer.poll(1))
    times.append(time.process_time())
    print(times[1] - times[0], times[2] - times[1], flush=True)
"""


def without_counting(directory: Path) -> Path:
    """A copy of the sources that counts nothing."""
    copy = directory / "src"
    shutil.copytree(ROOT / "src", copy, ignore=shutil.ignore_patterns("__pycache__"))
    for name, patterns in COUNTING.items():
        path = copy / "barnabas" / name
        text = path.read_text()
        for pattern in patterns:
            text, found = re.subn(rf"(?m)^( +){pattern}$", r"\1pass", text)
            assert found, f"{name}: nothing is like {pattern}"
        path.write_text(text)
    return copy


class ClientProcess:
    """A producer and a consumer that work on request."""

    def __init__(self, sources: Path, bootstrap: str, topic: str) -> None:
        environment = {**os.environ, "PYTHONPATH": str(sources)}
        command = [sys.executable, "-c", CLIENT, bootstrap, topic, str(RECORDS)]
        self._process = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self._read()

    def burst(self) -> list[float]:
        """Processor seconds for `send` and for `poll`."""
        assert self._process.stdin is not None
        self._process.stdin.write("go\n")
        self._process.stdin.flush()
        return [float(word) for word in self._read().split()]

    def close(self) -> None:
        self._process.kill()
        self._process.communicate()

    def _read(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


class BrokerLoad:
    """One connection to one broker."""

    def __init__(self, broker: BarnabasProcess) -> None:
        self._broker = broker
        self._client = RawClient(broker.bootstrap, 120)
        self._client.create_topic("t")
        self._requests: list[Any] = [
            produce_request("t", batch(*[b"x" * 100] * 10)),
            fetch_request("t", 0, partition_max_bytes=1),
        ]

    def burst(self) -> list[float]:
        """Processor seconds of the broker for Produce and for Fetch."""
        found = []
        for request in self._requests:
            before = self._broker.cpu_seconds()
            for _ in range(REQUESTS // 50):
                for _ in range(50):
                    self._client.post(request, 12)
                for _ in range(50):
                    self._client.read_frame()
            found.append(self._broker.cpu_seconds() - before)
        return found


def in_turns(on: Callable[[], list[float]], off: Callable[[], list[float]], rounds: int) -> list[float]:
    """The shortest burst with counting over the shortest without: what disturbs a burst only makes it longer."""
    on(), off()  # warm
    times: tuple[list[list[float]], list[list[float]]] = [], []
    for number in range(rounds):
        for which in (0, 1) if number % 2 else (1, 0):
            times[which].append((on, off)[which]())
    shortest = [[min(each) for each in zip(*bursts, strict=True)] for bursts in times]
    return [a / b for a, b in zip(*shortest, strict=True)]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=40)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        plain, counting = without_counting(directory), ROOT / "src"
        with (
            BarnabasProcess(directory / "on", sources=counting) as on,
            BarnabasProcess(directory / "off", sources=plain) as off,
        ):
            ratios = in_turns(BrokerLoad(on).burst, BrokerLoad(off).burst, options.rounds)
            with RawClient(on.bootstrap) as admin:
                admin.create_topic("on")
                admin.create_topic("off")
            clients = ClientProcess(counting, on.bootstrap, "on"), ClientProcess(plain, on.bootstrap, "off")
            ratios += in_turns(clients[0].burst, clients[1].burst, options.rounds)
            for client in clients:
                client.close()
    for name, ratio in zip(("Produce, batches of 10", "Fetch", "send", "poll"), ratios, strict=True):
        print(f"{name}: {(ratio - 1) * 100:+.1f} %")


if __name__ == "__main__":
    main()
