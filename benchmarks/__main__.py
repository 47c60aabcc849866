"""`python -m benchmarks [--quick] [--only NAME ...] [--rounds N]`: measure, print the table, and write it to docs/."""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

from benchmarks import (
    clients,
    cluster,
    compressed,
    consume,
    coordinators,
    memory,
    partitions,
    pipeline,
    produce,
    report,
    requests,
    spark,
    start,
)
from benchmarks.session import Session

# The order matters: memory measures the brokers that the rows before it loaded, partitions and cluster stop them.
WORK = {
    "start": start.run,
    "produce": produce.run,
    "compressed": compressed.run,
    "consume": consume.run,
    "requests": requests.run,
    "memory": memory.run,
    "clients": clients.run,
    "spark": spark.run,
    "pipeline": pipeline.run,
    "coordinators": coordinators.run,
    "partitions": partitions.run,
    "cluster": cluster.run,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="less work and 2 rounds: a few minutes")
    parser.add_argument(
        "--only", action="append", choices=WORK, help="only these rows (repeatable); docs are not updated"
    )
    parser.add_argument("--rounds", type=int, help="counted rounds (default 5, quick 2)")
    arguments = parser.parse_args()
    rounds = arguments.rounds or (2 if arguments.quick else 5)
    load_before = os.getloadavg()[0]
    seconds: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        session = Session(Path(directory), rounds, arguments.quick)
        try:
            for name, work in WORK.items():
                if not arguments.only or name in arguments.only:
                    print(f"{name}:", flush=True)
                    started = time.monotonic()
                    work(session)
                    seconds[name] = time.monotonic() - started
                    print(f"  ({seconds[name]:.0f} s)", flush=True)
        finally:
            session.stop()
    tables = report.tables(session)
    print(f"\n{tables}")
    if not arguments.only and not arguments.quick:
        report.write(tables, rounds, seconds, load_before)


if __name__ == "__main__":
    main()
