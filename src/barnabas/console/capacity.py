"""How large a cluster must be: brokers, partitions, disk, memory and network from rates. Pure arithmetic, one place.

brokers     peak rate x record size x replicas, over what one broker was measured to take, with headroom; the same for
            what it sends to groups and followers; at least as many as replicas, and enough for the disk, if it is given
partitions  target rate over the lesser of what one partition takes and what one consumer reads
disk        average rate x record size x retention x replicas, and a segment per partition that is too young
page cache  what was written in the last `cached_seconds`, so that consumers near the end read no disk
network     every record comes in once per replica, and goes out once per group and to the other replicas

`barnabas plan` shows it for rates that are typed or measured, the console for those of its cluster.
"""

import math
from dataclasses import dataclass

SEGMENT_BYTES = 1 << 30
"""Kafka's default: the segment that is written is kept whatever its age."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Load:
    """What the cluster has to carry, and what was measured. Rates are per second."""

    peak_records: float
    average_records: float
    record_bytes: float
    """As stored: compression is already in it."""
    replicas: int = 3
    retention_hours: float = 72.0
    headroom: float = 0.3
    """The share of every limit that is to stay free."""
    broker_bytes: float = 50e6
    """What one broker takes in, replication included."""
    partition_bytes: float = 10e6
    """What one partition takes from one producer."""
    consumer_bytes: float = 20e6
    """What one consumer of a group reads and works through."""
    cached_seconds: float = 600.0
    broker_disk_bytes: float = 0.0
    """0: any."""
    groups: float = 1.0
    """How many times each record is read."""
    broker_read_bytes: float = 0.0
    """What one broker sends. 0: not looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Size:
    """The result, each number with what it was made of."""

    written_bytes: float
    """Per second, by all replicas together."""
    sent_bytes: float
    """Per second, to groups and followers together."""
    brokers: int
    brokers_for_rate: int
    brokers_for_reads: int
    brokers_for_disk: int
    partitions: int
    partitions_spread: int
    """The same, as a multiple of the brokers, so that all of them lead as many."""
    disk_bytes: float
    disk_bytes_per_broker: float
    cache_bytes_per_broker: float
    network_in_per_broker: float
    network_out_per_broker: float
    is_fewer_than_replicas: bool
    """Whether rate and disk alone would need fewer brokers than there are replicas."""


def size_of(load: Load) -> Size:
    usable = 1.0 - load.headroom
    peak = load.peak_records * load.record_bytes
    written = peak * load.replicas
    sent = peak * (load.groups + load.replicas - 1)
    partitions = _at_least_one(peak / (min(load.partition_bytes, load.consumer_bytes) * usable))
    kept = load.average_records * load.record_bytes * load.retention_hours * 3600
    # A segment goes when its last record is old enough, so up to one more per partition is there.
    disk = (kept + min(kept, partitions * SEGMENT_BYTES)) * load.replicas / usable
    for_rate = _at_least_one(written / (load.broker_bytes * usable))
    for_reads = _at_least_one(sent / (load.broker_read_bytes * usable)) if load.broker_read_bytes else 1
    for_disk = _at_least_one(disk / load.broker_disk_bytes) if load.broker_disk_bytes else 1
    needed = max(for_rate, for_reads, for_disk)
    brokers = max(needed, load.replicas)
    return Size(
        written_bytes=written,
        sent_bytes=sent,
        brokers=brokers,
        brokers_for_rate=for_rate,
        brokers_for_reads=for_reads,
        brokers_for_disk=for_disk,
        partitions=partitions,
        partitions_spread=math.ceil(partitions / brokers) * brokers,
        disk_bytes=disk,
        disk_bytes_per_broker=disk / brokers,
        cache_bytes_per_broker=written * load.cached_seconds / brokers,
        network_in_per_broker=written / brokers,
        network_out_per_broker=sent / brokers,
        is_fewer_than_replicas=needed < load.replicas,
    )


def _at_least_one(number: float) -> int:
    return max(1, math.ceil(number - 1e-9))
