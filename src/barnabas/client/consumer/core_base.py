"""The parts of a consumer put together, and how its methods reach the I/O thread. See core.py.

A method runs in the user's thread or task. What talks to brokers is handed to the I/O thread with `_on_io`; one caller
at a time is let in, `wakeup` excepted.
"""

import logging
from collections.abc import Coroutine, Iterable, Sequence
from typing import Any, TypeVar

from barnabas.client.cluster import ClusterClient
from barnabas.client.consumer.arguments import Partition, partitions_of, seconds_of
from barnabas.client.consumer.collector import Collector
from barnabas.client.consumer.commits import Commits, Offsets, error_of
from barnabas.client.consumer.cursor import RecordCursor
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.interceptors import Interceptors
from barnabas.client.consumer.offset_reset import OffsetReset
from barnabas.client.consumer.rebalances import Rebalances
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.consumer.user_side import Guard, UserSide
from barnabas.client.environment import environment
from barnabas.client.errors import ClientTimeoutError, ClosedError, WakeupError
from barnabas.client.options import ConsumerOptions
from barnabas.client.plugins import configure_plugins
from barnabas.client.retry import Deadline
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

T = TypeVar("T")
logger = logging.getLogger("barnabas.client.consumer")

LATE_MS = 1000
NOT_ANSWERED = "was not answered in time: it may or may not have been stored"


class CoreBase:
    _commits_when_leaving = True
    _closing: Deadline | None = None
    """Until when close() may take."""
    _ended = False
    """Nothing happens any more: a listener may have called close() within a poll, which must not go on waiting."""

    def __init__(
        self,
        options: ConsumerOptions,
        side: UserSide,
        *,
        cluster: ClusterClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        configure_plugins(options)
        self.options = options
        self._clock: Clock = clock or environment().clock
        self._side = side
        self._guard = Guard(side)
        self._woken = False
        self._io = environment().start_io(options.client_id or "consumer")
        self._subscription = SubscriptionState(OffsetReset.of(options.auto_offset_reset))
        self._buffer = FetchBuffer(self._subscription)
        self._interceptors = Interceptors(options.interceptor_classes)
        self._runtime = ConsumerRuntime(
            options,
            self._io,
            cluster or ClusterClient(options, clock=self._clock),
            self._subscription,
            self._buffer,
            self._clock,
            side.notify,
        )
        self._collector = Collector(
            self._subscription,
            self._buffer,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
            check_crcs=options.check_crcs,
            on_change=self._runtime.kick,
        )
        self.cursor = RecordCursor(self._subscription)
        self._commits = Commits(
            self._subscription, self._runtime.committer, side, self._io.submit, options, self._clock, self._interceptors
        )
        self._rebalances = Rebalances(
            self._subscription, side, commit=self._commit_before_revocation, on_change=self._on_assignment
        )

    def wakeup(self) -> None:
        """From any thread: whatever waits in this consumer, or waits next, ends at once with WakeupError."""
        self._woken = True
        self._side.notify()

    def _check_woken(self) -> None:
        """Not on the way out: a consumer that is being closed commits and leaves whatever happens."""
        if self._ended:
            raise ClosedError("the consumer was closed within this call, by a listener or a callback")
        if self._woken and self._closing is None:
            self._woken = False
            raise WakeupError("wakeup() was called: the wait is over, the consumer can be used as before")

    def _deadline(self, timeout: float | None) -> Deadline:
        """Of a call that was given this many seconds, or none."""
        given = seconds_of(timeout)
        return Deadline(self.options.default_api_timeout_ms if given is None else given * 1000, self._clock)

    def _chosen(self, partitions: Iterable[Partition] | None) -> list[TopicPartition]:
        """All that are assigned unless some are named; none is none: a listener may be given nothing."""
        return sorted(self._subscription.assignment()) if partitions is None else partitions_of(partitions)

    async def _on_io(self, coroutine: Coroutine[Any, Any, T], deadline: Deadline) -> T:
        """Runs it on the I/O thread while the user's side waits; a wake-up or a cancellation ends it."""
        future = self._io.submit(coroutine)
        future.add_done_callback(lambda _: self._side.notify())
        # A little longer than it has: a coroutine that keeps the deadline by itself knows better what to say of it.
        deadline = Deadline(deadline.remaining_ms + LATE_MS, self._clock)
        try:
            while not future.done():
                self._check_woken()
                if deadline.expired:
                    raise ClientTimeoutError(
                        "not done in time: try again, or give it more time (default_api_timeout_ms)"
                    )
                await self._side.wait(deadline.remaining_s)
        except BaseException:
            future.cancel()
            raise
        return future.result()

    async def _commit_before_revocation(self, partitions: Sequence[TopicPartition]) -> None:
        """What was read of them, if commits are automatic; that it fails is no reason to hold up the group."""
        offsets = self._subscription.consumed(partitions)
        if not (self.options.enable_auto_commit and self._commits_when_leaving and offsets):
            return
        try:
            deadline = self._closing or self._deadline(self.options.request_timeout_ms / 1000)
            await self._commit(offsets, deadline, wakes=False)
        except KafkaError as error:
            logger.warning("the commit of %d partition(s) before they are given up failed: %s", len(offsets), error)

    async def _commit(self, offsets: Offsets, deadline: Deadline, *, wakes: bool = True) -> None:
        """Waits for the answer; callbacks of commits that were sent before and are answered by then have run too.

        Unless it `wakes`, a wake-up meanwhile is kept for the next wait.
        """
        pending = self._commits.start(offsets, timeout_ms=deadline.remaining_ms)
        deadline = Deadline(deadline.remaining_ms + LATE_MS, self._clock)  # it knows better why it came to nothing
        while not pending.future.done():
            if wakes:
                self._check_woken()
            if deadline.expired:
                pending.future.cancel()
                raise ClientTimeoutError(f"the commit {NOT_ANSWERED}")
            await self._side.wait(deadline.remaining_s)
        await self._commits.run_callbacks()
        error = error_of(pending.future)
        if isinstance(error, ClientTimeoutError):
            raise ClientTimeoutError(f"the commit {NOT_ANSWERED} ({error.message})") from error
        if error is not None:
            raise error

    def _on_assignment(self) -> None:
        """Positions or partitions have changed: what is void goes, what is new is looked up and fetched."""
        self._buffer.drop_void()
        self._runtime.kick()
