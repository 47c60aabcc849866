"""`python -m benchmarks.more_brokers [--turns N] [--share N]`: what a second broker process on the same host gives.

`barnabas up --brokers 1` and `--brokers 2` in turns, a topic with four partitions and one replica, two connections to
each partition's leader. The load generator sends ready bytes and counts what comes back, in this one process: its CPU
is printed, since brokers and generator share the cores. Ideal is twice the rate, where there are cores for it. With
`--share 0.1` each broker has a tenth of a core and no more: as on a machine with cores to spare, ten times slower.
"""

from __future__ import annotations

import argparse
import os
import selectors
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import NamedTuple

from eventually import eventually
from raw_client import RawClient, fetch_request
from server_process import free_port

from barnabas import Admin
from barnabas.protocol import encode_request
from barnabas.records import BatchBuilder
from benchmarks.core_shares import core_shares
from benchmarks.process_tree import tree_cpu
from benchmarks.wire import answer_size, connect, produce_frame, read_answer

TOPIC, PARTITIONS, CONNECTIONS, DEPTH = "spread", 4, 2, 8
RECORDS, RECORD_BYTES = 10, 100


class Load(NamedTuple):
    """One connection's request, which is sent over and over."""

    bootstrap: str
    request: bytes


@contextmanager
def brokers(count: int, directory: Path) -> Iterator[tuple[str, int]]:
    """The bootstrap address and the process id of `barnabas up`."""
    port = free_port() if count == 1 else 19292
    command = ["up", "--brokers", str(count), "--listen", f"127.0.0.1:{port}", "--data-dir", str(directory)]
    process = subprocess.Popen(
        [sys.executable, "-m", "barnabas", *command, "--console", ""], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    try:
        for line in process.stdout:
            if "Ctrl-C stops it" in line:  # not before: the first broker of two is ready earlier
                break
        yield ",".join(f"127.0.0.1:{port + number}" for number in range(count)), process.pid
    finally:
        process.send_signal(signal.SIGTERM)
        process.communicate()


def first_response(at: str, request: bytes) -> int:
    """Raises until the broker knows that it leads the partition."""
    with connect(at) as connection:
        return answer_size(connection, request)


def loads(bootstrap: str) -> dict[str, list[Load]]:
    """Of each kind: so many connections to the leader of each partition."""
    builder = BatchBuilder()
    for _ in range(RECORDS):
        builder.append(time.time_ns() // 1_000_000, None, b"x" * RECORD_BYTES)
    batch = bytes(builder.build())
    found: dict[str, list[Load]] = {"produce": [], "consume": []}
    with Admin(bootstrap) as admin:
        admin.create_topic(TOPIC, PARTITIONS, 1)
        addresses = {each.node.id: f"127.0.0.1:{each.node.port}" for each in admin.describe_cluster().brokers}
        for partition in eventually(lambda: admin.describe_topic(TOPIC)).partitions:
            assert partition.leader is not None
            at, number = addresses[partition.leader], partition.partition
            produce = produce_frame(TOPIC, number, batch)
            eventually(lambda at=at, produce=produce: first_response(at, produce))  # type: ignore[misc]
            with RawClient(at) as client:
                fetch = fetch_request(TOPIC, 0, number, partition_max_bytes=1)
                client.ask(fetch, 12)
            found["produce"] += [Load(at, produce)] * CONNECTIONS
            found["consume"] += [Load(at, bytes(encode_request(fetch, 12, 1, "bench")))] * CONNECTIONS
    return found


def flood(work: list[Load], seconds: float) -> float:
    """Responses per second, with DEPTH requests in flight on each connection."""
    selector = selectors.EpollSelector()
    sizes: dict[socket.socket, int] = {}
    uncompleted: dict[socket.socket, int] = {}
    requests: dict[socket.socket, bytes] = {}
    for load in work:
        connection = connect(load.bootstrap)
        connection.sendall(load.request)
        sizes[connection] = len(read_answer(connection))
        requests[connection] = load.request
        selector.register(connection, selectors.EVENT_READ)
        connection.sendall(load.request * DEPTH)
        uncompleted[connection] = DEPTH * sizes[connection]
    completed, started = 0, time.perf_counter()
    until = started + seconds
    while any(uncompleted.values()):
        sending = time.perf_counter() < until
        for key, _ in selector.select():
            connection: socket.socket = key.fileobj  # type: ignore[assignment]
            size, before = sizes[connection], uncompleted[connection]
            left = before - len(connection.recv(1 << 18))
            complete = -(-before // size) - -(-left // size)
            completed += complete
            if sending and complete:
                connection.sendall(requests[connection] * complete)
                left += complete * size
            uncompleted[connection] = left
    elapsed = time.perf_counter() - started
    selector.close()
    for connection in requests:
        connection.close()
    return completed / elapsed


def brokers_of(directory: Path) -> list[int]:
    """The process ids, as `barnabas up` has them in its folders."""
    return [int(path.read_text().split()[0]) for path in sorted(directory.glob("**/barnabas.pid"))]


def cpu_seconds(pid: int) -> float:
    return sum(seconds for _, seconds in tree_cpu(pid))


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.more_brokers", description=__doc__)
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--share", type=float, help="so much of a core for each broker; needs root")
    options = parser.parse_args()
    rates: dict[tuple[str, int], list[float]] = {}
    for _ in range(options.turns):
        for count in (1, 2):
            with (
                tempfile.TemporaryDirectory(prefix="barnabas-more-") as directory,
                brokers(count, Path(directory)) as (bootstrap, pid),
            ):
                for kind, work in loads(bootstrap).items():
                    flood(work, 1)
                    with core_shares(brokers_of(Path(directory)), options.share) if options.share else nullcontext():
                        own, theirs = time.process_time(), cpu_seconds(pid)
                        rate = flood(work, options.seconds)
                        own, theirs = time.process_time() - own, cpu_seconds(pid) - theirs
                    rates.setdefault((kind, count), []).append(rate)
                    print(
                        f"{kind}, {count} broker{'s' * (count > 1)}: {rate * RECORDS / 1000:.0f} k records/s;"
                        f" {theirs / options.seconds:.2f} cores of the brokers, {own / options.seconds:.2f} of the"
                        f" generator; load {os.getloadavg()[0]:.1f}",
                        flush=True,
                    )
    for kind in ("produce", "consume"):
        ratios = [two / one for one, two in zip(rates[kind, 1], rates[kind, 2], strict=True)]
        print(f"{kind}: two brokers give {', '.join(f'{ratio:.2f}' for ratio in ratios)} times the rate of one")


if __name__ == "__main__":
    main()
