"""The sizing formulas, with numbers that can be worked out by hand."""

from barnabas.console.sizing import Load, size_of

LOAD = Load(
    peak_records=100_000,
    average_records=20_000,
    record_bytes=1000,
    replicas=3,
    retention_hours=72,
    headroom=0.25,
    broker_bytes=100e6,
    partition_bytes=20e6,
    consumer_bytes=10e6,
    cached_seconds=60,
)


def test_sizes() -> None:
    size = size_of(LOAD)
    assert size.written_bytes == 300e6
    assert (size.brokers_for_rate, size.brokers) == (4, 4)  # 300 MB/s over 75 MB/s
    assert size.partitions == 14  # 100 MB/s over 7.5 MB/s
    assert size.disk_bytes == 20_000 * 1000 * 72 * 3600 * 3 / 0.75
    assert size.disk_bytes_per_broker == size.disk_bytes / 4
    assert size.cache_bytes_per_broker == 300e6 * 60 / 4
    assert not size.is_fewer_than_replicas


def test_there_are_as_many_brokers_as_replicas_at_least() -> None:
    size = size_of(Load(peak_records=1, average_records=1, record_bytes=1, replicas=3))
    assert (size.brokers, size.brokers_for_rate, size.partitions) == (3, 1, 1)
    assert size.is_fewer_than_replicas


def test_the_disk_may_decide() -> None:
    size = size_of(
        Load(
            peak_records=1,
            average_records=1000,
            record_bytes=1000,
            replicas=1,
            retention_hours=1000,
            headroom=0.0,
            broker_disk_bytes=1e12,
        )
    )
    assert size.disk_bytes == 3.6e12
    assert (size.brokers_for_disk, size.brokers) == (4, 4)
