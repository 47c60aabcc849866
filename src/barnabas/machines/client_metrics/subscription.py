"""Which metrics a client is asked for: all subscriptions that match it, taken together."""

import zlib
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from barnabas.config.client_metrics import ClientMatch, ClientMetricsConfig

ALL_METRICS = "*"
DEFAULT_INTERVAL_MS = 300_000


class Subscription(NamedTuple):
    match: ClientMatch
    metrics: tuple[str, ...]
    interval_ms: int

    @classmethod
    def of(cls, config: Mapping[str, str]) -> "Subscription":
        """Raises ConfigFaults."""
        resolved = ClientMetricsConfig.resolve(config)
        return cls(ClientMatch(resolved.match), resolved.metrics, resolved.interval_ms)


class Wanted(NamedTuple):
    """What one client is asked for."""

    subscription_id: int
    """Of the metrics and the interval: another one says that the client must ask again."""
    metrics: tuple[str, ...]
    interval_ms: int


def wanted_of(
    subscriptions: Iterable[Subscription], attributes: Mapping[str, str], client_instance_id: bytes
) -> Wanted:
    metrics: set[str] = set()
    interval_ms = DEFAULT_INTERVAL_MS
    for each in subscriptions:
        if each.match.matches(attributes):
            metrics.update(each.metrics)
            interval_ms = min(interval_ms, each.interval_ms)
    names = (ALL_METRICS,) if ALL_METRICS in metrics else tuple(sorted(metrics))
    checksum = zlib.crc32(f"{names}{interval_ms}".encode(), zlib.crc32(client_instance_id))
    return Wanted(checksum - (1 << 32) if checksum >> 31 else checksum, names, interval_ms)
