"""Proposals of another ISR: ended by the next image, or by a response after which there will be none."""

import asyncio
from collections.abc import Sequence
from typing import Any, cast

import pytest

from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import IsrChange, IsrResult
from barnabas.machines.partition import PartitionState
from barnabas.metadata.image import PartitionImage
from barnabas.server.isr_changes import IsrChanges, Proposer
from barnabas.types import NodeId, TopicId

TOPIC_ID = TopicId(b"\1" * 16)


class Partition:
    topic, topic_id, partition = "t", TOPIC_ID, 0

    def __init__(self) -> None:
        self.state = PartitionState(0)
        self.state.apply(PartitionImage(0, (0, 1), (0, 1), 0, 3, 7), 10, 0)
        self.state.propose_isr_shrink(1_000_000, 1)

    def on_isr_change_rejected(self) -> None:
        self.state.on_isr_change_rejected()


@pytest.mark.parametrize(("partition_epoch", "is_open"), [(7, False), (8, True)])
def test_a_change_that_was_none_ends_the_proposal(partition_epoch: int, is_open: bool) -> None:
    """If something was written, the image is on its way and decides."""
    partition = Partition()
    asked: list[IsrChange] = []

    async def alter(_broker: NodeId, _epoch: int, changes: Sequence[IsrChange]) -> tuple[IsrResult, ...]:
        asked.extend(changes)
        return (IsrResult(TOPIC_ID, 0, ErrorCode.NONE, partition_epoch=partition_epoch),)

    async def scenario() -> None:
        changes = IsrChanges(alter, NodeId(0), lambda: 5)
        changes.propose(cast(Proposer, partition))
        sending: Any = changes._sending
        async with asyncio.timeout(60):
            await sending
        assert [(each.in_sync_replicas, each.partition_epoch) for each in asked] == [((0,), 7)]
        assert (partition.state.proposed_isr is not None) == is_open

    asyncio.run(scenario())
