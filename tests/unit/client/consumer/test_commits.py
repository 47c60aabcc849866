"""Commits and their callbacks, with futures that the test completes."""

import concurrent.futures
from collections.abc import Coroutine
from typing import Any

import pytest

from barnabas.client.consumer.commits import Commits, error_of
from barnabas.client.consumer.hooks import Interceptors
from barnabas.client.consumer.offsets import EARLIEST, OffsetAndMetadata
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import ClosedError, CommitFailedError, IllegalStateError, error_for
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import BlockingSide
from barnabas.clock import ManualClock
from barnabas.errors import ErrorCode
from barnabas.types import TopicPartition

A = TopicPartition("t", 0)


class Committer:
    async def commit(self, offsets: Any, *, timeout_ms: int | None = None) -> None:
        raise AssertionError("only the test completes commits")


class World:
    def __init__(self, *, group: bool = True, **options: Any) -> None:
        self.clock = ManualClock()
        self.side = BlockingSide()
        self.futures: list[concurrent.futures.Future[None]] = []
        self.seen: list[Any] = []
        self.subscription = SubscriptionState(EARLIEST)
        self.subscription.assign([A])
        self.subscription.seek(A, 5)
        self.commits = Commits(
            self.subscription,
            Committer() if group else None,
            self.side,
            self.submit,
            ConsumerOptions.of("x:1", group_id="g", **options),
            self.clock,
            Interceptors([self]),
        )

    def submit(self, coroutine: Coroutine[Any, Any, None]) -> "concurrent.futures.Future[None]":
        coroutine.close()
        self.futures.append(concurrent.futures.Future())
        return self.futures[-1]

    def on_commit(self, offsets: Any, error: Any) -> None:
        self.seen.append(("intercepted", offsets[A].offset, error))

    def callback(self, offsets: Any, error: Any) -> None:
        self.seen.append(("called", offsets[A].offset, error))

    def run_callbacks(self) -> None:
        self.side.run(self.commits.run_callbacks())


def test_callbacks_run_in_order_and_when_asked_for() -> None:
    world = World()
    for offset in (1, 2):
        world.commits.start({A: OffsetAndMetadata(offset)}, world.callback)
    failure = CommitFailedError("gone")
    world.futures[1].set_exception(failure)
    world.run_callbacks()
    assert world.seen == []
    assert world.commits.is_pending
    world.futures[0].set_result(None)
    assert world.seen == []
    world.run_callbacks()
    assert world.seen == [
        ("intercepted", 1, None),
        ("called", 1, None),
        ("intercepted", 2, failure),
        ("called", 2, failure),
    ]
    assert not world.commits.is_pending


def test_a_cancelled_commit_got_no_response() -> None:
    world = World()
    pending = world.commits.start({A: OffsetAndMetadata(1)})
    pending.future.cancel()
    assert isinstance(error_of(pending.future), ClosedError)


def test_there_must_be_a_group() -> None:
    with pytest.raises(IllegalStateError, match="group_id"):
        World(group=False).commits.start({A: OffsetAndMetadata(1)})


def test_automatic_commits_come_when_due_one_at_a_time() -> None:
    world = World(auto_commit_interval_ms=1000)
    assert world.commits.auto_due_in_ms == 1000
    assert world.commits.maybe_auto_commit() is None
    world.clock.advance(1000)
    pending = world.commits.maybe_auto_commit()
    assert pending is not None
    assert pending.offsets == {A: OffsetAndMetadata(5)}
    world.clock.advance(5000)
    assert world.commits.auto_due_in_ms is None
    assert world.commits.maybe_auto_commit() is None
    world.futures[0].set_result(None)
    world.run_callbacks()
    assert world.commits.maybe_auto_commit() is not None


def test_an_automatic_commit_that_may_succeed_later_is_tried_soon() -> None:
    world = World(auto_commit_interval_ms=60_000, retry_backoff_ms=50)
    assert world.commits.maybe_auto_commit(now=True) is not None
    world.futures[0].set_exception(error_for(ErrorCode.COORDINATOR_NOT_AVAILABLE))
    world.run_callbacks()
    assert world.commits.auto_due_in_ms == 50
    world.clock.advance(50)
    assert world.commits.maybe_auto_commit() is not None
    world.futures[1].set_exception(CommitFailedError("gone"))
    world.run_callbacks()
    assert world.commits.auto_due_in_ms == 60_000


def test_nothing_automatic_unless_asked_for_or_without_positions() -> None:
    assert World(enable_auto_commit=False).commits.maybe_auto_commit(now=True) is None
    assert World(enable_auto_commit=False).commits.auto_due_in_ms is None
    world = World()
    world.subscription.unsubscribe()
    assert world.commits.maybe_auto_commit(now=True) is None
