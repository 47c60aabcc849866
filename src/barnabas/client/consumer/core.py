"""The consumer behind both facades: one object that owns its parts. The blocking class and its twin add nothing.

    subscriptions   what to read, and the place in the group
    positions       where to read
    lookups         what brokers know: ends, offsets by time, topics
    commits         the offsets of the group
    polling         records, and all that happens within poll

Calls that may wait are coroutines over the user's side (`user_side`), the others plain functions; `user_calls` takes
them to the I/O thread, where `runtime` lives. This file puts the parts together and closes them.
"""

import functools
import logging

from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.collector import Collector
from barnabas.client.consumer.commit_calls import CommitCalls
from barnabas.client.consumer.commits import Commits
from barnabas.client.consumer.fetch_buffer import FetchBuffer
from barnabas.client.consumer.hooks import Interceptors
from barnabas.client.consumer.lookup_calls import LookupCalls
from barnabas.client.consumer.offsets import OffsetReset
from barnabas.client.consumer.polling import Polling
from barnabas.client.consumer.position_calls import PositionCalls
from barnabas.client.consumer.rebalances import Rebalances
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.consumer.subscription_calls import SubscriptionCalls
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.environment import environment
from barnabas.client.metrics.values import Metrics
from barnabas.client.options import ConsumerOptions
from barnabas.client.plugins import close_plugins, configure_plugins
from barnabas.client.retry import Deadline
from barnabas.client.unclosed import end_when_collected
from barnabas.client.user_side import UserSide
from barnabas.clock import Clock
from barnabas.errors import KafkaError

logger = logging.getLogger("barnabas.client.consumer")

CLOSE_TIMEOUT_S = 30.0


class ConsumerCore:
    """One consumer: its parts, put together when it is made and closed in order."""

    def __init__(
        self,
        options: ConsumerOptions,
        side: UserSide,
        *,
        cluster: ClusterClient | None = None,
        clock: Clock | None = None,
    ) -> None:
        configure_plugins(options)
        clock = clock or environment().clock
        self.options = options
        self._io = environment().start_io(options.client_id or "consumer")
        self._subscription = subscription = SubscriptionState(OffsetReset.of(options.auto_offset_reset))
        buffer = FetchBuffer(subscription)
        interceptors = Interceptors(options.interceptor_classes)
        self._runtime = runtime = ConsumerRuntime(
            options,
            self._io,
            cluster or ClusterClient(options, clock=clock),
            subscription,
            buffer,
            clock,
            side.notify,
        )
        collector = Collector(
            subscription,
            buffer,
            key_deserializer=options.key_deserializer,
            value_deserializer=options.value_deserializer,
            check_crcs=options.check_crcs,
            on_change=runtime.kick,
        )
        self.calls = calls = UserCalls(options, side, self._io, clock)
        self._commits = Commits(subscription, runtime.committer, side, self._io.submit, options, clock, interceptors)
        self.commits = CommitCalls(calls, subscription, runtime.committer, self._commits)
        self._rebalances = Rebalances(
            subscription, side, commit=self.commits.commit_before_revocation, on_change=runtime.on_assignment
        )
        self.subscriptions = SubscriptionCalls(calls, subscription, runtime, self._rebalances, self._commits)
        self.lookups = LookupCalls(calls, runtime)
        self.positions = PositionCalls(calls, subscription, runtime, self.lookups)
        self.polling = Polling(
            calls, subscription, buffer, runtime, collector, self._commits, self._rebalances, interceptors
        )

    def metrics(self) -> Metrics:
        """What this consumer measures, by Kafka's names: a name without tags is enough, `metrics()["fetch-total"]`."""
        return self._runtime.metrics()

    async def close(self, timeout: float | None = CLOSE_TIMEOUT_S, *, commit: bool = True) -> None:
        """Commits if that is automatic, runs the listener, leaves the group, ends all connections. Once is enough.

        `commit=False`: what poll returned last is not taken as done, and not committed.
        """
        guard = self.calls.guard
        if guard.closed or guard.is_forked:
            return
        with guard:
            deadline = self.calls.start_closing(timeout)
            self.commits.commits_on_revocation = commit
            try:
                await self._give_up_partitions(deadline)
            finally:
                guard.closed = True
                await self._end(deadline)

    async def leave(self, failed: bool) -> None:
        """The end of a `with` block; if it failed, the last records count as not processed and are read again."""
        await self.close(commit=not (failed and self.polling.given_out))

    def end_with(self, facade: object) -> None:
        """When the user's object is collected, unclosed, the member leaves.

        Nothing is committed then: nobody has said that what poll returned last was done. What is passed on must not
        refer to this object, since a listener may refer to the facade.
        """
        leave = self.options.group_instance_id is None
        end_when_collected(facade, self._io, functools.partial(_end_collected, self._runtime, self.options, leave))

    async def _give_up_partitions(self, deadline: Deadline) -> None:
        """The part of close that needs the group and the user's side: commits, listener, callbacks."""
        partitions = tuple(sorted(self._subscription.assignment()))
        if not self._subscription.uses_group:
            await self.commits.commit_before_revocation(partitions)
        elif self._runtime.membership is not None and self._runtime.membership.is_lost:
            await self._rebalances.lose(partitions)
        else:
            await self._rebalances.revoke(partitions)
        while self._commits.is_pending and not deadline.expired:
            await self._commits.run_callbacks()
            if self._commits.is_pending:
                await self.calls.side.wait(deadline.remaining_s)

    async def _end(self, deadline: Deadline) -> None:
        try:
            # A static member stays: its partitions wait for it until its session ends.
            leave = self.options.group_instance_id is None
            await self.calls.on_io(self._runtime.close(leave=leave), deadline)
        except KafkaError as error:
            logger.info("closed, but not cleanly: %s", error)
        finally:
            close_plugins(self.options)
            self._io.stop()
            self.calls.ended = True
            self.calls.side.notify()


async def _end_collected(runtime: ConsumerRuntime, options: ConsumerOptions, leave: bool) -> None:
    await runtime.close(leave=leave)
    close_plugins(options)
