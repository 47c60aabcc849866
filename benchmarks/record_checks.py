"""`python -m benchmarks.record_checks`: the cost of validating the records of a batch, as a share of an append.

No broker and no network: a log in a temporary directory. Best of many rounds, because of other load on the machine.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from storage_logs import NOW, open_test_log

from barnabas.config.topic import TopicConfig
from barnabas.records.builder import BatchBuilder
from barnabas.records.compression import CompressionType
from barnabas.records.conversion import open_payload
from barnabas.records.header import HEADER_SIZE, read_header
from barnabas.records.record_walk import walk_records
from barnabas.records.walk_result import INT64_MAX, INT64_MIN
from barnabas.storage.append_checks import prepare

ROUNDS = 400
SHAPES = [(1, 100), (1000, 100), (100, 1000)]


def batch_of(count: int, size: int, codec: CompressionType) -> bytearray:
    builder = BatchBuilder(codec)
    for number in range(count):
        text = b"%d of %d, " % (number * 7919, count)
        builder.append(NOW + number % 50, None, (text * (size // len(text) + 1))[:size])
    return builder.build()


def best_ns(work: Callable[[], object]) -> float:
    best = float("inf")
    for _ in range(ROUNDS):
        started = time.perf_counter_ns()
        work()
        best = min(best, time.perf_counter_ns() - started)
    return best


def measure(directory: Path, count: int, size: int, codec: CompressionType) -> str:
    config = TopicConfig(segment_bytes=1 << 30, max_message_bytes=1 << 24)
    log = open_test_log(directory, config)
    batch = batch_of(count, size, codec)
    header = read_header(batch)
    payload = open_payload(batch, header)

    def append() -> None:
        data = memoryview(batch)
        data[:8] = bytes(8)
        log.append_as_leader(data, 0, NOW, prepared=prepare(data, config, NOW) if codec else None)

    walk = best_ns(
        lambda: walk_records(payload, header.record_count, header.base_timestamp, False, INT64_MIN, INT64_MAX)
    )
    opened = best_ns(lambda: open_payload(batch, header)) if codec else 0.0
    whole = best_ns(append)
    log.close()
    return (
        f"{codec.config_name:>12} {count:5} x {size:4} B {len(batch) - HEADER_SIZE:7} B: walk {walk / 1000:7.2f} us "
        f"({walk / count:6.1f} ns per record), decompress {opened / 1000:7.1f} us, append {whole / 1000:7.1f} us, "
        f"walk {walk / whole:4.0%}"
    )


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        for codec in CompressionType:
            for number, (count, size) in enumerate(SHAPES):
                print(measure(Path(directory) / f"{codec.name}-{number}", count, size, codec), flush=True)


if __name__ == "__main__":
    main()
