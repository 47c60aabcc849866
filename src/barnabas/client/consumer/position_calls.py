"""Where a consumer reads: seeks, positions and how far they are behind the end. A part of the core."""

from collections.abc import Iterable

from barnabas.client.consumer.arguments import Partition, offset_of, partition_of
from barnabas.client.consumer.lookup_calls import LookupCalls
from barnabas.client.consumer.offsets import EARLIEST, LATEST, OffsetAndMetadata, OffsetReset
from barnabas.client.consumer.runtime import ConsumerRuntime
from barnabas.client.consumer.subscription import SubscriptionState
from barnabas.client.consumer.user_calls import UserCalls
from barnabas.client.errors import ClientTimeoutError, UnknownTopicError, UnreachableError
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition


class PositionCalls:
    """The calls of the consumer about positions."""

    def __init__(
        self, calls: UserCalls, subscription: SubscriptionState, runtime: ConsumerRuntime, lookups: LookupCalls
    ) -> None:
        self._calls = calls
        self._subscription = subscription
        self._runtime = runtime
        self._lookups = lookups

    def seek(self, partition: Partition, offset: int | OffsetAndMetadata) -> None:
        """poll continues there. The leader epoch of an OffsetAndMetadata is checked, which detects a truncated log."""
        where = offset_of(offset, hint="; for the ends see seek_to_beginning, seek_to_end")
        with self._calls.guard:
            self._subscription.seek(partition_of(partition), where.offset, where.leader_epoch)
            self._runtime.on_assignment()

    def seek_to_beginning(self, partitions: Iterable[Partition] | None = None) -> None:
        """To the first record there is; of all assigned partitions if left out, of no partition if that is empty."""
        self._seek_to(EARLIEST, partitions)

    def seek_to_end(self, partitions: Iterable[Partition] | None = None) -> None:
        """After the last record (with read_committed: before the first open transaction); of all if left out."""
        self._seek_to(LATEST, partitions)

    def _seek_to(self, reset: OffsetReset, partitions: Iterable[Partition] | None) -> None:
        with self._calls.guard:
            self._subscription.request_reset(self._subscription.chosen(partitions), reset)
            self._runtime.on_assignment()

    async def seek_to_time(
        self, timestamp_ms: int, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> None:
        """To the first record of each partition at or after that time; to the end where there is none."""
        with self._calls.guard:
            chosen = self._subscription.chosen(partitions)
            for entry in chosen:
                self._subscription.state(entry)
            found = await self._lookups.offsets_for_times(dict.fromkeys(chosen, timestamp_ms), timeout=timeout)
            self._subscription.request_reset([entry for entry, offset in found.items() if offset is None], LATEST)
            for entry, offset in found.items():
                if offset is not None:
                    self._subscription.seek(entry, offset.offset, offset.leader_epoch)
            self._runtime.on_assignment()

    async def position(self, partition: Partition, *, timeout: float | None = None) -> int:
        """The offset of the next record that poll will return; waits until it is known."""
        with self._calls.guard:
            state = self._subscription.state(partition_of(partition))
            deadline = self._calls.deadline(timeout)
            self._runtime.kick()
            while not state.has_position:
                self._calls.check_woken()
                if (error := self._runtime.next_error()) is not None:
                    raise error
                if deadline.expired:
                    raise _no_position(state.topic_partition, self._runtime.why_no_position(state.topic_partition))
                await self._calls.side.wait(deadline.remaining_s)
            return state.offset

    def current_lag(self, partition: Partition) -> int | None:
        """How far the position is behind the end, as of the last fetch; None before the first."""
        state = self._subscription.state(partition_of(partition))
        return state.lag(self._calls.options.isolation_level == "read_committed")

    async def lag(
        self, partitions: Iterable[Partition] | None = None, *, timeout: float | None = None
    ) -> dict[TopicPartition, int]:
        """How far the positions are behind the end, looked up at the brokers now; of all assigned if left out."""
        with self._calls.guard:
            chosen = self._subscription.chosen(partitions)
            deadline = self._calls.deadline(timeout)
            ends = await self._lookups.end_offsets(chosen, timeout=timeout)
            return {
                entry: max(0, ends[entry] - await self.position(entry, timeout=deadline.remaining_s))
                for entry in chosen
            }


def _no_position(entry: TopicPartition, cause: KafkaError | None) -> KafkaError:
    """The cause says more than that the time is over."""
    if isinstance(cause, UnknownTopicError | UnreachableError):
        return cause
    return ClientTimeoutError(
        f"no position for {entry} yet{'' if cause is None else f' ({cause.message})'}: try again, or seek"
    )
