"""Carries out what the group decided, in the user's thread: commit, listener, change of the assignment.

Called by poll for each event of the membership, and by close and unsubscribe for what is given up then. The membership
waits for `done`, so nobody else gets a partition while its listener still works on it.
"""

import logging
from collections.abc import Awaitable, Callable, Sequence

from barnabas.client.consumer.group.events import Assigned, Lost, RebalanceEvent, Revoked
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.user_side import UserSide
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class Rebalances:
    """Carries out revocations, losses and assignments, with the user's listener."""

    def __init__(
        self,
        subscription: SubscriptionState,
        side: UserSide,
        *,
        commit: Callable[[Sequence[TopicPartition]], Awaitable[None]],
        on_change: Callable[[], None],
    ) -> None:
        self._subscription = subscription
        self._side = side
        self._commit = commit
        self._on_change = on_change
        self.listener: RebalanceListener | None = None

    async def handle(self, event: RebalanceEvent) -> None:
        """What the listener raises is raised by poll, after the membership was notified."""
        error: BaseException | None = None
        try:
            if isinstance(event, Revoked):
                await self.revoke(event.partitions)
            elif isinstance(event, Lost):
                await self.lose(event.partitions)
            elif isinstance(event, Assigned):
                await self._take_over(event.partitions)
        except BaseException as raised:
            error = raised
            raise
        finally:
            event.done(error)
            self._on_change()

    async def revoke(self, partitions: Sequence[TopicPartition]) -> None:
        if not partitions:
            return
        self._subscription.hold_back(partitions)
        try:
            await self._commit(partitions)
            if self.listener is not None:
                await self._side.call(self.listener.on_revoked, partitions)
        finally:
            self._subscription.remove(partitions)

    async def lose(self, partitions: Sequence[TopicPartition]) -> None:
        self._subscription.remove(partitions)
        if self.listener is not None and partitions:
            await self._side.call(self.listener.on_lost, partitions)

    async def _take_over(self, partitions: Sequence[TopicPartition]) -> None:
        self._subscription.add_from_group(partitions, pending_callback=True)
        self._on_change()
        try:
            if self.listener is not None:
                await self._side.call(self.listener.on_assigned, partitions)
        finally:
            self._subscription.callbacks_done(partitions)
