"""One coordinator partition on its leader: the machine, its queue, its timers, and the requests that wait.

The runtime makes a shard when this broker becomes leader of the partition and closes it when another does. A step goes:
the machine decides -> its records are appended as one batch -> they are applied -> replies once they are committed. On
a lone broker that is over before `submit` returns, so a request costs neither a task nor a Deferred.

A decision may set off a request that comes back to this very shard (the markers of a transaction are written, tell the
machine): steps wait in a queue and never nest.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from enum import Enum
from functools import partial
from typing import Any, Generic, TypeVar

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.coordinator import (
    NOTHING,
    ApplyContext,
    CoordinatorDecision,
    CoordinatorMachine,
    Now,
    ProducerIdAndEpoch,
    Token,
)
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.records import CompressionType
from barnabas.server.coordinator_codec import CoordinatorCodec
from barnabas.server.coordinator_errors import for_client, for_others, is_too_large
from barnabas.server.coordinator_timers import ShardTimers
from barnabas.server.hosted_partition import ACKS_ALL, HostedPartition
from barnabas.storage.log import AppendOrigin

logger = logging.getLogger(__name__)

Response = TypeVar("Response")
Fail = Callable[[ErrorCode], Response]
"""Makes the response for an error of the coordinator itself."""
Decide = Callable[..., CoordinatorDecision]


class ShardState(Enum):
    LOADING = "loading"
    ACTIVE = "active"
    FAILED = "failed"
    """The log could not be replayed. Clients look for another coordinator until leadership changes."""
    CLOSED = "closed"


class Submission(Generic[Response]):
    """The token of a command: takes the response, and passes it on once somebody waits for it."""

    __slots__ = ("fail", "later", "response")

    def __init__(self, fail: Fail[Response]) -> None:
        self.fail = fail
        self.response: Response | None = None
        self.later: Deferred[Response] | None = None

    def respond(self, response: Response) -> None:
        """The first response counts: a time-out may have come before."""
        if self.later is None:
            self.response = response
        elif not self.later.done:
            self.later.complete(response)


@dataclass(eq=False, slots=True)
class Uncommitted:
    """The consequences of a decision whose records are written but not yet on every in-sync replica."""

    last_offset: int
    replies: tuple[tuple[Token, Any], ...]
    requests: tuple[Any, ...]


class CoordinatorShard:
    def __init__(
        self,
        hosted: HostedPartition,
        codec: CoordinatorCodec,
        loop: asyncio.AbstractEventLoop,
        clock: Clock,
        timers: Timers,
        *,
        compression: CompressionType,
        commit_timeout_ms: int,
        carry_out: Callable[[Any], None],
        on_failed: Callable[["CoordinatorShard"], None],
    ) -> None:
        """`carry_out` takes the requests of a decision, `on_failed` has the machine rebuilt from the log."""
        self.hosted = hosted
        self.leader_epoch = hosted.state.leader_epoch
        self.state = ShardState.LOADING
        self.machine: CoordinatorMachine
        self.failures_in_a_row = 0
        self._codec = codec
        self._loop = loop
        self._clock = clock
        self._timers = timers
        self._machine_timers = ShardTimers(timers, clock, self._on_timer)
        self._compression = compression
        self._commit_timeout_ms = commit_timeout_ms
        self._carry_out = carry_out
        self._on_failed = on_failed
        self._queue: deque[tuple[Decide, tuple[Any, ...]]] = deque()
        self._busy = False
        self._open: dict[Token, None] = {}
        self._uncommitted: deque[Uncommitted] = deque()

    # ---- from outside

    def submit(self, command: object, fail: Fail[Response]) -> Response | Deferred[Response]:
        """The response of the machine. `fail` makes it for a code when there can be no other."""
        if self.state is not ShardState.ACTIVE:
            return fail(self.refusal)
        submission = Submission(fail)
        self._open[submission] = None
        self._enqueue(self.machine.decide, command, submission)
        response = submission.response
        if response is not None:
            return response
        submission.later = Deferred()
        return submission.later

    @property
    def is_settled(self) -> bool:
        """No step is under way and all that was applied is committed: the machine's memory is safe to show."""
        return self.state is ShardState.ACTIVE and not self._uncommitted and not self._busy

    def notify(self, command: Any) -> None:
        """A command of the broker's own, whose reply nobody waits for."""
        if self.state is ShardState.ACTIVE:
            self._enqueue(self.machine.decide, command, Submission(_nobody))

    def on_image(self, image: Any) -> None:
        if self.state is ShardState.ACTIVE:
            self._enqueue(self.machine.on_image, image)

    @property
    def refusal(self) -> ErrorCode:
        if self.state is ShardState.LOADING:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return ErrorCode.NOT_COORDINATOR

    def activate(self, image: Any) -> None:
        """The machine has been replayed: it serves from now on."""
        self.state = ShardState.ACTIVE
        self._enqueue(self.machine.on_loaded)
        self.on_image(image)

    def append_marker(self, batch: bytearray, producer: ProducerIdAndEpoch, committed: bool) -> int:
        """Writes a transaction's end into this partition; returns its offset. Raises KafkaError, StorageError."""
        if self.state is not ShardState.ACTIVE:
            raise KafkaError(self.refusal)
        assert not self._busy, "a marker must not come between an append and its apply"
        info = self.hosted.append(memoryview(batch), ACKS_ALL, self._clock.now_ms(), AppendOrigin.COORDINATOR)
        self.machine.apply_marker(*producer, committed)
        if self.hosted.must_wait(info.last_offset, ACKS_ALL):
            # Every response from here on has seen the marker's effect, and waits for it like for any record.
            self._uncommitted.append(Uncommitted(info.last_offset, (), ()))
            self.hosted.when_committed(info.last_offset, ACKS_ALL, partial(self._on_committed, info.last_offset))
        return info.last_offset

    def close(self, error: ErrorCode = ErrorCode.NOT_COORDINATOR) -> None:
        """Another broker leads, or this one stops: all waiting requests fail."""
        self.state = ShardState.CLOSED
        self._drop_everything(error)

    # ---- one step

    def _enqueue(self, decide: Decide, *arguments: Any) -> None:
        self._queue.append((decide, arguments))
        if self._busy:
            return
        self._busy = True
        try:
            while self._queue:
                self._step(*self._queue.popleft())
        finally:
            self._busy = False

    def _step(self, decide: Decide, arguments: tuple[Any, ...]) -> None:
        now = Now(self._clock.monotonic_ms(), self._clock.now_ms())
        decision = NOTHING
        try:
            decision = decide(*arguments, now)
            last_offset = self._write(decision, now) if decision.records else None
        except Exception as error:
            if not isinstance(error, (KafkaError, StorageError)):
                logger.exception("the coordinator of %s failed", self.hosted.log.topic_partition)
            elif decision.if_too_large is not None and isinstance(error, KafkaError) and is_too_large(error):
                self._refuse(decision, decision.if_too_large, error)
                return
            asker = next((each for each in arguments if isinstance(each, Submission)), None)
            self._fail(error, asker)
            return
        if decision.timers:
            self._machine_timers.set(decision.timers)
        if last_offset is not None and self.hosted.must_wait(last_offset, ACKS_ALL):
            self._wait(last_offset, decision)
        elif self._uncommitted:
            self._uncommitted.append(
                Uncommitted(self._uncommitted[-1].last_offset, decision.replies, decision.requests)
            )
        else:
            self._release(decision.replies, decision.requests)

    def _write(self, decision: CoordinatorDecision, now: Now) -> int:
        """Appends and applies; gives the offset of the last record."""
        wall_ms = now.wall_ms
        transaction = decision.transaction
        producer = () if transaction is None else (*transaction, True)
        last_offset = -1
        max_bytes = self.hosted.log.state.config.max_message_bytes
        for records, batch in self._codec.encode_batches(
            decision.records, wall_ms, max_bytes, self._compression, transaction
        ):
            info = self.hosted.append(memoryview(batch), ACKS_ALL, wall_ms, AppendOrigin.COORDINATOR)
            offset, last_offset = info.first_offset, info.last_offset
            for key, value, _ in records:
                self.machine.apply(key, value, ApplyContext(offset, wall_ms, *producer))
                offset += 1
        self.failures_in_a_row = 0
        return last_offset

    def _release(self, replies: tuple[tuple[Token, Any], ...], requests: tuple[Any, ...]) -> None:
        for token, response in replies:
            self._open.pop(token, None)
            assert isinstance(token, Submission)
            token.respond(response)
        for request in requests:
            self._carry_out(request)

    # ---- waiting for the in-sync replicas

    def _wait(self, last_offset: int, decision: CoordinatorDecision) -> None:
        waiting = Uncommitted(last_offset, decision.replies, decision.requests)
        self._uncommitted.append(waiting)
        timer = self._timers.call_after(self._commit_timeout_ms, partial(self._on_time_up, waiting))

        def on_committed(error: ErrorCode) -> None:
            self._timers.cancel(timer)
            self._on_committed(last_offset, error)

        self.hosted.when_committed(last_offset, ACKS_ALL, on_committed)

    def _on_committed(self, last_offset: int, error: ErrorCode) -> None:
        if self._busy:
            # Called out of an append of this very shard: what it sets off must not come between append and apply.
            self._loop.call_soon(self._on_committed, last_offset, error)
            return
        if error is not ErrorCode.NONE:
            if self.state is ShardState.ACTIVE:
                self._fail(KafkaError(error))
            return
        while self._uncommitted and self._uncommitted[0].last_offset <= last_offset:
            waiting = self._uncommitted.popleft()
            self._release(waiting.replies, waiting.requests)

    def _on_time_up(self, waiting: Uncommitted) -> None:
        """The client gets a time-out; the records stand and may be committed yet."""
        replies, waiting.replies = waiting.replies, ()
        for token, _ in replies:
            self._respond_failed(token, ErrorCode.COORDINATOR_NOT_AVAILABLE)

    # ---- timers and failures

    def _on_timer(self, key: str) -> None:
        if self.state is ShardState.ACTIVE:
            self._enqueue(self.machine.expire, key)

    def _refuse(self, decision: CoordinatorDecision, error: ErrorCode, cause: KafkaError) -> None:
        """The machine stands as if the request had never come, but for its timers, or decides what to do about it."""
        logger.warning("%s: a request is refused: %s", self.hosted.log.topic_partition, cause)
        if decision.timers:
            self._machine_timers.set(decision.timers)
        for token, _ in decision.replies:
            self._respond_failed(token, error)
        if decision.when_refused is not None:
            self._queue.appendleft((decision.when_refused, ()))

    def _fail(self, cause: Exception, asker: Submission[Any] | None = None) -> None:
        """Nothing that the machine holds in memory can be relied on any more."""
        logger.warning("%s: the coordinator's step failed, loading again: %s", self.hosted.log.topic_partition, cause)
        self.state = ShardState.LOADING
        self.failures_in_a_row += 1
        error = for_client(cause)
        if asker is not None:
            self._respond_failed(asker, error)
        self._drop_everything(for_others(error))
        self._on_failed(self)

    def _drop_everything(self, error: ErrorCode) -> None:
        self._queue.clear()
        self._uncommitted.clear()
        self._machine_timers.clear()
        waiting, self._open = self._open, {}
        for token in waiting:
            self._respond_failed(token, error)

    def _respond_failed(self, token: Token, error: ErrorCode) -> None:
        self._open.pop(token, None)
        assert isinstance(token, Submission)
        token.respond(token.fail(error))


def _nobody(error: ErrorCode) -> None:
    return None
