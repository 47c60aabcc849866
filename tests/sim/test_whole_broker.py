"""A whole broker with whole clients in virtual time: two producers, a transactional copier and a group, killed at will.

`make sim SEED=7` runs one seed; a failure prints its seed, and the same seed gives the same trace.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator

import pytest
from simulation.history import History, Seen
from simulation.scenario import run_scenario

SEEDS = range(12)
SOAK_SEEDS = range(12, 1000)


@pytest.fixture(autouse=True)
def without_logs() -> Iterator[None]:
    """Brokers that are killed and clients that find out say so, thousands of times."""
    logging.disable(logging.CRITICAL)
    yield
    logging.disable(logging.NOTSET)


@pytest.mark.parametrize("seed", [*SEEDS, *(pytest.param(seed, marks=pytest.mark.soak) for seed in SOAK_SEEDS)])
def test_nothing_acknowledged_is_lost_or_doubled(seed: int) -> None:
    outcome = run_scenario(seed)
    assert outcome.faults == [], f"seed {seed}: {outcome.faults[:5]} ({outcome.digest})"
    assert outcome.acknowledged > 0 and outcome.copied > 0


def test_the_same_seed_gives_the_same_trace() -> None:
    assert run_scenario(11).digest == run_scenario(11).digest


def test_the_checker_sees_what_is_wrong() -> None:
    history = History()
    for value in (b"a", b"b", b"c", b"d"):
        history.on_send("w", value)
    history.on_acknowledged(b"a", ("t", 0), 0)
    history.on_acknowledged(b"b", ("t", 0), 1)
    history.on_refused(b"d")
    place = ("t", 0)
    assert history.check({place: [Seen(0, b"a"), Seen(1, b"b")]}) == []
    assert "LOST" in history.check({place: [Seen(0, b"a")]})[0]
    assert "2 times" in history.check({place: [Seen(0, b"a"), Seen(1, b"b"), Seen(2, b"b")]})[1]
    assert "later record" in history.check({place: [Seen(0, b"b"), Seen(1, b"a")]})[0]
    assert "unknown" in history.check({place: [Seen(0, b"a"), Seen(1, b"b"), Seen(2, b"x")]})[0]
    assert "refused" in history.check({place: [Seen(0, b"a"), Seen(1, b"b"), Seen(2, b"d")]})[0]


def test_the_checker_sees_a_committed_offset_that_goes_back() -> None:
    history = History()
    history.on_committed_offset("g", ("t", 0), 7, history.committed_offset("g", ("t", 0)))
    overtaken = history.committed_offset("g", ("t", 1))
    history.on_committed_offset("g", ("t", 1), 5, overtaken)
    history.on_committed_offset("g", ("t", 1), 4, overtaken)
    assert history.check({}) == []
    history.on_committed_offset("g", ("t", 0), 6, history.committed_offset("g", ("t", 0)))
    assert "went back from 7 to 6" in history.check({})[0]
