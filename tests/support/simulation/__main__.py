"""`make sim`: one seed with its trace, or many of them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import os
import sys
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from typing import NamedTuple

from simulation.cluster_scenario import run_cluster_scenario
from simulation.node import CURRENT
from simulation.scenario import run_scenario


class Result(NamedTuple):
    seed: int
    faults: list[str]
    summary: str
    cpu_seconds: float


def run_seed(seed: int, cluster: bool) -> Result:
    before = time.process_time()
    outcome = (run_cluster_scenario if cluster else run_scenario)(seed)
    summary = f"{outcome.acknowledged} acknowledged, {outcome.copied} copied, {outcome.digest}"
    return Result(seed, outcome.faults, summary, time.process_time() - before)


def run_seeds(seeds: range, cluster: bool, processes: int) -> Iterator[Result]:
    if processes == 1:
        for seed in seeds:
            yield run_seed(seed, cluster)
        return
    with ProcessPoolExecutor(processes, initializer=logging.disable, initargs=(logging.CRITICAL,)) as pool:
        yield from pool.map(run_seed, seeds, [cluster] * len(seeds))


def _add_time_and_node(record: logging.LogRecord) -> bool:
    node = CURRENT.get()
    record.virtual = f"{asyncio.get_running_loop().time():8.3f} {node.name if node else '-':9}"
    return True


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seed", type=int, help="this seed alone, with the log of brokers and clients")
    parser.add_argument("--cluster", action="store_true", help="three brokers instead of one")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    parser.add_argument("--processes", type=int, default=1, help="so many seeds at the same time")
    options = parser.parse_args()
    if os.environ.get("PYTHONHASHSEED") != "0":
        parser.error("PYTHONHASHSEED=0 must be set, or the same seed may not give the same trace")
    if options.seed is not None:
        logging.basicConfig(level="INFO", format="%(virtual)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger().handlers[0].addFilter(_add_time_and_node)
        seeds = range(options.seed, options.seed + 1)
    else:
        logging.disable(logging.CRITICAL)
        seeds = range(options.first, options.first + options.count)
    failed, cpu = 0, 0.0
    started = time.monotonic()
    for result in run_seeds(seeds, options.cluster, options.processes):
        failed += bool(result.faults)
        cpu += result.cpu_seconds
        for fault in result.faults:
            print(f"seed {result.seed}: {fault}")
        if options.seed is not None or result.faults or result.seed % 50 == 49:
            print(f"seed {result.seed}: {result.summary}", flush=True)
    again = f": repeat one with make sim{' CLUSTER=1' * options.cluster} SEED=n" if failed else ""
    print(
        f"{len(seeds)} seeds in {time.monotonic() - started:.0f} s ({cpu / len(seeds):.2f} s of CPU each),"
        f" {failed} failed{again}"
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
