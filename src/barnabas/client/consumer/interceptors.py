"""Calls the user's interceptors, one after the other; what one raises is logged, never passed on."""

import logging
from collections.abc import Mapping, Sequence
from typing import Any

from barnabas.client.consumer.offsets import OffsetAndMetadata
from barnabas.errors import KafkaError
from barnabas.records.codec import ConsumerRecord
from barnabas.types import TopicPartition

logger = logging.getLogger("barnabas.client.consumer")


class Interceptors:
    def __init__(self, interceptors: Sequence[Any]) -> None:
        self._on_consume = [each.on_consume for each in interceptors if hasattr(each, "on_consume")]
        self._on_commit = [each.on_commit for each in interceptors if hasattr(each, "on_commit")]

    def on_consume(self, records: list[ConsumerRecord]) -> list[ConsumerRecord]:
        for on_consume in self._on_consume:
            try:
                records = on_consume(records)
            except Exception:
                logger.exception("an interceptor failed on %d records", len(records))
        return records

    def on_commit(self, offsets: Mapping[TopicPartition, OffsetAndMetadata], error: KafkaError | None) -> None:
        for on_commit in self._on_commit:
            try:
                on_commit(offsets, error)
            except Exception:
                logger.exception("an interceptor failed on a commit")
