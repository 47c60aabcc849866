"""What a consumer does, whichever way it is called: the blocking class and the asyncio twin are facades over this.

Methods that may wait are coroutines over the user's side (see user_side.py), the others plain functions. core_base.py
has the parts and the way to the I/O thread, polling.py has poll, core_lookups.py what can be asked; this file the rest.
"""

import functools
import re
from collections.abc import Iterable, Mapping
from typing import Any

from barnabas.client.consumer.arguments import (
    Partition,
    listener_of,
    offset_of,
    offsets_of,
    partition_of,
    partitions_of,
    pattern_of,
    topics_of,
)
from barnabas.client.consumer.commits import CommitCallback, Offsets
from barnabas.client.consumer.core_base import logger
from barnabas.client.consumer.core_lookups import LookupCore
from barnabas.client.consumer.group import GroupMetadata
from barnabas.client.consumer.group.driver import MembershipDriver
from barnabas.client.consumer.listener import RebalanceListener
from barnabas.client.consumer.offset_reset import EARLIEST, LATEST, OffsetReset
from barnabas.client.consumer.offsets import OffsetAndMetadata, SubscriptionPattern
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionKind
from barnabas.client.errors import IllegalStateError
from barnabas.client.options import ConsumerOptions
from barnabas.client.plugins import close_plugins
from barnabas.client.retry import Deadline
from barnabas.client.unclosed import end_when_collected
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition

CLOSE_TIMEOUT_S = 30.0


