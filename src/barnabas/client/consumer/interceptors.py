"""Calls the user's interceptors, one after the other; what one raises is logged, never passed on.

Nor is what it returns, unless that is a list: positions have moved by then, and a forgotten `return` would lose every
record without a word.
"""

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
