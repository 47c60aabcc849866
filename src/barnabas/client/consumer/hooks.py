"""Hooks of a consumer that users write: a listener for rebalances, interceptors for records and commits."""

import logging
from collections.abc import Awaitable, Mapping, Sequence
from typing import Any, Protocol

from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.errors import KafkaError
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class RebalanceListener:
    """Called for every change of the assignment, in the user's own thread, from within poll, unsubscribe and close.

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


class Interceptors:
    """Calls the user's interceptors, one after the other. What one raises is logged, never passed on.

    What `on_consume` returns is ignored unless it is a list: positions have moved by then, and a forgotten `return`
    would lose every record silently.
    """

    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._on_consume = [each.on_consume for each in interceptors if hasattr(each, "on_consume")]
        self._on_commit = [each.on_commit for each in interceptors if hasattr(each, "on_commit")]

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for on_consume in self._on_consume:
            try:
                changed = on_consume(records)
            except Exception:
                logger.exception("an interceptor failed on %d records", len(records))
                continue
            if isinstance(changed, list):
                records = changed
            else:
                logger.error("an interceptor's on_consume returned %s, not a list", type(changed).__name__)
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
        for on_commit in self._on_commit:
            try:
                on_commit(offsets, error)
            except Exception:
                logger.exception("an interceptor failed on a commit")
