"""What a producer counts, for `metrics()`: names as in Kafka's producer metrics. Written on the I/O thread only."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from barnabas.client.producer.batch import ProducerBatch


class ProducerMeters:
    """Counts since the producer was made."""

    __slots__ = (
        "acknowledged_bytes",
        "acknowledged_records",
        "batches",
        "failed_records",
        "requests",
        "retried_records",
        "sent_bytes",
        "splits",
    )

    def __init__(self) -> None:
        self.requests = 0
        self.batches = 0
        self.sent_bytes = 0
        self.acknowledged_records = 0
        self.acknowledged_bytes = 0
        self.failed_records = 0
        self.retried_records = 0
        self.splits = 0

    def sent(self, batches: int, size: int) -> None:
        self.requests += 1
        self.batches += batches
        self.sent_bytes += size

    def acknowledged(self, batch: "ProducerBatch") -> None:
        self.acknowledged_records += batch.record_count
        self.acknowledged_bytes += batch.size

    def failed(self, batch: "ProducerBatch") -> None:
        self.failed_records += batch.record_count

    def retried(self, batch: "ProducerBatch") -> None:
        self.retried_records += batch.record_count

    def split(self) -> None:
        self.splits += 1

    def totals(self) -> dict[str, float]:
        requests, batches = max(1, self.requests), max(1, self.batches)
        return {
            "request-total": self.requests,
            "batch-total": self.batches,
            "outgoing-byte-total": self.sent_bytes,
            "record-send-total": self.acknowledged_records,
            "byte-total": self.acknowledged_bytes,
            "record-error-total": self.failed_records,
            "record-retry-total": self.retried_records,
            "batch-split-total": self.splits,
            "batch-size-avg": self.sent_bytes / batches,
            "request-size-avg": self.sent_bytes / requests,
        }
