"""What the consumer reads: the topics, pattern or partitions that the user chose, and the state of each partition.

Shared by the user's thread (subscribe, seek, pause, poll) and the I/O thread (fetch, reset, validate, rebalance); every
method takes the lock, none waits for anything else. The three ways to choose partitions exclude each other.
"""

import re
import threading
from collections.abc import Collection, Iterable
from enum import Enum

from barnabas.client.consumer.arguments import Partition, partitions_of
from barnabas.client.consumer.offsets import OffsetAndMetadata, OffsetReset, SubscriptionPattern
from barnabas.client.consumer.partition_state import FetchState, PartitionState
from barnabas.client.errors import IllegalStateError
from barnabas.types import TopicPartition

Pattern = re.Pattern[str] | SubscriptionPattern


class SubscriptionKind(Enum):
    """How the user chooses partitions."""

    NONE = "none"
    TOPICS = "topics"
    PATTERN = "pattern"
    ASSIGNED = "assigned"


class SubscriptionState:
    """The subscription and the state of each assigned partition, under one lock."""

    def __init__(self, default_reset: OffsetReset) -> None:
        self.lock = threading.RLock()
        self.default_reset = default_reset
        self.kind = SubscriptionKind.NONE
        self.topics: frozenset[str] = frozenset()
        self.pattern: Pattern | None = None
        self._partitions: dict[TopicPartition, PartitionState] = {}

    # what the user chooses

    def subscribe(self, topics: frozenset[str]) -> None:
        with self.lock:
            self._become(SubscriptionKind.TOPICS)
            self.topics = topics

    def subscribe_pattern(self, pattern: Pattern) -> None:
        with self.lock:
            self._become(SubscriptionKind.PATTERN)
            self.pattern = pattern

    def assign(self, partitions: Collection[TopicPartition]) -> None:
        """Replaces the assignment; a partition that stays keeps its position and what is buffered of it."""
        with self.lock:
            self._become(SubscriptionKind.ASSIGNED)
            self._replace(partitions)

    def unsubscribe(self) -> None:
        with self.lock:
            self._replace(())
            self.kind = SubscriptionKind.NONE
            self.topics = frozenset()
            self.pattern = None

    def _become(self, kind: SubscriptionKind) -> None:
        if self.kind not in (SubscriptionKind.NONE, kind):
            raise IllegalStateError(
                f"the consumer already chooses its partitions by {self.kind.value}: "
                "topics, pattern and assigned partitions exclude each other; call unsubscribe() first"
            )
        self.kind = kind

    # what the group gives and takes

    def add_from_group(self, partitions: Iterable[TopicPartition], pending_callback: bool) -> None:
        """Partitions to be read from now on, but not before the listener has seen them (it may seek)."""
        with self.lock:
            for topic_partition in partitions:
                if topic_partition not in self._partitions:
                    state = self._partitions[topic_partition] = PartitionState(topic_partition)
                    state.pending_callback = pending_callback

    def callbacks_done(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for topic_partition in partitions:
                if state := self._partitions.get(topic_partition):
                    state.pending_callback = False

    def hold_back(self, partitions: Iterable[TopicPartition]) -> None:
        """Partitions about to be revoked: nothing of them is fetched or delivered while the listener commits."""
        with self.lock:
            for topic_partition in partitions:
                if state := self._partitions.get(topic_partition):
                    state.pending_callback = True

    def remove(self, partitions: Iterable[TopicPartition]) -> None:
        with self.lock:
            for topic_partition in partitions:
                if state := self._partitions.pop(topic_partition, None):
                    state.void()

    def _replace(self, partitions: Collection[TopicPartition]) -> None:
        old = self._partitions
        self._partitions = {entry: old.get(entry) or PartitionState(entry) for entry in partitions}
        for topic_partition, state in old.items():
            if topic_partition not in self._partitions:
                state.void()

    # reading it

    @property
    def uses_group(self) -> bool:
        return self.kind in (SubscriptionKind.TOPICS, SubscriptionKind.PATTERN)

    def assignment(self) -> frozenset[TopicPartition]:
        with self.lock:
            return frozenset(self._partitions)

    def chosen(self, partitions: Iterable[Partition] | None) -> list[TopicPartition]:
        """These partitions, or all assigned ones for None. Empty stays empty: a listener may be given nothing."""
        return sorted(self.assignment()) if partitions is None else partitions_of(partitions)

    def paused(self) -> frozenset[TopicPartition]:
        with self.lock:
            return frozenset(entry for entry, state in self._partitions.items() if state.paused)

    def states(self) -> list[PartitionState]:
        with self.lock:
            return list(self._partitions.values())

    def find(self, topic_partition: TopicPartition) -> PartitionState | None:
        return self._partitions.get(topic_partition)

    def state(self, topic_partition: TopicPartition) -> PartitionState:
        state = self._partitions.get(topic_partition)
        if state is None:
            raise IllegalStateError(
                f"{topic_partition} is not assigned to this consumer: assign it, or poll until the group does"
            )
        return state

    def in_state(self, fetch_state: FetchState, now_ms: int) -> list[PartitionState]:
        """Those in that state that may be worked on now: no back-off is running, no error waits for the user."""
        with self.lock:
            return [
                state
                for state in self._partitions.values()
                if state.state is fetch_state and not state.parked and state.retry_at_ms <= now_ms
            ]

    def consumed(self, partitions: Collection[TopicPartition] | None = None) -> dict[TopicPartition, OffsetAndMetadata]:
        """What to commit: the position of each partition that has one, validated or about to be."""
        with self.lock:
            return {
                entry: OffsetAndMetadata(state.offset, "", state.offset_epoch)
                for entry, state in self._partitions.items()
                if state.has_position and (partitions is None or entry in partitions)
            }

    # moving positions

    def seek(self, topic_partition: TopicPartition, offset: int, offset_epoch: int = -1) -> None:
        with self.lock:
            self.state(topic_partition).seek(offset, offset_epoch)

    def request_reset(self, partitions: Iterable[TopicPartition], reset: OffsetReset) -> None:
        with self.lock:
            for state in [self.state(entry) for entry in partitions]:
                state.request_reset(reset)

    def set_paused(self, partitions: Iterable[TopicPartition], paused: bool) -> None:
        with self.lock:
            for state in [self.state(entry) for entry in partitions]:
                state.paused = paused

    def unpark(self) -> None:
        """poll has raised the error: parked partitions may be tried again."""
        with self.lock:
            for state in self._partitions.values():
                state.parked = False
