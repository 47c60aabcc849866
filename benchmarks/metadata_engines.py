"""`python -m benchmarks.metadata_engines [--only etcd]`: what the engines cost that keep a cluster's metadata.

Each engine is an ensemble of three processes on this host (SQLite and memory: none). Times include the JSON and the
Python around the engine; "load" and "elect" are what a new controller waits for with 10,000 partitions.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median, quantiles

from etcd_ensemble import EtcdEnsemble, why_no_etcd
from lone_controller import BROKER, LoneController
from zookeeper_ensemble import ZooKeeperEnsemble, why_no_zookeeper

from barnabas.machines.controller import commands
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import store_at
from barnabas.metadata.store import Check, Create, MetadataStore, Operation, Set

TOPICS, PARTITIONS = 100, 100
SESSION_MS = 2000
HOLD_A_SESSION = """
import sys
from barnabas.metadata.engine_options import EngineOptions
from barnabas.metadata.registry import store_at
store = store_at(sys.argv[1], EngineOptions(session_timeout_ms=int(sys.argv[2])))
store.open()
store.create("/held", ephemeral=True)
print("ready", flush=True)
sys.stdin.read()
"""


@contextmanager
def location(engine: str, directory: Path) -> Iterator[str]:
    if engine == "etcd":
        with EtcdEnsemble(directory) as etcd:
            yield etcd.location("/bench")
    elif engine == "zookeeper":
        with ZooKeeperEnsemble(directory) as zookeeper:
            yield zookeeper.location("/bench")
    else:
        yield f"sqlite:{directory / 'metadata.sqlite'}"


def seconds(call: Callable[[], object]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def check_and_set(store: MetadataStore, rounds: int = 500) -> str:
    store.multi([Create("/checked"), Create("/set")])
    times = [seconds(lambda: store.multi([Check("/checked", 0), Set("/set", b"x" * 100)])) for _ in range(rounds)]
    return f"{median(times) * 1000:.1f} / {quantiles(times, n=100)[98] * 1000:.1f} ms"


def large_change(store: MetadataStore) -> str:
    """1,000 operations, in as many transactions as the store needs."""
    operations: list[Operation] = [Create(f"/large/{number}", b"x" * 100) for number in range(1000)]
    changes: list[Operation] = [Set(f"/large/{number}", b"y" * 100) for number in range(1000)]

    def write(all_of_them: list[Operation]) -> None:
        for start in range(0, 1000, store.multi_limit):
            store.multi(all_of_them[start : start + store.multi_limit])

    return (
        f"creates {seconds(lambda: write(operations)) * 1000:.0f}, sets {seconds(lambda: write(changes)) * 1000:.0f} ms"
    )


def watch_latency(store: MetadataStore, other: MetadataStore, rounds: int = 100) -> str:
    fired = threading.Event()
    store.create("/watched")
    end = other.watch("/watched", fired.set)
    time.sleep(1)
    times = []
    for _ in range(rounds):
        fired.clear()
        times.append(seconds(lambda: (store.set("/watched", b"x"), fired.wait(10))))
    end()
    return f"{median(times) * 1000:.1f} / {quantiles(times, n=100)[98] * 1000:.1f} ms"


def many_partitions(place: str) -> dict[str, str]:
    controller = LoneController(store_at(place))
    topics = tuple(commands.NewTopic(f"topic-{number}", PARTITIONS) for number in range(TOPICS))
    creating = seconds(lambda: controller.run(commands.CreateTopics(topics)))
    controller.store.close()
    next_controller: list[LoneController] = []
    taking_over = seconds(lambda: next_controller.append(LoneController(store_at(place), BROKER)))
    loading = seconds(lambda: next_controller[0].repository.load(""))
    next_controller[0].store.close()
    return {
        f"create {TOPICS * PARTITIONS:,} partitions": f"{creating:.2f} s",
        "load them": f"{loading:.2f} s",
        "open, load, elect all of them": f"{taking_over:.2f} s",
    }


def killed_client(place: str) -> str:
    witness = store_at(place, EngineOptions(session_timeout_ms=SESSION_MS))
    witness.open()
    times = []
    for _ in range(3):
        command = [sys.executable, "-c", HOLD_A_SESSION, place, str(SESSION_MS)]
        with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
            assert process.stdout is not None and process.stdout.readline() == b"ready\n"
            time.sleep(1)
            process.kill()
            start = time.perf_counter()
            while witness.get("/held") is not None:
                time.sleep(0.01)
            times.append(time.perf_counter() - start)
    witness.close()
    return f"{min(times):.1f}-{max(times):.1f} s"


def measure(place: str) -> dict[str, str]:
    store, other = store_at(place), store_at(place)
    store.open()
    other.open()
    found = {
        "check + set, p50 / p99": check_and_set(store),
        "1,000 operations": large_change(store),
        "write until a watch has fired, p50 / p99": watch_latency(store, other),
    }
    store.close()
    other.close()
    return found | many_partitions(place) | {"kill -9 until the ephemeral node is gone, 2 s": killed_client(place)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", choices=["etcd", "zookeeper", "sqlite"])
    only = parser.parse_args().only
    for engine, reason in (("etcd", why_no_etcd()), ("zookeeper", why_no_zookeeper()), ("sqlite", None)):
        if only not in (None, engine):
            continue
        print(engine, "" if reason is None else f"is left out: {reason}", flush=True)
        if reason is None:
            with tempfile.TemporaryDirectory() as directory, location(engine, Path(directory)) as place:
                for name, value in measure(place).items():
                    print(f"  {name:<46} {value}", flush=True)


if __name__ == "__main__":
    main()
