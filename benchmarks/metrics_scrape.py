"""`python -m benchmarks.metrics_scrape [--partitions 10000] [--groups 1000]`: what a scrape of a large broker costs.

The broker runs in this process; a process of its own scrapes it, again and again. The table has the time of a scrape as
that process sees it, and the longest turn of the broker's loop meanwhile: in processor time of the loop's thread, which
a busy machine does not make longer. Must reach: under 1 s, and no turn over 20 ms.
"""

from __future__ import annotations

import argparse
import asyncio
import subprocess
import sys
import tempfile
import time
from statistics import median
from typing import Any

from barnabas import Admin, NewTopic, Producer
from barnabas.config.broker import BrokerConfig
from barnabas.metadata.stores.memory import MemoryStore
from barnabas.server.broker import Broker, make_parts
from barnabas.types import TopicPartition

PARTITIONS_OF_A_TOPIC = 100
PARTITIONS_OF_A_GROUP = 10
SCRAPER = """
import sys, time, urllib.request
for _ in range(int(sys.argv[2])):
    start = time.perf_counter()
    size = len(urllib.request.urlopen(sys.argv[1]).read())
    print(time.perf_counter() - start, size)
"""


class TurnTimes:
    """Stands between the loop and its selector: from one wait to the next is a turn."""

    def __init__(self, selector: Any) -> None:
        self._selector = selector
        self._woken = time.thread_time()
        self.longest_s = 0.0

    def __getattr__(self, name: str) -> Any:
        return getattr(self._selector, name)

    def select(self, timeout: float | None = None) -> Any:
        self.longest_s = max(self.longest_s, time.thread_time() - self._woken)
        events = self._selector.select(timeout)
        self._woken = time.thread_time()
        return events


def fill(bootstrap: str, partitions: int, groups: int) -> None:
    topics = [f"topic-{number:04d}" for number in range(partitions // PARTITIONS_OF_A_TOPIC)]
    places = [TopicPartition(topic, number) for topic in topics for number in range(PARTITIONS_OF_A_TOPIC)]
    with Admin(bootstrap) as admin, Producer(bootstrap) as producer:
        for start in range(0, len(topics), 10):
            wanted = [NewTopic(name=topic, partitions=PARTITIONS_OF_A_TOPIC) for topic in topics[start : start + 10]]
            admin.create_topics(wanted, timeout=120)
        for topic, partition in places:
            producer.send(topic, b"x", partition=partition)
        producer.flush()
        for number in range(groups):
            first = number * PARTITIONS_OF_A_GROUP % len(places)
            offsets = dict.fromkeys(places[first : first + PARTITIONS_OF_A_GROUP], 0)
            admin.alter_group_offsets(f"group-{number:04d}", offsets)


async def measure(partitions: int, groups: int, times: int, directory: str) -> None:
    turns = asyncio.get_running_loop()._selector = TurnTimes(asyncio.get_running_loop()._selector)  # type: ignore[attr-defined]
    config = BrokerConfig.parse(
        {
            "listeners": "PLAINTEXT://127.0.0.1:0",
            "node.id": "1",
            "log.dirs": directory,
            "metrics.listener": "127.0.0.1:0",
            "offsets.topic.num.partitions": "10",
        }
    )
    broker = Broker(make_parts(config, store=MemoryStore()))
    await broker.start()
    await asyncio.to_thread(fill, broker.address, partitions, groups)
    await asyncio.sleep(1)
    turns.longest_s, busy_s = 0.0, time.thread_time()
    scraper = await asyncio.create_subprocess_exec(
        sys.executable, "-c", SCRAPER, f"{broker.metrics.url}/metrics", str(times), stdout=subprocess.PIPE
    )
    out, _ = await scraper.communicate()
    longest_s, busy_s = turns.longest_s, time.thread_time() - busy_s
    await broker.stop()
    rows = [line.split() for line in out.decode().splitlines()]
    seconds = sorted(float(row[0]) for row in rows)
    print(f"{partitions} partitions, {groups} groups, {int(rows[0][1]) / 1e6:.1f} MB of text, {len(rows)} scrapes")
    print(f"scrape: median {median(seconds):.3f} s, worst {seconds[-1]:.3f} s")
    print(f"processor time of the loop per scrape: {busy_s / len(rows):.3f} s")
    print(f"longest turn of the loop: {longest_s * 1000:.1f} ms")


def main() -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("--partitions", type=int, default=10_000)
    parser.add_argument("--groups", type=int, default=1_000)
    parser.add_argument("--times", type=int, default=10)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(measure(options.partitions, options.groups, options.times, directory))


if __name__ == "__main__":
    main()
