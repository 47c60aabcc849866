"""Resident memory of the brokers after the load of all other rows; runs last."""

from __future__ import annotations

from benchmarks.board import under
from benchmarks.session import Session

MEMORY = "resident memory after the load"


def run(session: Session) -> None:
    session.board.row(MEMORY, "MB", under(150))
    for contender in session.contenders:
        session.board.add(MEMORY, contender.name, contender.broker.resident_bytes() / 1e6)
