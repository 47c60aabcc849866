"""What a user may hang into a consumer: a listener for rebalances, interceptors for records and commits."""

from collections.abc import Awaitable, Mapping, Sequence
from typing import Protocol

from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.errors import KafkaError
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition


class RebalanceListener:
    """Told of every change of the assignment, in the user's own thread, from within poll, unsubscribe and close.

    Derive from it and override what is of interest. With the asyncio consumer the methods may be coroutines.
    """

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """These go to somebody else once this returns: finish and commit what was read of them."""

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """These come in addition; seek here to start elsewhere than at the committed offset."""

    def on_lost(self, partitions: Sequence[TopicPartition]) -> Awaitable[None] | None:
        """These are somebody else's already, a commit would be refused. Treated as revoked unless overridden."""
        return self.on_revoked(partitions)


class ConsumerInterceptor(Protocol):
    """In `interceptor_classes`, or its class; one method may be missing. What they raise is logged and ignored."""

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        """Sees, and may replace, what poll is about to return."""
        ...

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
        """After each commit of offsets."""
        ...
