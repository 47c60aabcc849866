"""Commits of a consumer: those of the user, automatic ones, and the callbacks of both.

In the user's thread; the request itself runs on the I/O thread. Automatic commits happen within poll, before it gives
out anything new: what the last poll returned counts as done when the next one is called. Callbacks and interceptors run
in the user's thread too, in the order of the commits.
"""

import concurrent.futures
import logging
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, NamedTuple, Protocol

from barnabas.client.background import as_failure
from barnabas.client.consumer.hooks import Interceptors
from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import ClosedError, IllegalStateError
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import UserSide
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")

Offsets = Mapping[TopicPartition, OffsetAndMetadata]
CommitCallback = Callable[[Offsets, KafkaError | None], Any]
Submit = Callable[[Coroutine[Any, Any, None]], "concurrent.futures.Future[None]"]


class Committer(Protocol):
    """Sends a commit, on the I/O thread."""

    async def commit(self, offsets: Offsets, *, timeout_ms: int | None = None) -> None: ...


class PendingCommit(NamedTuple):
    """A commit that was sent, until its callback has run."""

    offsets: Offsets
    future: "concurrent.futures.Future[None]"
    callback: CommitCallback | None


class Commits:
    """Sends commits, automatic ones too, and runs their callbacks in order."""

    def __init__(
        self,
        subscription: SubscriptionState,
        committer: Committer | None,
        side: UserSide,
        submit: Submit,
        options: ConsumerOptions,
        clock: Clock,
        interceptors: Interceptors,
    ) -> None:
        self._subscription = subscription
        self._committer = committer
        self._side = side
        self._submit = submit
        self._options = options
        self._clock = clock
        self._interceptors = interceptors
        self._pending: deque[PendingCommit] = deque()
        self._auto_in_flight = False
        self._auto_at_ms = clock.monotonic_ms() + options.auto_commit_interval_ms

    def start(
        self, offsets: Offsets, callback: CommitCallback | None = None, *, timeout_ms: int | None = None
    ) -> PendingCommit:
        """Sends a commit. The caller checks the future; `run_callbacks` does the rest."""
        if self._committer is None:
            raise IllegalStateError("there is no group to commit to: give the consumer a group_id")
        future = self._submit(self._committer.commit(offsets, timeout_ms=timeout_ms))
        future.add_done_callback(lambda _: self._side.notify())
        pending = PendingCommit(offsets, future, callback)
        self._pending.append(pending)
        return pending

    async def run_callbacks(self) -> None:
        """For commits that are done, in order. A commit that is still under way holds back those behind it."""
        while self._pending and self._pending[0].future.done():
            offsets, future, callback = self._pending.popleft()
            error = error_of(future)
            self._interceptors.on_commit(offsets, error)
            if callback is not None:
                await self._side.call(callback, offsets, error)

    @property
    def is_pending(self) -> bool:
        """Whether a commit has no response yet, or its callback has not run."""
        return bool(self._pending)

    # automatic

    @property
    def auto_due_in_ms(self) -> int | None:
        """How long poll may wait before it has to commit."""
        if not self._options.enable_auto_commit or self._auto_in_flight:
            return None
        return max(0, self._auto_at_ms - self._clock.monotonic_ms())

    def maybe_auto_commit(self, *, now: bool = False) -> PendingCommit | None:
        """If the time has come, or `now`. A later poll checks the response."""
        due_in_ms = self.auto_due_in_ms
        if not self._options.enable_auto_commit or not (now or due_in_ms == 0):
            return None
        offsets = self._subscription.consumed()
        self._auto_at_ms = self._clock.monotonic_ms() + self._options.auto_commit_interval_ms
        if not offsets:
            return None
        self._auto_in_flight = True
        return self.start(offsets, self._on_auto_committed)

    def _on_auto_committed(self, offsets: Offsets, error: KafkaError | None) -> None:
        self._auto_in_flight = False
        if error is None:
            logger.debug("committed %s", offsets)
        elif error.retriable:
            self._auto_at_ms = self._clock.monotonic_ms() + self._options.retry_backoff_ms
            logger.debug("an automatic commit is tried again: %s", error)
        else:
            logger.warning("an automatic commit of %d partition(s) failed: %s", len(offsets), error)


def error_of(future: "concurrent.futures.Future[None]") -> KafkaError | None:
    """How a finished commit ended."""
    if future.cancelled():
        return ClosedError("the consumer was closed before the commit had a response")
    error = future.exception()
    return as_failure("a commit", error) if isinstance(error, Exception) else None
