"""The one list of what clients measure: docs/client-metrics.md and the tests read it.

A total stands for `name-total` and `name-rate`, a timing for `name-avg` and `name-max`.
"""

from collections.abc import Iterator
from enum import Enum
from typing import Final, NamedTuple


class Shape(Enum):
    TOTAL = ("-total", "-rate")
    TIMING = ("-avg", "-max")
    VALUE = ("",)


TOTAL, TIMING, VALUE = Shape.TOTAL, Shape.TIMING, Shape.VALUE


class Row(NamedTuple):
    group: str
    name: str
    shape: Shape
    tags: tuple[str, ...]
    help: str

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self.name + ending for ending in self.shape.value)


def _rows(group: str, tags: tuple[str, ...], *rows: tuple[str, Shape, str]) -> Iterator[Row]:
    return (Row(group, name, shape, tags, text) for name, shape, text in rows)


def _network(client: str) -> Iterator[Row]:
    yield from _rows(
        f"{client}-metrics",
        (),
        ("connection-count", VALUE, "Open connections."),
        ("connection-creation", TOTAL, "Connections opened."),
        ("connection-close", TOTAL, "Connections closed."),
        ("requests-in-flight", VALUE, "Requests without a response so far."),
        ("request", TOTAL, "Requests sent."),
        ("outgoing-byte", TOTAL, "Bytes sent."),
        ("response", TOTAL, "Responses received."),
        ("incoming-byte", TOTAL, "Bytes received."),
        ("network-io", TOTAL, "Bytes sent and received."),
        ("request-size", TIMING, "Bytes of a request."),
    )
    yield from _rows(
        f"{client}-node-metrics",
        ("node-id",),
        ("request", TOTAL, "Requests sent."),
        ("outgoing-byte", TOTAL, "Bytes sent."),
        ("request-size", TIMING, "Bytes of a request."),
        ("response", TOTAL, "Responses received."),
        ("incoming-byte", TOTAL, "Bytes received."),
        ("request-latency", TIMING, "Milliseconds until the response."),
    )


def _producer() -> Iterator[Row]:
    yield from _rows(
        "producer-metrics",
        (),
        ("record-send", TOTAL, "Records that brokers have."),
        ("byte", TOTAL, "Bytes of their batches, before compression."),
        ("record-error", TOTAL, "Records that failed."),
        ("record-retry", TOTAL, "Records sent again."),
        ("batch", TOTAL, "Batches sent."),
        ("batch-split", TOTAL, "Batches that were too large and went in parts."),
        ("batch-size", TIMING, "Bytes of a batch, before compression."),
        ("record-queue-time", TIMING, "Milliseconds from a batch's first record until it is sent."),
        ("request-latency", TIMING, "Milliseconds until the response to Produce."),
        ("produce-throttle-time", TIMING, "Milliseconds that quotas have demanded."),
        ("records-per-request-avg", VALUE, "Records in a request."),
        ("record-size-avg", VALUE, "Bytes of a record, with its share of the batch."),
        ("compression-rate-avg", VALUE, "Size of compressed batches over their size before."),
        ("metadata-age", VALUE, "Seconds since the cluster's metadata came."),
        ("buffer-total-bytes", VALUE, "buffer.memory."),
        ("buffer-available-bytes", VALUE, "What is left of it."),
        ("waiting-threads", VALUE, "Callers that wait for memory."),
        ("buffer-exhausted", TOTAL, "Records refused since there was no memory in time."),
        ("bufferpool-wait-time-ns-total", VALUE, "Nanoseconds that callers have waited for memory."),
        ("flush-time-ns-total", VALUE, "Nanoseconds spent in flush()."),
        ("incomplete-batches", VALUE, "Batches that are not acknowledged and have not failed."),
    )
    yield from _rows(
        "producer-topic-metrics",
        ("topic",),
        ("record-send", TOTAL, "Records that brokers have."),
        ("byte", TOTAL, "Bytes of their batches, before compression."),
        ("record-error", TOTAL, "Records that failed."),
        ("record-retry", TOTAL, "Records sent again."),
        ("compression-rate", VALUE, "Size of compressed batches over their size before."),
    )


def _consumer() -> Iterator[Row]:
    yield from _rows(
        "consumer-metrics",
        (),
        ("time-between-poll", TIMING, "Milliseconds from one poll to the next."),
        ("last-poll-seconds-ago", VALUE, "Seconds since the last poll."),
    )
    yield from _rows(
        "consumer-coordinator-metrics",
        (),
        ("commit", TOTAL, "Commits of offsets."),
        ("commit-latency", TIMING, "Milliseconds until the response to a commit."),
        ("heartbeat", TOTAL, "Heartbeats."),
        ("heartbeat-response-time", TIMING, "Milliseconds until the response to a heartbeat."),
        ("last-heartbeat-seconds-ago", VALUE, "Seconds since the last response to one."),
        ("join", TOTAL, "Times that the group was joined (classic protocol)."),
        ("join-time", TIMING, "Milliseconds until the response to that."),
        ("sync", TOTAL, "Assignments fetched (classic protocol)."),
        ("sync-time", TIMING, "Milliseconds until the response to that."),
        ("rebalance", TOTAL, "Rebalances."),
        ("rebalance-latency", TIMING, "Milliseconds until the partitions are there."),
        ("rebalance-latency-total", VALUE, "The same, added up."),
        ("last-rebalance-seconds-ago", VALUE, "Seconds since the last rebalance."),
        ("assigned-partitions", VALUE, "Partitions that are read."),
    )
    group = "consumer-fetch-manager-metrics"
    yield from _rows(
        group,
        (),
        ("fetch", TOTAL, "Fetches."),
        ("fetch-size", TIMING, "Bytes of a response."),
        ("fetch-latency", TIMING, "Milliseconds until the response, waiting for records included."),
        ("fetch-throttle-time", TIMING, "Milliseconds that quotas have demanded."),
        ("bytes-consumed", TOTAL, "Bytes of responses."),
        ("records-consumed", TOTAL, "Records that poll has returned."),
        ("records-per-request-avg", VALUE, "Records of a fetch."),
        ("buffered-bytes", VALUE, "Fetched and not returned yet."),
        ("records-lag-max", VALUE, "The largest lag of a partition."),
        ("records-lead-min", VALUE, "The smallest distance to the start of a log."),
    )
    yield from _rows(
        group,
        ("topic",),
        ("bytes-consumed", TOTAL, "Bytes of batches."),
        ("records-consumed", TOTAL, "Records that poll has returned."),
    )
    yield from _rows(
        group,
        ("topic", "partition"),
        ("records-lag", VALUE, "Records between the position and the end."),
        ("records-lead", VALUE, "Records between the start of the log and the position."),
        ("preferred-read-replica", VALUE, "The follower that is read from, if it is one."),
    )


TABLE: Final = {
    "producer": (*_network("producer"), *_producer()),
    "consumer": (*_network("consumer"), *_consumer()),
    "admin-client": tuple(_network("admin-client")),
}
"""By client."""
