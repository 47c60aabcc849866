"""The task that tidies up after a move, and the rights that it has."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from barnabas.client.balancing import PlacedPartition
from barnabas.client.errors import AuthenticationError, ClosedError
from barnabas.console import moves
from barnabas.console.moves import Mover
from barnabas.errors import ErrorCode, KafkaError
from barnabas.types import TopicPartition

KEY = TopicPartition("orders", 0)


class AdminOfAUser:
    """Responds in turn with what it was given."""

    def __init__(self, *outcomes: Exception | dict[Any, Any]) -> None:
        self.outcomes = list(outcomes)
        self.changes: list[str] = []

    async def alter_partition_reassignments(self, plan: object) -> None:
        self.changes.append("move")

    async def alter_configs(self, changes: object) -> None:
        self.changes.append("throttle")

    async def elect_leaders(self, keys: object) -> None:
        self.changes.append("elect")

    async def list_partition_reassignments(self, keys: object) -> dict[Any, Any]:
        outcome = self.outcomes.pop(0)
        if isinstance(outcome, Exception):
            raise outcome
        return outcome


def moved_with(admin: AdminOfAUser, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(moves, "POLL_SECONDS", 0.0)

    async def run() -> None:
        mover = Mover()
        placed = {KEY: PlacedPartition((1,), 5)}
        await mover.begin(admin, placed, {KEY: [2]}, [1, 2], 1_000_000)  # type: ignore[arg-type]
        await asyncio.gather(*mover._tasks)

    asyncio.run(run())
    assert not admin.outcomes


def test_a_cluster_that_is_away_for_a_while_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    admin = AdminOfAUser({KEY: "moving"}, KafkaError(ErrorCode.REQUEST_TIMED_OUT), {})
    moved_with(admin, monkeypatch)
    assert admin.changes == ["throttle", "move", "throttle", "elect"]


@pytest.mark.parametrize(
    "end",
    [
        ClosedError("the client is closed"),
        AuthenticationError("gone"),
        KafkaError(ErrorCode.CLUSTER_AUTHORIZATION_FAILED),
    ],
)
def test_nobody_is_asked_for_ever_whose_rights_have_ended(
    end: KafkaError, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    admin = AdminOfAUser({KEY: "moving"}, end)
    moved_with(admin, monkeypatch)
    assert admin.changes == ["throttle", "move"]
    assert "the throttle is still there" in caplog.text
