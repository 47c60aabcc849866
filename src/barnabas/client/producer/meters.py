"""What a producer counts, for `metrics()`: by Kafka's names. Written on the I/O thread, per batch."""

import math
from typing import TYPE_CHECKING

from barnabas.client.metrics.meters import Timing
from barnabas.client.metrics.values import Collecting
from barnabas.protocol.api import ApiKey

if TYPE_CHECKING:
    from barnabas.client.producer.batch import ProducerBatch
    from barnabas.client.producer.core import ProducerCore

GROUP, TOPIC_GROUP = "producer-metrics", "producer-topic-metrics"


class TopicMeter:
    __slots__ = ("bytes", "failed", "records", "retried", "wire_bytes")

    def __init__(self) -> None:
        self.records = 0
        self.bytes = 0
        """As the records are appended."""
        self.wire_bytes = 0
        """As they are sent, compressed."""
        self.failed = 0
        self.retried = 0


class ProducerMeters:
    """Counts since the producer was made."""

    __slots__ = ("batch_size", "batches", "flushes_ns", "queue_time", "requests", "splits", "throttle", "topics")

    def __init__(self) -> None:
        self.requests = 0
        self.batches = 0
        self.splits = 0
        self.flushes_ns = 0
        self.batch_size = Timing()
        self.queue_time = Timing()
        """From the first record of a batch until the batch is sent, in milliseconds."""
        self.throttle = Timing()
        self.topics: dict[str, TopicMeter] = {}

    def topic(self, name: str) -> TopicMeter:
        meter = self.topics.get(name)
        if meter is None:
            meter = self.topics[name] = TopicMeter()
        return meter

    def sent(self, batches: int) -> None:
        self.requests += 1
        self.batches += batches

    def acknowledged(self, batch: "ProducerBatch") -> None:
        meter = self.topic(batch.tp.topic)
        meter.records += batch.record_count
        meter.bytes += batch.size
        meter.wire_bytes += batch.size if batch.wire is None else len(batch.wire)
        self.batch_size.add(batch.size)

    def failed(self, batch: "ProducerBatch") -> None:
        self.topic(batch.tp.topic).failed += batch.record_count

    def retried(self, batch: "ProducerBatch") -> None:
        self.topic(batch.tp.topic).retried += batch.record_count

    @property
    def failed_records(self) -> int:
        return sum(topic.failed for topic in list(self.topics.values()))

    def split(self) -> None:
        self.splits += 1


def add_producer(out: Collecting, core: "ProducerCore") -> None:
    """Everything about a producer but its connections."""
    meters, pool, cluster = core.meters, core.accumulator.batches.pool, core.cluster
    topics = list(meters.topics.items())
    records = sum(topic.records for _, topic in topics)
    size = sum(topic.bytes for _, topic in topics)
    out.total(GROUP, "record-send", records)
    out.total(GROUP, "byte", size)
    out.total(GROUP, "record-error", sum(topic.failed for _, topic in topics))
    out.total(GROUP, "record-retry", sum(topic.retried for _, topic in topics))
    out.total(GROUP, "batch", meters.batches)
    out.total(GROUP, "batch-split", meters.splits)
    out.timing(GROUP, "batch-size", meters.batch_size)
    out.timing(GROUP, "record-queue-time", meters.queue_time)
    out.timing(GROUP, "request-latency", cluster.meters.timing(ApiKey.PRODUCE))
    out.timing(GROUP, "produce-throttle-time", meters.throttle)
    out.average(GROUP, "records-per-request-avg", records, meters.requests)
    out.average(GROUP, "record-size-avg", size, records)
    out.average(GROUP, "compression-rate-avg", sum(topic.wire_bytes for _, topic in topics), size)
    age_ms = cluster.metadata_age_ms()
    out.value(GROUP, "metadata-age", math.nan if age_ms is None else age_ms / 1000)
    out.value(GROUP, "buffer-total-bytes", pool.total_bytes)
    out.value(GROUP, "buffer-available-bytes", pool.available_bytes)
    out.value(GROUP, "waiting-threads", pool.waiting_count)
    out.total(GROUP, "buffer-exhausted", pool.refused_count)
    out.value(GROUP, "bufferpool-wait-time-ns-total", pool.waited_ms * 1_000_000)
    out.value(GROUP, "flush-time-ns-total", meters.flushes_ns)
    out.value(GROUP, "incomplete-batches", len(core.accumulator.batches.incomplete))
    for name, topic in topics:
        tags = (("topic", name),)
        out.total(TOPIC_GROUP, "record-send", topic.records, tags)
        out.total(TOPIC_GROUP, "byte", topic.bytes, tags)
        out.total(TOPIC_GROUP, "record-error", topic.failed, tags)
        out.total(TOPIC_GROUP, "record-retry", topic.retried, tags)
        out.average(TOPIC_GROUP, "compression-rate", topic.wire_bytes, topic.bytes, tags)
