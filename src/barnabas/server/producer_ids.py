"""Hands out producer ids from the blocks that the controller allots to this broker.

A block is used up before the next is requested; what is left of one at a stop is never used again, which keeps ids
unique without a write per id.
"""

import asyncio
from collections.abc import Awaitable, Callable

from barnabas.types import ProducerId


class ProducerIds:
    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        self._allocate_block = allocate_block
        self._left = range(0)
        self._allocating = asyncio.Lock()

    def take(self) -> ProducerId | None:
        """The next id, or None if the block is used up: then await `ready`."""
        if not self._left:
            return None
        producer_id = ProducerId(self._left[0])
        self._left = self._left[1:]
        return producer_id

    async def ready(self) -> None:
        """Returns once there is an id to take, at least for whoever takes it right away."""
        while not self._left:
            async with self._allocating:
                # Another task may have got a block while this one waited for the lock: check again.
                if not self._left:
                    self._left = await self._allocate_block()

    async def next_id(self) -> ProducerId:
        while True:
            producer_id = self.take()
            if producer_id is not None:
                return producer_id
            await self.ready()
