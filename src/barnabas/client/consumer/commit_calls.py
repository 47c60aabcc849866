"""The user's commits, and the one before partitions are given up. A part of the core; `commits` sends them."""

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from barnabas.client.consumer.arguments import Partition, offsets_of
from barnabas.client.consumer.commits import CommitCallback, Commits, Offsets, error_of
from barnabas.client.consumer.group import OffsetCommitter
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.errors import ClientTimeoutError, IllegalStateError
from barnabas.client.retry import Deadline
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")

NO_RESPONSE = "got no response in time: it may or may not have been stored"


class CommitCalls:
    """The calls of the consumer about committed offsets."""

    def __init__(
        self,
        calls: UserCalls,
        subscription: SubscriptionState,
        committer: OffsetCommitter | None,
        commits: Commits,
    ) -> None:
        self._calls = calls
        self._subscription = subscription
        self._committer = committer
        self._commits = commits
        self.commits_on_revocation = True
        """False once the user has closed without a commit."""

    async def commit(
        self, offsets: Mapping[Any, OffsetAndMetadata | int] | None = None, *, timeout: float | None = None
    ) -> None:
        """Stores positions with the group and waits for it: all that poll has returned, or just these offsets."""
        with self._calls.guard:
            to_commit = self._offsets(offsets)
            if to_commit:
                await self._commit(to_commit, self._calls.deadline(timeout))

    def commit_async(
        self,
        offsets: Mapping[Any, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """The same without waiting; `callback(offsets, error)` runs in a later poll, commit or close."""
        with self._calls.guard:
            if callback is not None and not callable(callback):
                raise TypeError(f"the callback of a commit is a function (offsets, error), not {callback!r}")
            self._commits.start(self._offsets(offsets), callback)

    def _offsets(self, offsets: Mapping[Any, OffsetAndMetadata | int] | None) -> Offsets:
        if self._committer is None:
            raise IllegalStateError("there is no group to commit to: give the consumer a group_id")
        if offsets is None:
            return self._subscription.consumed()
        return offsets_of(offsets)

    async def committed(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored for these partitions (default: those assigned); None where nothing is."""
        with self._calls.guard:
            if self._committer is None:
                raise IllegalStateError("nothing is committed without a group: give the consumer a group_id")
            chosen = self._subscription.chosen(partitions)
            deadline = self._calls.deadline(timeout)
            return await self._calls.on_io(self._committer.fetch(chosen, timeout_ms=deadline.remaining_ms), deadline)

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What commit() would store: the position of each partition. A transaction's send_offsets takes this."""
        with self._calls.guard:
            return self._subscription.consumed()

    async def commit_before_revocation(self, partitions: Sequence[TopicPartition]) -> None:
        """Commits their positions if commits are automatic. A failure is logged: it must not hold up the group."""
        options = self._calls.options
        offsets = self._subscription.consumed(partitions)
        if not (options.enable_auto_commit and self.commits_on_revocation and offsets):
            return
        try:
            deadline = self._calls.closing or self._calls.deadline(options.request_timeout_ms / 1000)
            await self._commit(offsets, deadline, wakes=False)
        except KafkaError as error:
            logger.warning("the commit of %d partition(s) before they are given up failed: %s", len(offsets), error)

    async def _commit(self, offsets: Offsets, deadline: Deadline, *, wakes: bool = True) -> None:
        """Waits for the response, and runs the callbacks of earlier commits that are done by then.

        Unless it `wakes`, a wake-up meanwhile is kept for the next wait.
        """
        pending = self._commits.start(offsets, timeout_ms=deadline.remaining_ms)
        deadline = self._calls.with_grace(deadline)
        while not pending.future.done():
            if wakes:
                self._calls.check_woken()
            if deadline.expired:
                pending.future.cancel()
                raise ClientTimeoutError(f"the commit {NO_RESPONSE}")
            await self._calls.side.wait(deadline.remaining_s)
        await self._commits.run_callbacks()
        error = error_of(pending.future)
        if isinstance(error, ClientTimeoutError):
            raise ClientTimeoutError(f"the commit {NO_RESPONSE} ({error.message})") from error
        if error is not None:
            raise error
