"""How rates, averages and maxima are worked out from what was counted."""

import math

from barnabas.client.metrics.meters import NetworkMeters, Timing
from barnabas.client.metrics.values import WINDOW_MS, Collecting, MetricName, Metrics, Snapshots


def collected(snapshots: Snapshots, now_ms: int, total: float, timing: Timing) -> Metrics:
    out = Collecting(snapshots, now_ms)
    out.total("producer-metrics", "byte", total)
    out.timing("producer-metrics", "request-latency", timing)
    return out.finish("me")


def test_rates_and_averages_are_of_the_last_half_minute() -> None:
    snapshots, timing = Snapshots(0), Timing()
    timing.add(100)
    first = collected(snapshots, 10_000, 1000, timing)
    assert (first["byte-rate"], first["request-latency-avg"]) == (100, 100), "since the client was made"
    timing.add(10)
    timing.add(20)
    later = collected(snapshots, 10_000 + WINDOW_MS, 4000, timing)
    assert (later["byte-rate"], later["request-latency-avg"]) == (100, 15), "since it was asked before"
    much_later = collected(snapshots, 10_000 + 10 * WINDOW_MS, 4000, timing)
    assert much_later["byte-rate"] == 0
    assert math.isnan(much_later["request-latency-avg"]), "nothing to average"
    assert much_later["byte-total"] == 4000


def test_asking_often_does_not_shorten_the_time_that_rates_are_of() -> None:
    snapshots, timing = Snapshots(0), Timing()
    for second in range(1, 121):
        metrics = collected(snapshots, second * 1000, second * 50, timing)
    assert metrics["byte-rate"] == 50


def test_the_largest_value_is_forgotten_after_two_windows() -> None:
    timing = Timing()
    timing.add(9)
    assert timing.peak(WINDOW_MS, WINDOW_MS) == 9
    timing.add(3)
    assert timing.peak(2 * WINDOW_MS, WINDOW_MS) == 9
    assert timing.peak(3 * WINDOW_MS, WINDOW_MS) == 3


def test_a_plain_name_is_the_metric_without_tags() -> None:
    tagged = MetricName("byte-total", "producer-topic-metrics", (("topic", "t"),))
    metrics = Metrics("me", {MetricName("byte-total", "producer-metrics"): 1.0, tagged: 2.0})
    assert (metrics["byte-total"], metrics[tagged], len(metrics)) == (1, 2, 2)
    assert "byte-total" in metrics and "no-such" not in metrics
    assert tagged.telemetry_name == "org.apache.kafka.producer.topic.byte.total"


def test_requests_are_counted_per_broker_and_kind() -> None:
    meters = NetworkMeters()
    meters.node(1).request_size.add(10)
    meters.node(2).request_size.add(30)
    meters.node(1).responded(0, 5, 2.0, 1000)
    out = Collecting(Snapshots(0), 1000)
    out.network("producer-metrics", meters, in_flight=1)
    metrics = out.finish("me")
    assert (metrics["request-total"], metrics["request-size-avg"], metrics["request-size-max"]) == (2, 20, 30)
    assert (metrics["incoming-byte-total"], metrics["requests-in-flight"]) == (5, 1)
    assert meters.timing(0).count == 1 and meters.timing(1).count == 0
