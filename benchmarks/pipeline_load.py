"""Sends app events to `ods_base_log` at a fixed rate, from its own process, and prints the cost as JSON.

    python -m benchmarks.pipeline_load BOOTSTRAP RATE COUNT

RATE 0: as fast as possible. The events are prepared and sent repeatedly; the time of an event (`ts`) is when it is
sent, so that a reader knows its age.
"""

from __future__ import annotations

import itertools
import json
import sys
import time

import pyarrow

from barnabas import Producer
from barnabas.pipeline.generator import GeneratorOptions, generate

TOPIC = "ods_base_log"
POOL = 20_000
SLICE_S = 0.01
UNPACED = 1000
TIME_LENGTH = 14
"""`1683276840000}`: the end of an event."""


class Pool:
    def __init__(self) -> None:
        records = list(itertools.islice(generate(GeneratorOptions(seed=1, change_share=0.0, step_ms=0)), 2 * POOL))
        events = [record for record in records if record.topic == TOPIC][:POOL]
        self.keys = pyarrow.array([record.key for record in events], pyarrow.binary())
        self.heads = [(record.value or b"")[:-TIME_LENGTH] for record in events]
        self.next = 0

    def take(self, count: int) -> pyarrow.RecordBatch:
        """The next events, up to the end of the pool, with the current time."""
        first, self.next = self.next, min(self.next + count, len(self.heads))
        now = b"%d}" % (time.time_ns() // 1_000_000)
        values = pyarrow.array([head + now for head in self.heads[first : self.next]], pyarrow.binary())
        keys = self.keys[first : self.next]
        self.next %= len(self.heads)
        return pyarrow.record_batch([keys, values], names=["key", "value"])


def send(bootstrap: str, rate: float, count: int) -> dict[str, float]:
    pool = Pool()
    with Producer(bootstrap, linger_ms=5, batch_size=131072) as producer:
        producer.send_arrow(pool.take(1), topic=TOPIC).result()
        cpu, started, sent, latest = time.process_time(), time.monotonic(), 1, 0.0
        while sent < count:
            elapsed = time.monotonic() - started
            due = UNPACED if not rate else int((elapsed + SLICE_S) * rate) - sent
            if due > 0:
                rows = pool.take(min(due, count - sent))
                producer.send_arrow(rows, topic=TOPIC)
                sent += rows.num_rows
            if rate:
                ahead = sent / rate - (time.monotonic() - started)
                latest = max(latest, -ahead)
                time.sleep(max(0.0, ahead))
        producer.flush()
        seconds = time.monotonic() - started
        cpu = time.process_time() - cpu
    return {"sent": sent, "seconds": seconds, "cpu": cpu, "behind": latest}


def main() -> None:
    bootstrap, rate, count = sys.argv[1:]
    print(json.dumps(send(bootstrap, float(rate), int(count))))


if __name__ == "__main__":
    main()
