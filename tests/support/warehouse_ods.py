"""Sends records to the ODS topics through librdkafka, to the partitions that Kafka's own clients would choose."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Protocol

from confluent_kafka import KafkaException, Producer


class Sendable(Protocol):
    @property
    def topic(self) -> str: ...
    @property
    def key(self) -> bytes | None: ...
    @property
    def value(self) -> bytes | None: ...


def send_all(bootstrap: str, records: Iterable[Sendable]) -> None:
    """In their order; raises if one was not taken."""
    settings: dict[str, Any] = {"bootstrap.servers": bootstrap, "enable.idempotence": True, "log_level": 0}
    producer = Producer({**settings, "partitioner": "murmur2_random", "queue.buffering.max.messages": 1_000_000})
    failures: list[Any] = []

    def delivered(error: Any, _: object) -> None:
        if error is not None:
            failures.append(error)

    for record in records:
        producer.produce(record.topic, record.value, record.key, on_delivery=delivered)
        producer.poll(0)
    assert producer.flush(120) == 0, "records were not delivered"
    if failures:
        raise KafkaException(failures[0])
