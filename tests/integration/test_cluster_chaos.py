"""Real processes of a cluster, real signals and cuts: the matrix of faults and roles under load, with the checker.

`BARNABAS_SEED` repeats the choices of a run; the moments are the machine's. `BARNABAS_CHAOS_SECONDS` is how long the
soak goes on, an hour unless it says otherwise.
"""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_chaos import ROLES, Cell, ClusterChaos
from cluster_processes import ClusterProcesses
from namespaces import Namespaces, why_no_namespaces

KILLS = ("kill -9", "kill -9 and a late return", "SIGTERM", "SIGSTOP", "two killed", "wiped disk")
CUTS = ("cut both ways", "cut one way")


def test_nothing_acknowledged_is_lost_whoever_is_killed(tmp_path: Path) -> None:
    cells = [Cell("kill -9", role) for role in ROLES[:4]]
    cells += [Cell("SIGSTOP", "leader"), Cell("SIGSTOP", "controller"), Cell("two killed", "leader")]
    cells += [Cell("wiped disk", "leader"), Cell("SIGTERM", "controller")]
    run_chaos(tmp_path, iter(cells))


@pytest.mark.skipif(why_no_namespaces() is not None, reason=str(why_no_namespaces()))
def test_nothing_acknowledged_is_lost_whoever_is_cut_off(tmp_path: Path) -> None:
    cells = [Cell(cut, role) for cut, role in itertools.product(CUTS, ("leader", "controller"))]
    with Namespaces(3) as namespaces:
        run_chaos(tmp_path, iter(cells), namespaces=namespaces)


@pytest.mark.soak
@pytest.mark.timeout(7200)
def test_an_hour_of_everything(tmp_path: Path) -> None:
    seconds = float(os.environ.get("BARNABAS_CHAOS_SECONDS", "3600"))
    with contextlib.ExitStack() as stack:
        namespaces = None if why_no_namespaces() else stack.enter_context(Namespaces(3))
        faults = KILLS if namespaces is None else KILLS + CUTS
        run_chaos(tmp_path, cells_for(seconds, faults), namespaces=namespaces)


def cells_for(seconds: float, faults: tuple[str, ...]) -> Iterator[Cell]:
    """The whole matrix in a new order each time, until the time is over."""
    ends = time.monotonic() + seconds
    while True:
        cells = [Cell(*each) for each in itertools.product(faults, ROLES)]
        random.shuffle(cells)
        for cell in cells:
            if time.monotonic() > ends:
                return
            yield cell


def run_chaos(directory: Path, cells: Iterator[Cell], *, namespaces: Namespaces | None = None) -> None:
    seed = int(os.environ.get("BARNABAS_SEED", random.randrange(1 << 32)))
    print(f"seed {seed}")
    random.seed(seed)
    with ClusterProcesses(directory, namespaces=namespaces) as cluster:
        faults = asyncio.run(ClusterChaos(cluster, seed).run(cells))
    assert faults == [], f"seed {seed}: {faults[:5]}"
