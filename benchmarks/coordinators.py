"""The two coordinators: offset commits, transactions, heartbeats of many groups, a large rebalance, a large reload."""

from __future__ import annotations

from benchmarks import coordinator_reload, group_load, offset_commits, transactions
from benchmarks.session import Session


def run(session: Session) -> None:
    offset_commits.run(session)
    transactions.run(session)
    group_load.run(session)
    coordinator_reload.run(session)
