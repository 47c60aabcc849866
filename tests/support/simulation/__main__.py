"""`make sim`: one seed with its trace, or many of them."""

from __future__ import annotations

import argparse
import asyncio
import logging
import sys
import time

from simulation.cluster_scenario import run_cluster_scenario
from simulation.node import CURRENT
from simulation.scenario import run_scenario


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
    options = parser.parse_args()
    if options.seed is not None:
        logging.basicConfig(level="INFO", format="%(virtual)s %(levelname)s %(name)s: %(message)s")
        logging.getLogger().handlers[0].addFilter(_add_time_and_node)
        seeds = range(options.seed, options.seed + 1)
    else:
        logging.disable(logging.CRITICAL)
        seeds = range(options.first, options.first + options.count)
    failed = 0
    run = run_cluster_scenario if options.cluster else run_scenario
    started, cpu = time.monotonic(), time.process_time()
    for seed in seeds:
        outcome = run(seed)
        failed += bool(outcome.faults)
        for fault in outcome.faults:
            print(f"seed {seed}: {fault}")
        if options.seed is not None or outcome.faults or seed % 50 == 49:
            print(
                f"seed {seed}: {outcome.acknowledged} acknowledged, {outcome.copied} copied, {outcome.digest}",
                flush=True,
            )
    seconds = time.monotonic() - started
    print(
        f"{len(seeds)} seeds in {seconds:.0f} s ({(time.process_time() - cpu) / len(seeds):.2f} s of CPU each),"
        f" {failed} failed" + (f": repeat one with make sim{' CLUSTER=1' * options.cluster} SEED=n" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
