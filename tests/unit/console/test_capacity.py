"""The arithmetic of sizing, by examples worked out by hand."""

from __future__ import annotations

import pytest

from barnabas.cli.numbers import NumberError
from barnabas.cli.plan.command import amount, count, hours, reference, share
from barnabas.console.capacity import Load, size_of

LOAD = {"peak_records": 20_000.0, "average_records": 10_000.0, "record_bytes": 1000.0}


def test_a_load_worked_out_by_hand() -> None:
    """20 MB/s in, 60 MB/s with replicas; brokers of 50 MB/s may be used to 70 %."""
    size = size_of(Load(**LOAD, broker_read_bytes=100e6, groups=3, broker_disk_bytes=10e12))
    assert (size.written_bytes, size.brokers_for_rate) == (60e6, 2)
    assert (size.sent_bytes, size.brokers_for_reads) == (100e6, 2), "3 groups and 2 followers"
    kept = 10_000 * 1000 * 72 * 3600
    assert size.partitions == 3, "20 MB/s over 7"
    assert size.disk_bytes == pytest.approx((kept + 3 * (1 << 30)) * 3 / 0.7)
    assert size.brokers_for_disk == 2
    assert (size.brokers, size.is_fewer_than_replicas, size.partitions_spread) == (3, True, 3)
    assert size.cache_bytes_per_broker == 60e6 * 600 / 3
    assert (size.network_in_per_broker, size.network_out_per_broker) == (20e6, pytest.approx(100e6 / 3))


def test_each_limit_decides_where_it_is_the_tightest() -> None:
    assert size_of(Load(**LOAD, broker_bytes=10e6)).brokers == 9
    assert size_of(Load(**LOAD, broker_read_bytes=10e6, groups=10)).brokers == 35
    assert size_of(Load(**LOAD, broker_disk_bytes=1e12)).brokers == 12
    assert size_of(Load(**LOAD, consumer_bytes=1e6)).partitions == 29
    assert size_of(Load(**LOAD, consumer_bytes=1e6)).partitions_spread == 30
    assert size_of(Load(**LOAD, replicas=1, headroom=0.0, broker_bytes=20e6)).brokers == 1, "exactly full is enough"


def test_a_little_load_needs_little() -> None:
    size = size_of(Load(peak_records=1e-9, average_records=1e-9, record_bytes=1.0, replicas=1))
    assert (size.brokers, size.partitions) == (1, 1) and size.disk_bytes < 1


def test_reference_figures_are_those_of_the_benchmarks() -> None:
    small, large = reference(100), reference(1000)
    assert small.broker_bytes / 100 == pytest.approx(476_000, rel=0.05)
    assert large.broker_bytes / 1000 == pytest.approx(108_000, rel=0.05)
    assert large.consumer_bytes / 1000 == pytest.approx(525_000, rel=0.05)


def test_what_people_type() -> None:
    assert [amount(each) for each in ("800", "1kB", "2.5 MB", "2TB", "50MB/s")] == [800, 1000, 2.5e6, 2e12, 50e6]
    assert [hours(each) for each in ("12h", "3d", "2w", "30min")] == [12, 72, 336, 0.5]
    assert [share(each) for each in ("30", "30%", "0")] == [0.3, 0.3, 0.0]
    assert count("20k") == 20_000
    for wrong in ("", "x", "-1", "0", "1XB", "1e99", "nan", "inf", "9" * 50):
        with pytest.raises(NumberError):
            amount(wrong)
    for wrong in ("96", "-1", "x%"):
        with pytest.raises(NumberError):
            share(wrong)
