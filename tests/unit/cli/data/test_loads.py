"""What performance tests send, and how their latencies are counted."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.data import produce_load, produce_statistics
from barnabas.cli.data.deliveries import batch_end
from barnabas.cli.data.payloads import numbers, random_letters, repeated, split_payloads
from barnabas.cli.data.produce_statistics import ProduceStatistics, Run, total_line
from barnabas.client.producer._fast_pure import Delivery


@given(pool=st.integers(1, 50), count=st.integers(1, 300), block=st.integers(1, 40))
def test_a_pool_is_repeated(pool: int, count: int, block: int) -> None:
    payloads = [b"%d" % number for number in range(pool)]
    blocks = list(repeated(payloads, count, block))
    assert [each for one in blocks for each in one] == [payloads[number % pool] for number in range(count)]
    assert all(0 < len(one) <= block for one in blocks)


def test_payloads() -> None:
    letters = random_letters(100, 1000)
    assert len(set(letters)) == 1000 and {len(each) for each in letters} == {100}
    assert set(b"".join(letters)) == set(range(65, 91))
    assert [each for one in numbers(5, 2) for each in one] == [b"0", b"1", b"2", b"3", b"4"]
    assert split_payloads(b"\na\n\nb\n", "\\n") == [b"a", b"", b"b"]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(0, 3)), min_size=1, max_size=200), st.randoms())
def test_neighbours_are_found(steps: list[tuple[int, int]], chance: random.Random) -> None:
    """Against a look at every handle: the batch may change, and change back, anywhere."""
    batches = [object() for _ in range(4)]
    counts = [0] * 4
    deliveries = []
    timestamp = 0
    for batch, later in steps:
        for _ in range(chance.randrange(1, 20)):
            deliveries.append(Delivery(batches[batch], counts[batch], timestamp))
            counts[batch] += 1
        timestamp += later
    start = 0
    while start < len(deliveries):
        end = batch_end(deliveries, start)
        assert all(each.batch is deliveries[start].batch for each in deliveries[start:end])
        assert end == len(deliveries) or deliveries[end].batch is not deliveries[start].batch
        sent = produce_load._sent(deliveries, start, end)
        flat = [moment for moment, count in sent for _ in range(count)]
        assert flat == [each.timestamp for each in deliveries[start:end]]
        start = end


class Clock:
    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 1000
        monkeypatch.setattr(produce_statistics, "now_ms", lambda: self.now)


def test_percentiles_are_over_all_records(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    told: list[str] = []
    statistics = ProduceStatistics(told.append)
    latencies = list(range(1, 1001))
    clock.now = 2000
    for latency in latencies:
        statistics.record(Run(2**20, ((clock.now - latency, 1),)))
    totals = statistics.totals()
    ordered = sorted(latencies)
    assert totals.percentiles_ms == tuple(ordered[int(1000 * share)] for share in (0.5, 0.95, 0.99, 0.999))
    assert (totals.records, totals.max_ms, totals.average_ms) == (1000, 1000, 500.5)
    assert total_line(totals) == (
        "1000 records sent, 1000.0 records/sec (1000.00 MB/sec), 500.50 ms avg latency, 1000.00 ms max latency,"
        " 501 ms 50th, 951 ms 95th, 991 ms 99th, 1000 ms 99.9th."
    )
    assert told == []


def test_a_window_ends_after_five_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    told: list[str] = []
    statistics = ProduceStatistics(told.append)
    clock.now = 5999
    statistics.record(Run(10, ((5990, 3),)))
    clock.now = 6000
    statistics.record(Run(2**20, ((5980, 1),)))
    clock.now = 7000
    statistics.record(Run(10, ((6999, 1),)))
    assert told == ["4 records sent, 0.8 records/sec (0.20 MB/sec), 11.8 ms avg latency, 20.0 ms max latency."]
    statistics.fail(Run(10, ((6999, 7),)))
    assert (statistics.failed, statistics.totals().records) == (7, 5)


def test_nothing_was_sent(monkeypatch: pytest.MonkeyPatch) -> None:
    Clock(monkeypatch)
    assert total_line(ProduceStatistics().totals()).startswith(
        "0 records sent, NaN records/sec (NaN MB/sec), NaN ms avg latency, 0.00 ms max latency, 0 ms 50th"
    )
