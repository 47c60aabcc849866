"""Gives every assigned partition a valid position: committed offset, else reset; validated after a change of leader.

On the I/O thread. `kick` starts it again whenever something changed: assignment, seek, metadata, an error that poll has
raised. Each kind of lookup runs in a task of its own, so that a coordinator that does not respond delays no reset.
Permanent errors are passed to poll; their partitions are parked until the user has seen them.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, Protocol

from barnabas.client.background import Background, as_failure
from barnabas.client.cluster_client import ClusterClient
from barnabas.client.consumer.last_errors import LastErrors
from barnabas.client.consumer.offset_lookup import EpochRequest, OffsetLookup
from barnabas.client.consumer.offsets import OffsetAndMetadata, OffsetReset
from barnabas.client.consumer.partition_state import FetchState, PartitionState, Truncation
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.errors import (
    LogTruncationError,
    NoOffsetForPartitionError,
    OffsetOutOfRangeError,
    UnsupportedVersionError,
)
from barnabas.client.options import ConsumerOptions
from barnabas.clock import Clock
from barnabas.errors import KafkaError
from barnabas.types import NO_LEADER, TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class CommittedOffsets(Protocol):
    """Reads the committed offsets of the group."""

    async def fetch(
        self, partitions: Sequence[TopicPartition]
    ) -> Mapping[TopicPartition, OffsetAndMetadata | None]: ...


class PositionKeeper:
    """Initializes, resets and validates positions. On the I/O thread."""

    def __init__(
        self,
        cluster: ClusterClient,
        subscription: SubscriptionState,
        lookup: OffsetLookup,
        committed: CommittedOffsets | None,
        options: ConsumerOptions,
        clock: Clock,
        *,
        on_ready: Callable[[], None],
        on_error: Callable[[KafkaError, Sequence[PartitionState]], None],
    ) -> None:
        self._cluster = cluster
        self._subscription = subscription
        self._lookup = lookup
        self._committed = committed
        self._options = options
        self._clock = clock
        self._on_ready = on_ready
        self._on_error = on_error
        self._background = Background()
        self._timer: asyncio.TimerHandle | None = None
        self._refreshing = False
        self.last_errors = LastErrors(subscription)

    def kick(self) -> None:
        """Checks every partition and starts what is missing. Nothing is awaited here."""
        try:
            self._kick()
        except Exception as error:
            self._fail(as_failure("checking positions", error), self._subscription.states())

    def _kick(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self.follow_metadata()
        for fetch_state, work in (
            (FetchState.INITIALIZING, self._initialize),
            (FetchState.AWAIT_RESET, self._reset),
            (FetchState.AWAIT_VALIDATION, self._validate),
        ):
            for states in self._by_node(self._subscription.in_state(fetch_state, now_ms)):
                for state in states:
                    state.retry_at_ms = now_ms + self._options.default_api_timeout_ms  # while it is in flight
                self._start(self._guarded(work, states), states)
        self._refresh_if_leaderless()
        self._on_ready()
        self._set_timer(now_ms)

    def _by_node(self, states: Sequence[PartitionState]) -> list[list[PartitionState]]:
        """By the node that serves them, so that a broker that does not respond delays its own partitions only."""
        groups: dict[int, list[PartitionState]] = {}
        for state in states:
            node_id = NO_LEADER
            if state.state is not FetchState.INITIALIZING:  # the group's coordinator serves those
                leader = self._cluster.metadata.leader(state.topic_partition)
                node_id = NO_LEADER if leader is None else leader.node_id
            groups.setdefault(node_id, []).append(state)
        return list(groups.values())

    async def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
        await self._background.close()

    def follow_metadata(self) -> None:
        """Every position learns who leads its partition now; that may call for a validation, or a reset."""
        metadata = self._cluster.metadata
        recreated = []
        with self._subscription.lock:
            for state in self._subscription.states():
                topic = metadata.topic(state.topic_partition.topic)
                leader = metadata.leader(state.topic_partition)
                if topic is None or leader is None:
                    continue
                had_position = state.has_position
                if state.check_leader(leader.node_id, leader.leader_epoch, topic.topic_id) and had_position:
                    recreated.append(state)
        for state in recreated:
            self._on_recreated(state)

    def _on_recreated(self, state: PartitionState) -> None:
        where = state.topic_partition
        logger.warning(
            "topic %s was deleted and created again: offset %d of %s is void", where.topic, state.offset, where
        )
        if self._subscription.default_reset.name != "none":
            with self._subscription.lock:
                state.request_reset(self._subscription.default_reset)
            return
        self._fail(
            OffsetOutOfRangeError(
                f"topic {where.topic} was deleted and created again, so offset {state.offset} of {where} is void and "
                "auto.offset.reset is none: seek to where to go on",
                {where: state.offset},
            ),
            [state],
        )

    # the three questions

    async def _initialize(self, states: Sequence[PartitionState]) -> None:
        committed: Mapping[TopicPartition, OffsetAndMetadata | None] = {}
        if self._committed is not None:
            committed = await self._committed.fetch([state.topic_partition for state in states])
        homeless = []
        with self._subscription.lock:
            for state in states:
                if state.state is not FetchState.INITIALIZING:
                    continue
                offset = committed.get(state.topic_partition)
                if offset is not None:
                    state.seek(offset.offset, offset.leader_epoch)
                    logger.info("%s starts at the committed offset %d", state.topic_partition, offset.offset)
                elif self._subscription.default_reset.name == "none":
                    homeless.append(state)
                else:
                    state.request_reset(self._subscription.default_reset)
        if homeless:
            names = [state.topic_partition for state in homeless]
            self._fail(
                NoOffsetForPartitionError(
                    f"nothing is committed for {', '.join(map(str, names))} and auto.offset.reset is none: "
                    "seek to where to start, or set auto_offset_reset to earliest or latest",
                    names,
                ),
                homeless,
            )

    async def _reset(self, states: Sequence[PartitionState]) -> None:
        now_ms = self._clock.now_ms()
        requested: dict[TopicPartition, tuple[PartitionState, OffsetReset]] = {}
        for state in states:
            if state.reset is not None:
                requested[state.topic_partition] = (state, state.reset)
        found, failed = await self._lookup.list_offsets_once(
            {entry: reset.timestamp(now_ms) for entry, (_, reset) in requested.items()}
        )
        past_the_end = []
        with self._subscription.lock:
            for entry, result in found.items():
                state, reset = requested[entry]
                if result.offset < 0:
                    past_the_end.append((state, reset))
                elif state.complete_reset(reset, result.offset):
                    logger.info("%s: position reset to offset %d (%s)", entry, result.offset, reset.name)
        if past_the_end:
            await self._reset_to_end(past_the_end)
        self._retry_later(failed, {entry: state for entry, (state, _) in requested.items()})

    async def _reset_to_end(self, states: Sequence[tuple[PartitionState, OffsetReset]]) -> None:
        """by_duration found no record that young: what comes next is the first."""
        requested = {state.topic_partition: (state, reset) for state, reset in states}
        found, failed = await self._lookup.list_offsets_once(dict.fromkeys(requested, -1))
        with self._subscription.lock:
            for entry, result in found.items():
                state, reset = requested[entry]
                state.complete_reset(reset, result.offset)
        self._retry_later(failed, {entry: state for entry, (state, _) in requested.items()})

    async def _validate(self, states: Sequence[PartitionState]) -> None:
        requested = {state.topic_partition: (state, state.version, state.fetch_offset) for state in states}
        leaders = {state.topic_partition: (state.leader, state.leader_epoch) for state in states}
        questions = {
            state.topic_partition: EpochRequest(state.leader, state.leader_epoch, state.fetch_epoch) for state in states
        }
        found, failed = await self._lookup.epoch_ends(questions)
        truncated: list[Truncation] = []
        with self._subscription.lock:
            for entry, end in found.items():
                state, version, offset = requested[entry]
                if (state.leader, state.leader_epoch) != leaders[entry]:
                    continue  # a lookup at the next leader is in flight
                truncation = state.complete_validation(
                    version, offset, end.end_offset, end.leader_epoch, self._subscription.default_reset
                )
                if truncation is not None:
                    truncated.append(truncation)
                elif end.end_offset < offset:
                    logger.warning("%s was truncated at offset %d, position was %d", entry, end.end_offset, offset)
            for entry in [entry for entry, error in failed.items() if isinstance(error, UnsupportedVersionError)]:
                state = requested[entry][0]
                del failed[entry]
                if state.state is FetchState.AWAIT_VALIDATION:
                    state.state = FetchState.FETCHING  # the broker is too old to say
        if truncated:
            self._fail(_truncation_error(truncated), [requested[each.topic_partition][0] for each in truncated])
        self._retry_later(failed, {entry: state for entry, (state, _, _) in requested.items()})

    # what goes wrong

    async def _guarded(
        self, work: Callable[[Sequence[PartitionState]], Coroutine[Any, Any, None]], states: Sequence[PartitionState]
    ) -> None:
        before = [(state, state.state, state.version) for state in states]
        try:
            await work(states)
        except KafkaError as error:
            self._retry_later(
                {state.topic_partition: error for state in states}, {s.topic_partition: s for s in states}
            )
        else:
            # Without a result or an error: looked up again soon. What moved on: at once.
            soon_ms = self._clock.monotonic_ms() + self._options.retry_backoff_ms
            for state, was, version in before:
                moved_on = (state.state, state.version) != (was, version)
                if moved_on:
                    self.last_errors.clear(state.topic_partition)
                state.retry_at_ms = 0 if moved_on else min(state.retry_at_ms, soon_ms)
        self.kick()

    def _retry_later(
        self, failed: Mapping[TopicPartition, KafkaError], states: Mapping[TopicPartition, PartitionState]
    ) -> None:
        if not failed:
            return
        retry_at_ms = self._clock.monotonic_ms() + self._options.retry_backoff_ms
        fatal: dict[int, tuple[KafkaError, list[PartitionState]]] = {}
        for entry, error in failed.items():
            state = states[entry]
            state.retry_at_ms = retry_at_ms
            if not error.retriable:
                fatal.setdefault(id(error), (error, []))[1].append(state)
        self.last_errors.record({entry: error for entry, error in failed.items() if error.retriable})
        for error, concerned in fatal.values():
            self._fail(error, concerned)
        self._start(self._refresh({entry.topic for entry in failed}), list(states.values()))

    def _fail(self, error: KafkaError, states: Sequence[PartitionState]) -> None:
        for state in states:
            state.parked = True
            state.retry_at_ms = 0
        self._on_error(error, states)

    # metadata

    def _refresh_if_leaderless(self) -> None:
        """Partitions that could be fetched if only their leader were known."""
        leaderless = self._leaderless()
        if leaderless and not self._refreshing:
            self._refreshing = True
            self._start(self._find_leaders({state.topic_partition.topic for state in leaderless}), leaderless)

    def _leaderless(self) -> list[PartitionState]:
        return [s for s in self._subscription.states() if s.has_position and s.leader < 0 and not s.parked]

    async def _find_leaders(self, topics: set[str]) -> None:
        try:
            why = await self._refresh(topics)
            self.follow_metadata()
            leaderless = self._leaderless()
            if leaderless:
                self._note_leaderless(leaderless, why)
                await asyncio.sleep(self._options.retry_backoff_ms / 1000)
        finally:
            self._refreshing = False
        self.kick()

    def _note_leaderless(self, states: Sequence[PartitionState], why: KafkaError | None) -> None:
        errors = {state.topic_partition: why or self._lookup.no_leader(state.topic_partition) for state in states}
        self.last_errors.record({entry: error for entry, error in errors.items() if error.retriable})
        for state in states:
            error = errors[state.topic_partition]
            if not error.retriable:
                self._fail(error, [state])

    async def _refresh(self, topics: set[str]) -> KafkaError | None:
        """The reason if it cannot be had now, but may be later."""
        try:
            return await self._lookup.refresh(topics)
        except KafkaError as error:
            states = [s for s in self._subscription.states() if s.topic_partition.topic in topics]
            self._fail(error, states)
            return error

    def _start(self, work: Coroutine[Any, Any, object], states: Sequence[PartitionState]) -> None:
        """If it fails unexpectedly, poll raises that; the partitions stand still until then, and are tried again."""
        self._background.start("looking up positions", work, lambda error: self._fail(error, states))

    def _set_timer(self, now_ms: int) -> None:
        due = [
            state.retry_at_ms
            for state in self._subscription.states()
            if state.retry_at_ms > now_ms and not state.parked
        ]
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if due:
            self._timer = asyncio.get_running_loop().call_later((min(due) - now_ms + 1) / 1000, self.kick)


def _truncation_error(truncated: Sequence[Truncation]) -> LogTruncationError:
    parts = [
        f"{each.topic_partition} at offset {each.offset}"
        + (f" (the log now diverges at {each.divergent_offset.offset})" if each.divergent_offset else "")
        for each in truncated
    ]
    return LogTruncationError(
        f"records that were read are gone after an unclean election: {', '.join(parts)}; "
        "seek to where to go on, or set auto_offset_reset so that this is done for you",
        [each.topic_partition for each in truncated],
    )