class ConsumerCore(LookupCore):
    # what to read

    def subscribe(
        self,
        topics: Iterable[str] | re.Pattern[str] | SubscriptionPattern,
        listener: RebalanceListener | None = None,
    ) -> None:
        """To topics by name, to all that match a compiled regular expression, or to a pattern the broker evaluates.

        Replaces an earlier subscription. Partitions come with the rebalance that follows, within poll.
        """
        with self._guard:
            membership = self._runtime.membership
            if membership is None:
                raise IllegalStateError("subscribe needs a group_id; without a group, assign partitions by hand")
            listener = listener_of(listener)
            if isinstance(topics, re.Pattern | SubscriptionPattern):
                if isinstance(topics, SubscriptionPattern) and self.options.group_protocol != "consumer":
                    raise IllegalStateError("a SubscriptionPattern needs group_protocol='consumer'; or re.compile it")
                self._subscription.subscribe_pattern(pattern_of(topics))
                self._rebalances.listener = listener
                membership.subscribe(None, topics)
                return
            names = topics_of(topics)
            if not names:
                raise ValueError("subscribe needs at least one topic; to end a subscription call unsubscribe()")
            self._subscription.subscribe(names)
            self._rebalances.listener = listener
            membership.subscribe(names, None)

    def assign(self, partitions: Iterable[Partition]) -> None:
        """Exactly these partitions, without a rebalance. One that was assigned before keeps its position."""
        with self._guard:
            chosen = partitions_of(partitions)
            self._commits.maybe_auto_commit(now=True)
            self._subscription.assign(chosen)
            self._on_assignment()

    async def unsubscribe(self) -> None:
        """Gives up all partitions and leaves the group."""
        with self._guard:
            membership = self._runtime.membership
            if membership is not None and self._subscription.uses_group:
                membership.subscribe(None, None)
                await self._handle_events_until_unassigned(membership)
            self._subscription.unsubscribe()
            self._on_assignment()

    async def _handle_events_until_unassigned(self, membership: MembershipDriver) -> None:
        """The group asks back for what this member has, also if it was about to be given it; then it has left."""
        deadline = self._deadline(None)
        while not deadline.expired:
            settled = self._io.submit(membership.settle())
            settled.add_done_callback(lambda _: self._side.notify())
            while not settled.done() and not deadline.expired:
                await self._side.wait(deadline.remaining_s)
            if (event := self._runtime.next_event()) is not None:
                await self._rebalances.handle(event)
            elif membership.owes_events:
                await self._side.wait(deadline.remaining_s)
            else:
                return

    def has_joined(self) -> bool:
        """Whether it is known what there is to read: assigned by hand, or by a group that is not rebalancing."""
        membership = self._runtime.membership
        if membership is None or not self._subscription.uses_group:
            return True
        return not (membership.is_lost or membership.is_rebalancing or membership.is_waiting)

    def assignment(self) -> frozenset[TopicPartition]:
        return self._subscription.assignment()

    def subscription(self) -> frozenset[str]:
        """The topics subscribed to; with a pattern, those that match it so far."""
        membership = self._runtime.membership
        if self._subscription.kind is SubscriptionKind.PATTERN and membership is not None:
            return membership.subscription
        return self._subscription.topics

    def pause(self, partitions: Iterable[Partition]) -> None:
        """poll returns nothing of these until they are resumed; what was fetched of them is kept."""
        with self._guard:
            self._subscription.set_paused(partitions_of(partitions), True)
            self._runtime.kick()  # others may have waited because of these

    def resume(self, partitions: Iterable[Partition]) -> None:
        with self._guard:
            self._subscription.set_paused(partitions_of(partitions), False)
            self._runtime.kick()

    def paused(self) -> frozenset[TopicPartition]:
        return self._subscription.paused()

    # where to read

    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """poll goes on there. With an OffsetAndMetadata its leader epoch is checked, which detects a truncated log."""
        where = offset_of(offset, hint="; for the ends see seek_to_beginning, seek_to_end")
        with self._guard:
            self._subscription.seek(partition_of(partition), where.offset, where.leader_epoch)
            self._on_assignment()

    def seek_to_beginning(self, partitions: Iterable[Partition] | None = None) -> None:
        """To the first record there is; of all assigned partitions if left out, of no partition if that is empty."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[Partition] | None = None) -> None:
        """After the last record (with read_committed: before the first open transaction); of all if left out."""
        self._seek_to(LATEST, partitions)

    def _seek_to(self, reset: OffsetReset, partitions: Iterable[Partition] | None) -> None:
        with self._guard:
            self._subscription.request_reset(self._chosen(partitions), reset)
            self._on_assignment()

    async def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> None:
        """To the first record of each partition at or after that time; to the end where there is none."""
        with self._guard:
            chosen = self._chosen(partitions)
            for entry in chosen:
                self._subscription.state(entry)
            found = await self.offsets_for_times(dict.fromkeys(chosen, timestamp_ms), timeout=timeout)
            self._subscription.request_reset([entry for entry, offset in found.items() if offset is None], LATEST)
            for entry, offset in found.items():
                if offset is not None:
                    self._subscription.seek(entry, offset.offset, offset.leader_epoch)
            self._on_assignment()

    # commits

    async def commit(
        self, offsets: Mapping[Any, OffsetAndMetadata | int] | None = None, *, timeout: float | None = None
    ) -> None:
        """Stores positions with the group and waits for it: all that poll has returned, or just these offsets."""
        with self._guard:
            to_commit = self._offsets(offsets)
            if to_commit:
                await self._commit(to_commit, self._deadline(timeout))

    def commit_async(
        self,
        offsets: Mapping[Any, OffsetAndMetadata | int] | None = None,
        callback: CommitCallback | None = None,
    ) -> None:
        """The same without waiting; `callback(offsets, error)` runs in a later poll, commit or close."""
        with self._guard:
            if callback is not None and not callable(callback):
                raise TypeError(f"the callback of a commit is a function (offsets, error), not {callback!r}")
            self._commits.start(self._offsets(offsets), callback)

    def _offsets(self, offsets: Mapping[Any, OffsetAndMetadata | int] | None) -> Offsets:
        if self._runtime.committer is None:
            raise IllegalStateError("there is no group to commit to: give the consumer a group_id")
        if offsets is None:
            return self._subscription.consumed()
        return offsets_of(offsets)

    async def committed(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, OffsetAndMetadata | None]:
        """What the group has stored for these partitions (default: those assigned); None where nothing is."""
        with self._guard:
            committer = self._runtime.committer
            if committer is None:
                raise IllegalStateError("nothing is committed without a group: give the consumer a group_id")
            chosen = self._chosen(partitions)
            deadline = self._deadline(timeout)
            return await self._on_io(committer.fetch(chosen, timeout_ms=deadline.remaining_ms), deadline)

    def consumed(self) -> dict[TopicPartition, OffsetAndMetadata]:
        """What commit() would store: the position of each partition. A transaction's send_offsets takes this."""
        with self._guard:
            return self._subscription.consumed()

    def group_metadata(self) -> GroupMetadata:
        """Who this consumer is in its group, for a transaction's send_offsets."""
        membership = self._runtime.membership
        if membership is None:
            raise IllegalStateError("the consumer is in no group: give it a group_id")
        return membership.group_metadata()

    def enforce_rebalance(self, reason: str = "") -> None:
        """Asks the group for a rebalance at the next poll."""
        with self._guard:
            if self._runtime.membership is None or not self._subscription.uses_group:
                raise IllegalStateError("there is no group to rebalance: subscribe with a group_id")
            self._runtime.membership.request_rejoin(reason or "enforce_rebalance was called")

    # the end

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_S, *, commit: bool = True) -> None:
        """Commits if that is automatic, runs the listener, leaves the group, ends all connections. Once is enough.

        `commit=False`: what poll returned last is not taken as done, and not committed.
        """
        if self._guard.closed or self._guard.is_forked:
            return
        with self._guard:
            deadline = self._deadline(timeout)
            self._woken = False
            self._commits_when_leaving = commit
            self._closing = deadline
            try:
                await self._wind_up(deadline)
            finally:
                self._guard.closed = True
                await self._end(deadline)

    async def leave(self, failed: bool) -> None:
        """The end of a `with` block; if it failed, records in hand count as not done, so that they come again."""
        await self.close(commit=not (failed and self._given_out))

    def end_with(self, facade: object) -> None:
        """When the user's object is collected, unclosed, the member leaves.

        Nothing is committed then: nobody has said that what poll returned last was done. What is passed on must not
        refer to this object, since a listener may refer to the facade.
        """
        leave = self.options.group_instance_id is None
        end_when_collected(facade, self._io, functools.partial(_end_collected, self._runtime, self.options, leave))

    async def _wind_up(self, deadline: Deadline) -> None:
        """All that needs the group and the user's side."""
        partitions = tuple(sorted(self._subscription.assignment()))
        if not self._subscription.uses_group:
            await self._commit_before_revocation(partitions)
        elif self._runtime.membership is not None and self._runtime.membership.is_lost:
            await self._rebalances.lose(partitions)
        else:
            await self._rebalances.revoke(partitions)
        while self._commits.is_pending and not deadline.expired:
            await self._commits.run_callbacks()
            if self._commits.is_pending:
                await self._side.wait(deadline.remaining_s)

    async def _end(self, deadline: Deadline) -> None:
        try:
            # A static member stays: its partitions wait for it until its session ends.
            leave = self.options.group_instance_id is None
            await self._on_io(self._runtime.close(leave=leave), deadline)
        except KafkaError as error:
            logger.info("closed with some ends loose: %s", error)
        finally:
            close_plugins(self.options)
            self._io.stop()
            self._ended = True
            self._side.notify()


async def _end_collected(runtime: ConsumerRuntime, options: ConsumerOptions, leave: bool) -> None:
    await runtime.close(leave=leave)
    close_plugins(options)
