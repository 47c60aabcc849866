"""Metrics with their values at one moment, and how they are worked out from what was counted.

Totals are since the client was made. Rates and averages are of the time since somebody asked half a minute ago or
earlier, or since the client was made; averages of nothing are NaN, as Kafka's are. Nothing runs while nobody asks.
"""

import math
import threading
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from barnabas.client.metrics.meters import NetworkMeters, Timing

WINDOW_MS: Final = 30_000
SNAPSHOT_MS: Final = 5_000
PREFIX: Final = "org.apache.kafka."
Tags = tuple[tuple[str, str], ...]


class MetricName(NamedTuple):
    """A metric as Kafka names it; the tag client-id, which all have, is left out."""

    name: str
    group: str
    tags: Tags = ()

    @property
    def telemetry_name(self) -> str:
        """As it is pushed to brokers (KIP-714): org.apache.kafka.producer.record.send.total."""
        return f"{PREFIX}{self.group.removesuffix('-metrics')}.{self.name}".replace("-", ".")

    @property
    def is_total(self) -> bool:
        """Whether it only grows."""
        return self.name.endswith("-total")


class Metrics(Mapping[MetricName, float]):
    """All metrics of a client. A plain name finds the metric that has no tags."""

    def __init__(self, client_id: str, values: dict[MetricName, float]) -> None:
        self.client_id = client_id
        self._values = values
        self._plain = {key.name: value for key, value in reversed(values.items()) if not key.tags}

    def __getitem__(self, key: MetricName | str) -> float:
        return self._plain[key] if isinstance(key, str) else self._values[key]

    def __iter__(self) -> Iterator[MetricName]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"Metrics({self._values!r})"


class Snapshots:
    """Earlier totals, to work out rates from. One for each that asks: they may ask at any time, from any thread."""

    def __init__(self, now_ms: int) -> None:
        self._taken: deque[tuple[int, dict[MetricName, float]]] = deque([(now_ms, {})])
        self._lock = threading.Lock()

    def before(self, now_ms: int) -> tuple[int, Mapping[MetricName, float]]:
        with self._lock:
            while len(self._taken) > 1 and self._taken[1][0] <= now_ms - WINDOW_MS:
                self._taken.popleft()
            return self._taken[0]

    def keep(self, now_ms: int, totals: dict[MetricName, float]) -> None:
        with self._lock:
            if now_ms - self._taken[-1][0] >= SNAPSHOT_MS:
                self._taken.append((now_ms, totals))


class Collecting:
    """One look at everything: the client's parts write into it."""

    def __init__(self, snapshots: Snapshots, now_ms: int) -> None:
        self.now_ms = now_ms
        self._snapshots = snapshots
        self._since_ms, self._before = snapshots.before(now_ms)
        self._totals: dict[MetricName, float] = {}
        self._values: dict[MetricName, float] = {}

    def value(self, group: str, name: str, value: float, tags: Tags = ()) -> None:
        self._values[MetricName(name, group, tags)] = value

    def total(self, group: str, name: str, total: float, tags: Tags = ()) -> None:
        """`name-total`, and `name-rate` per second."""
        seconds = max(1, self.now_ms - self._since_ms) / 1000
        self._values[MetricName(f"{name}-rate", group, tags)] = self._lately(group, name, total, tags) / seconds
        self._values[MetricName(f"{name}-total", group, tags)] = total

    def average(self, group: str, name: str, total: float, count: float, tags: Tags = ()) -> None:
        """What `total` has grown by, over what `count` has grown by."""
        count_lately = self._lately(group, f"{name} count", count, tags)
        total_lately = self._lately(group, f"{name} sum", total, tags)
        self._values[MetricName(name, group, tags)] = total_lately / count_lately if count_lately else math.nan

    def timing(self, group: str, name: str, timing: Timing, tags: Tags = ()) -> None:
        """`name-avg` and `name-max`."""
        self.average(group, f"{name}-avg", timing.total, timing.count, tags)
        peak = timing.peak(self.now_ms, WINDOW_MS)
        self._values[MetricName(f"{name}-max", group, tags)] = peak if timing.count else math.nan

    def network(self, group: str, meters: NetworkMeters, *, in_flight: int) -> None:
        """What all clients have, in all and per broker."""
        nodes = list(meters.nodes.items())
        self.value(group, "connection-count", meters.opened - meters.closed)
        self.total(group, "connection-creation", meters.opened)
        self.total(group, "connection-close", meters.closed)
        self.value(group, "requests-in-flight", in_flight)
        sizes, latencies = [node.request_size for _, node in nodes], [node.latency for _, node in nodes]
        requests, sent = sum(each.count for each in sizes), sum(each.total for each in sizes)
        received = sum(node.bytes_in for _, node in nodes)
        self.total(group, "request", requests)
        self.total(group, "outgoing-byte", sent)
        self.total(group, "response", sum(each.count for each in latencies))
        self.total(group, "incoming-byte", received)
        self.total(group, "network-io", sent + received)
        self.average(group, "request-size-avg", sent, requests)
        self.value(group, "request-size-max", max((self._peak(each) for each in sizes), default=math.nan))
        for node_id, node in nodes:
            tags = (("node-id", f"node-{node_id}"),)
            of_node = group.replace("-metrics", "-node-metrics")
            self.total(of_node, "request", node.request_size.count, tags)
            self.total(of_node, "outgoing-byte", node.request_size.total, tags)
            self.timing(of_node, "request-size", node.request_size, tags)
            self.total(of_node, "response", node.latency.count, tags)
            self.total(of_node, "incoming-byte", node.bytes_in, tags)
            self.timing(of_node, "request-latency", node.latency, tags)

    def finish(self, client_id: str) -> Metrics:
        self._snapshots.keep(self.now_ms, self._totals)
        return Metrics(client_id, self._values)

    def _peak(self, timing: Timing) -> float:
        return max(timing.largest, timing.previous_largest)

    def _lately(self, group: str, name: str, total: float, tags: Tags) -> float:
        key = MetricName(name, group, tags)
        self._totals[key] = total
        return total - self._before.get(key, 0)


Collect = Callable[[], Metrics]
