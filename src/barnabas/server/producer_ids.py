"""Hands out producer ids from the blocks that the controller allots to this broker.

A block is used up before the next is asked for; what is left of one at a stop is never used again, which keeps ids
unique without a write per id.
"""

import asyncio
from collections.abc import Awaitable, Callable


class ProducerIds:
    def __init__(self, allocate_block: Callable[[], Awaitable[range]]) -> None:
        self._allocate_block = allocate_block
        self._left = iter(range(0))
        self._allocating = asyncio.Lock()

    async def next_id(self) -> int:
        while True:
            producer_id = next(self._left, None)
            if producer_id is not None:
                return producer_id
            async with self._allocating:
                # Whoever held the lock before may have brought a block: look again before asking for one more.
                producer_id = next(self._left, None)
                if producer_id is not None:
                    return producer_id
                self._left = iter(await self._allocate_block())
