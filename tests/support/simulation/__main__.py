"""`make sim`: one seed with its trace, or many of them."""

from __future__ import annotations

import argparse
import logging
import sys
import time

from simulation.scenario import run_scenario


def main() -> int:
    parser = argparse.ArgumentParser(prog="make sim")
    parser.add_argument("--seed", type=int, help="this seed alone, with the log of brokers and clients")
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=50)
    options = parser.parse_args()
    if options.seed is not None:
        logging.basicConfig(level="INFO", format="%(levelname)s %(name)s: %(message)s")
        seeds = range(options.seed, options.seed + 1)
    else:
        logging.disable(logging.CRITICAL)
        seeds = range(options.first, options.first + options.count)
    failed = 0
    started = time.monotonic()
    for seed in seeds:
        outcome = run_scenario(seed)
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
        f"{len(seeds)} seeds in {seconds:.0f} s, {failed} failed"
        + (": repeat one with make sim SEED=n" if failed else "")
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
