"""What a consumer counts, for `metrics()`: names as in Kafka's consumer metrics.

The fetcher adds per response, `poll` per call and chunk. What the requests to the coordinator cost is counted with the
connections, by kind of request.
"""

import math
from collections.abc import Iterable
from typing import TYPE_CHECKING

from barnabas.client.metrics.meters import Timing
from barnabas.client.metrics.values import Collecting
from barnabas.protocol.api import ApiKey

if TYPE_CHECKING:
    from barnabas.client.cluster_client import ClusterClient
    from barnabas.client.consumer.partition_state import PartitionState

GROUP = "consumer-metrics"
COORDINATOR_GROUP = "consumer-coordinator-metrics"
FETCH_GROUP = "consumer-fetch-manager-metrics"


class ConsumedMeter:
    """One topic."""

    __slots__ = ("bytes", "records")

    def __init__(self) -> None:
        self.bytes = 0
        self.records = 0


class ConsumerMeters:
    """Counts since the consumer was made."""

    __slots__ = ("fetch_size", "poll_gap", "polled_ms", "rebalance", "throttle", "topics")

    def __init__(self) -> None:
        self.fetch_size = Timing()
        """Bytes of responses."""
        self.throttle = Timing()
        self.poll_gap = Timing()
        """From one poll to the next, in milliseconds."""
        self.polled_ms: int | None = None
        self.rebalance = Timing()
        """From the moment the member knows of it until it has its partitions, in milliseconds."""
        self.topics: dict[str, ConsumedMeter] = {}

    def topic(self, name: str) -> ConsumedMeter:
        meter = self.topics.get(name)
        if meter is None:
            meter = self.topics[name] = ConsumedMeter()
        return meter

    def polled(self, now_ms: int) -> None:
        if self.polled_ms is not None:
            self.poll_gap.add(now_ms - self.polled_ms)
        self.polled_ms = now_ms


def add_consumer(
    out: Collecting,
    meters: ConsumerMeters,
    cluster: "ClusterClient",
    states: Iterable["PartitionState"],
    *,
    read_committed: bool,
    buffered_bytes: int,
) -> None:
    """Everything about a consumer but its connections."""
    out.timing(GROUP, "time-between-poll", meters.poll_gap)
    out.value(GROUP, "last-poll-seconds-ago", _ago(meters.polled_ms, out.now_ms))
    states = list(states)
    _add_coordinator(out, meters, cluster)
    out.value(COORDINATOR_GROUP, "assigned-partitions", len(states))
    topics = list(meters.topics.items())
    records = sum(topic.records for _, topic in topics)
    out.total(FETCH_GROUP, "fetch", meters.fetch_size.count)
    out.timing(FETCH_GROUP, "fetch-size", meters.fetch_size)
    out.timing(FETCH_GROUP, "fetch-latency", cluster.meters.timing(ApiKey.FETCH))
    out.timing(FETCH_GROUP, "fetch-throttle-time", meters.throttle)
    out.total(FETCH_GROUP, "bytes-consumed", meters.fetch_size.total)
    out.total(FETCH_GROUP, "records-consumed", records)
    out.average(FETCH_GROUP, "records-per-request-avg", records, meters.fetch_size.count)
    out.value(FETCH_GROUP, "buffered-bytes", buffered_bytes)
    for name, topic in topics:
        tags = (("topic", name),)
        out.total(FETCH_GROUP, "bytes-consumed", topic.bytes, tags)
        out.total(FETCH_GROUP, "records-consumed", topic.records, tags)
    _add_lag(out, states, read_committed)


def _add_coordinator(out: Collecting, meters: ConsumerMeters, cluster: "ClusterClient") -> None:
    network = cluster.meters
    commits, heartbeats = (
        network.timing(ApiKey.OFFSET_COMMIT),
        network.timing(ApiKey.CONSUMER_GROUP_HEARTBEAT, ApiKey.HEARTBEAT),
    )
    out.total(COORDINATOR_GROUP, "commit", commits.count)
    out.timing(COORDINATOR_GROUP, "commit-latency", commits)
    out.total(COORDINATOR_GROUP, "heartbeat", heartbeats.count)
    out.timing(COORDINATOR_GROUP, "heartbeat-response-time", heartbeats)
    out.value(COORDINATOR_GROUP, "last-heartbeat-seconds-ago", _ago(heartbeats.last_ms, out.now_ms))
    for name, api_key in (("join", ApiKey.JOIN_GROUP), ("sync", ApiKey.SYNC_GROUP)):
        timing = network.timing(api_key)
        out.total(COORDINATOR_GROUP, name, timing.count)
        out.timing(COORDINATOR_GROUP, f"{name}-time", timing)
    out.total(COORDINATOR_GROUP, "rebalance", meters.rebalance.count)
    out.timing(COORDINATOR_GROUP, "rebalance-latency", meters.rebalance)
    out.value(COORDINATOR_GROUP, "rebalance-latency-total", meters.rebalance.total)
    out.value(COORDINATOR_GROUP, "last-rebalance-seconds-ago", _ago(meters.rebalance.last_ms, out.now_ms))


def _add_lag(out: Collecting, states: Iterable["PartitionState"], read_committed: bool) -> None:
    lags, leads = [], []
    for state in states:
        topic, partition = state.topic_partition
        tags = (("topic", topic), ("partition", str(partition)))
        lag = state.lag(read_committed)
        if lag is not None:
            lags.append(lag)
            out.value(FETCH_GROUP, "records-lag", lag, tags)
        if state.log_start_offset >= 0 and state.offset >= 0:
            lead = max(0, state.offset - state.log_start_offset)
            leads.append(lead)
            out.value(FETCH_GROUP, "records-lead", lead, tags)
        if state.preferred_read_replica >= 0:
            out.value(FETCH_GROUP, "preferred-read-replica", state.preferred_read_replica, tags)
    out.value(FETCH_GROUP, "records-lag-max", max(lags, default=0))
    out.value(FETCH_GROUP, "records-lead-min", min(leads, default=math.nan))


def _ago(then_ms: int | None, now_ms: int) -> float:
    return math.nan if then_ms is None else max(0, now_ms - then_ms) / 1000
