"""Our own clients on the simulation's loop: what their I/O thread does is done by tasks of their node."""

from __future__ import annotations

import asyncio
import concurrent.futures
import random
from collections.abc import Callable, Coroutine
from typing import Any, TypeVar, cast

from barnabas.client.environment import ENVIRONMENT, Environment
from barnabas.client.errors import ClosedError
from barnabas.client.io_thread import IoThread
from simulation.clock import VirtualClock
from simulation.network import SimulatedNetwork
from simulation.node import Node

T = TypeVar("T")


class LoopIo:
    """Stands in for `IoThread`: the same calls, on the loop of the caller."""

    is_forked = False
    is_current = False

    def __init__(self, name: str) -> None:
        self.loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        self.name = name
        self.stopped = False

    def submit(self, coroutine: Coroutine[Any, Any, T]) -> concurrent.futures.Future[T]:
        if self.stopped or self.loop is None:
            coroutine.close()
            raise ClosedError("the client is closed: make a new one")
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop)

    async def run(self, coroutine: Coroutine[Any, Any, T]) -> T:
        return await asyncio.wrap_future(self.submit(coroutine))

    def call(self, function: Callable[..., object], *args: object) -> None:
        if not self.stopped and self.loop is not None:
            self.loop.call_soon(function, *args)

    def stop(self) -> None:
        self.stopped = True

    def stop_after(self, close: Callable[[], Coroutine[Any, Any, None]]) -> None:
        self.stopped = True


def use_simulated_clients(
    node: Node, network: SimulatedNetwork, clock: VirtualClock, chance: random.Random, ios: list[LoopIo]
) -> None:
    """Clients that are made in the node's context take these."""

    def start_io(name: str) -> IoThread:
        io = LoopIo(name)
        ios.append(io)
        return cast(IoThread, io)

    environment = Environment(
        network=network.of(node),
        clock=clock,
        new_random=lambda: random.Random(chance.getrandbits(64)),
        start_io=start_io,
    )
    node.context.run(ENVIRONMENT.set, environment)
