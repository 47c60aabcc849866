"""The order of a group's commits: of two for a partition the later one is made, and the earlier one waits for it.

Used by the committer, on the I/O loop. If the later one is stored, the earlier one is done too: offsets do not go back.
If it failed or was given up, it is the earlier one's turn again: no success is reported unless something was stored.
"""

import asyncio
from collections.abc import Iterable

from barnabas.client.errors import ClientTimeoutError
from barnabas.client.retry import Deadline
from barnabas.types import TopicPartition


class CommitOrder:
    """Commits go by the numbers that `enter` gives them."""

    def __init__(self) -> None:
        self._last_number = 0
        self._under_way: dict[TopicPartition, set[int]] = {}
        self._stored: dict[TopicPartition, int] = {}
        """The latest commit that was stored."""
        self._changed = asyncio.Event()

    def enter(self, partitions: Iterable[TopicPartition]) -> int:
        self._last_number += 1
        for partition in partitions:
            self._under_way.setdefault(partition, set()).add(self._last_number)
        return self._last_number

    def leave(self, number: int, partitions: Iterable[TopicPartition]) -> None:
        """The commit has ended, one way or another."""
        for partition in partitions:
            numbers = self._under_way[partition]
            numbers.discard(number)
            if not numbers:
                del self._under_way[partition]
        self._notify()

    def stored(self, number: int, partitions: Iterable[TopicPartition]) -> None:
        for partition in partitions:
            self._stored[partition] = max(number, self._stored.get(partition, 0))
        self._notify()

    def is_outdated(self, number: int, partition: TopicPartition) -> bool:
        """Whether a later commit of the partition has been stored."""
        return self._stored.get(partition, 0) > number

    def is_due(self, number: int, partition: TopicPartition) -> bool:
        """Whether no later commit of the partition is under way."""
        return max(self._under_way[partition]) == number

    async def change(self, deadline: Deadline) -> None:
        """Until a commit was stored or has ended."""
        try:
            async with asyncio.timeout(deadline.remaining_s):
                await self._changed.wait()
        except TimeoutError:
            raise ClientTimeoutError(
                "left to a later commit of the same partitions, which got no response in time either"
            ) from None

    def _notify(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
