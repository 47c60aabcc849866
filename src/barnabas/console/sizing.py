"""How large a cluster must be: brokers, partitions, disk and memory from rates. Pure arithmetic, for the page Capacity.

brokers     peak rate x record size x replicas, over what one broker was measured to take, with headroom;
            at least as many as replicas, and enough for the disk, if its size is given
partitions  target rate over the lesser of what one partition takes and what one consumer reads
disk        average rate x record size x retention x replicas, with headroom
page cache  what was written in the last `cached_seconds`, so that consumers near the end read no disk
"""

import math
from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the cluster has to carry, and what was measured. Rates are per second."""

    peak_records: float
    average_records: float
    record_bytes: float
    replicas: int = 3
    retention_hours: float = 72.0
    headroom: float = 0.3
    """The share of every limit that is to stay free."""
    broker_bytes: float = 50e6
    """What one broker takes in, replication included."""
    partition_bytes: float = 10e6
    consumer_bytes: float = 20e6
    """What one consumer of a group reads and works through."""
    cached_seconds: float = 600.0
    broker_disk_bytes: float = 0.0
    """0: any."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The answer, each number with what it was made of."""

    written_bytes: float
    """Per second, by all replicas together."""
    brokers: int
    brokers_for_rate: int
    brokers_for_disk: int
    partitions: int
    disk_bytes: float
    disk_bytes_per_broker: float
    cache_bytes_per_broker: float
    is_fewer_than_replicas: bool
    """Whether rate and disk alone would need fewer brokers than there are replicas."""


def size_of(load: Load) -> Size:
    usable = 1.0 - load.headroom
    peak = load.peak_records * load.record_bytes
    written = peak * load.replicas
    disk = load.average_records * load.record_bytes * load.retention_hours * 3600 * load.replicas / usable
    for_rate = _at_least_one(written / (load.broker_bytes * usable))
    for_disk = _at_least_one(disk / load.broker_disk_bytes) if load.broker_disk_bytes else 1
    brokers = max(for_rate, for_disk, load.replicas)
    return Size(
        written_bytes=written,
        brokers=brokers,
        brokers_for_rate=for_rate,
        brokers_for_disk=for_disk,
        partitions=_at_least_one(peak / (min(load.partition_bytes, load.consumer_bytes) * usable)),
        disk_bytes=disk,
        disk_bytes_per_broker=disk / brokers,
        cache_bytes_per_broker=written * load.cached_seconds / brokers,
        is_fewer_than_replicas=max(for_rate, for_disk) < load.replicas,
    )


def _at_least_one(number: float) -> int:
    return max(1, math.ceil(number - 1e-9))
