"""`python -m benchmarks.old_and_new REVISION [--only NAME ...] [--rounds N] [--quick]`: is this checkout slower?

The rows of the benchmark suite, with an old and a new broker (or client, or pipeline) as the contenders: they do the
same work in turns, driven by the same load generators, those of this checkout. Each round gives one ratio, and the
median of the ratios counts, so that other load on the machine affects both sides alike. CPU time hardly depends on
that load; rates and latencies do, so on a busy machine only the rows in CPU time decide.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from collections.abc import Callable
from functools import partial
from pathlib import Path
from statistics import median

from barnabas_process import BarnabasProcess

from benchmarks import (
    ROOT,
    consume,
    group_load,
    memory,
    offset_commits,
    old_and_new_clients,
    old_and_new_spark,
    produce,
    requests,
    transactions,
)
from benchmarks.board import Board, Row
from benchmarks.coordinator_reload import run as reload_run
from benchmarks.revision import installed_revision
from benchmarks.session import Session, Starters

OLD, NEW = "old", "new"
TOLERANCE = 1.05
"""More than this is reported as slower."""

Sources = dict[str, Path]
BROKER_WORK: dict[str, Callable[[Session], None]] = {
    "produce": produce.run,
    "consume": consume.run,
    "requests": requests.run,
    "offset_commits": offset_commits.run,
    "transactions": transactions.run,
    "groups": group_load.run,
    "memory": memory.run,
    "reload": reload_run,
}
SOURCE_WORK: dict[str, Callable[[Session, Sources], None]] = {
    "start": old_and_new_clients.start,
    "clients": old_and_new_clients.run,
    "spark": old_and_new_spark.run,
    "pipeline": old_and_new_spark.run_pipeline,
}


def main() -> None:
    names = [*BROKER_WORK, *SOURCE_WORK]
    parser = argparse.ArgumentParser(prog="python -m benchmarks.old_and_new", description=__doc__)
    parser.add_argument("revision", help="what is compared with this checkout, in git's words")
    parser.add_argument("--only", action="append", choices=names, help="only these rows (repeatable)")
    parser.add_argument("--rounds", type=int, default=7, help="counted rounds (default 7)")
    parser.add_argument("--quick", action="store_true", help="less work per round")
    arguments = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise one side would compile its modules at every start
    sources = {OLD: installed_revision(arguments.revision), NEW: ROOT / "src"}
    starters: Starters = {name: partial(BarnabasProcess, sources=path) for name, path in sources.items()}
    with tempfile.TemporaryDirectory(prefix="barnabas-bench-") as directory:
        session = Session(Path(directory), arguments.rounds, arguments.quick, starters)
        try:
            for name in arguments.only or names:
                print(f"{name}: (load {os.getloadavg()[0]:.1f})", flush=True)
                if name in BROKER_WORK:
                    BROKER_WORK[name](session)
                else:
                    SOURCE_WORK[name](session, sources)
        finally:
            session.stop()
    print(f"\n{table(session.board)}")


def table(board: Board) -> str:
    lines = [
        f"| what | unit | {OLD} | {NEW} | cost, {NEW} / {OLD} | in each round (least-most) | |",
        "|---|---|---|---|---|---|---|",
    ]
    for row in board.rows.values():
        ratios = cost_ratios(row)
        if ratios:
            spread = f"{min(ratios):.2f}-{max(ratios):.2f}, {len(ratios)} rounds"
            verdict = "slower" if median(ratios) > TOLERANCE else ""
            cells = [row.title, row.unit, row.cell(OLD), row.cell(NEW), f"{median(ratios):.3f}", spread, verdict]
            lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def cost_ratios(row: Row) -> list[float]:
    """New over old, round by round, turned around for rates: above 1 is slower in every row."""
    pairs = zip(row.samples.get(OLD, []), row.samples.get(NEW, []), strict=True)
    is_rate = row.unit.endswith("/s")
    return [(old / new if is_rate else new / old) for old, new in pairs if old and new]


if __name__ == "__main__":
    main()
