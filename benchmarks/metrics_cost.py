"""`python -m benchmarks.metrics_cost [--rounds 7]`: what counting costs a broker and a client.

There is no switch for it, so a copy of the sources is made without the lines that count, and both are run in turns
with the same work: small batches one by one (the worst for the broker's counters), fetches, and records through the
client's `send` and `poll`. Compared is the processor time of the process that is looked at, which other processes do
not change.
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
from pathlib import Path
from statistics import median
from typing import Any

from barnabas_process import BarnabasProcess
from raw_client import RawClient, batch, fetch_request, produce_request

ROOT = Path(__file__).resolve().parents[1]
REQUESTS = 20_000
RECORDS = 300_000
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
bootstrap, topic, count = sys.argv[1], sys.argv[2], int(sys.argv[3])
value = b"x" * 100
with Producer(bootstrap) as producer:
    producer.send(topic, value).result(60)
    start = time.process_time()
    for _ in range(count):
        producer.send(topic, value)
    producer.flush()
    print(time.process_time() - start)
with Consumer(bootstrap) as consumer:
    consumer.assign([TopicPartition(topic, 0)])
    consumer.seek_to_beginning()
    consumer.poll(10)
    start, left = time.process_time(), count // 2
    while left > 0:
        left -= len(consumer.poll(1))
    print(time.process_time() - start)
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


def broker_times(sources: Path, directory: Path) -> list[float]:
    """Processor seconds for Produce and for Fetch."""
    with BarnabasProcess(directory, sources=sources) as broker, RawClient(broker.bootstrap, 120) as client:
        client.create_topic("t")
        produce = produce_request("t", batch(*[b"x" * 100] * 10))
        fetch = fetch_request("t", 0, partition_max_bytes=1)
        found = []
        for request in (produce, fetch):
            before = broker.cpu_seconds()
            pipelined(client, request)
            found.append(broker.cpu_seconds() - before)
        return found


def pipelined(client: RawClient, request: Any) -> None:
    for _ in range(REQUESTS // 50):
        for _ in range(50):
            client.post(request, 12)
        for _ in range(50):
            client.read_frame()


def client_times(sources: Path, bootstrap: str, topic: str) -> list[float]:
    environment = {**os.environ, "PYTHONPATH": str(sources)}
    command = [sys.executable, "-c", CLIENT, bootstrap, topic, str(RECORDS)]
    printed = subprocess.run(command, env=environment, check=True, capture_output=True, text=True).stdout
    return [float(line) for line in printed.split()]


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=7)
    options = parser.parse_args()
    names = ["Produce, batches of 10", "Fetch", "send", "poll"]
    ratios: list[list[float]] = [[] for _ in names]
    with tempfile.TemporaryDirectory() as name:
        directory = Path(name)
        plain, counting = without_counting(directory), ROOT / "src"
        with BarnabasProcess(directory / "for-clients") as broker, RawClient(broker.bootstrap) as admin:
            for number in range(options.rounds):
                times = {}
                order = [("on", counting), ("off", plain)]
                for which, sources in order if number % 2 else reversed(order):
                    topic = f"{which}-{number}"
                    admin.create_topic(topic)
                    of_broker = broker_times(sources, directory / topic)
                    times[which] = of_broker + client_times(sources, broker.bootstrap, topic)
                for each, on, off in zip(ratios, times["on"], times["off"], strict=True):
                    each.append(on / off)
    for name, each in zip(names, ratios, strict=True):
        print(f"{name}: {(median(each) - 1) * 100:+.1f} % (rounds {', '.join(f'{one:.3f}' for one in sorted(each))})")


if __name__ == "__main__":
    main()
