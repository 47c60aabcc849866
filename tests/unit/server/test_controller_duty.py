"""What a controller does when the store does not take its decision."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import Any

import pytest
from lone_controller import AnyConfig

from barnabas.clock import ManualClock
from barnabas.machines.controller.machine import ControllerMachine
from barnabas.metadata.image import BrokerImage
from barnabas.metadata.repository import MetadataRepository
from barnabas.metadata.store import ConflictError, OutcomeUnknownError
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.server.controller_duty import ControllerDuty
from barnabas.types import NodeId


class InterruptedRepository(MetadataRepository):
    """Before its next write something happens, and the write fails."""

    interruption: Callable[[], None] | None = None
    error: type[Exception] = ConflictError

    def write(self, *arguments: Any) -> int:
        if self.interruption is not None:
            interruption, self.interruption = self.interruption, None
            interruption()
            raise self.error("somebody else was quicker")
        return super().write(*arguments)


def register(tree: MemoryTree, broker_id: int) -> None:
    store = MemoryStore(tree)
    store.open()
    MetadataRepository(store).register_broker(BrokerImage(broker_id, ()), 0)


@pytest.mark.parametrize("error", [ConflictError, OutcomeUnknownError])
def test_a_broker_that_came_meanwhile_is_not_taken_for_gone(error: type[Exception]) -> None:
    async def scenario() -> None:
        tree = MemoryTree()
        store = MemoryStore(tree)
        store.open()
        repository = InterruptedRepository(store)
        cluster_id = repository.prepare("a-cluster-id")
        repository.register_broker(BrokerImage(0, ()), 0)
        epoch = repository.try_become_controller(0, 0)
        assert epoch is not None
        machine = ControllerMachine(AnyConfig(), Random(1))

        async def in_thread(call: Callable[..., Any], *arguments: Any) -> Any:
            return call(*arguments)

        duty = ControllerDuty(repository, machine, NodeId(0), ManualClock(), in_thread)
        await duty.take_over(cluster_id, epoch)
        register(tree, 1)
        repository.error = error
        repository.interruption = lambda: register(tree, 2)
        await duty.look_at_brokers()
        assert (list(machine.image.brokers), list(machine.image.fenced_brokers)) == ([0, 1, 2], [])

    asyncio.run(scenario())
