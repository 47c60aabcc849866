"""What is kept of the values that clients push, whatever they send."""

import math

import pytest

from barnabas.machines.client_metrics import series as series_module
from barnabas.machines.client_metrics.series import ClientSeries, SeriesTable, family_name, label_text
from barnabas.protocol.otlp_metrics import Point, PointKind

GAUGE, COUNTER, INCREMENT = PointKind.GAUGE, PointKind.COUNTER, PointKind.INCREMENT


def taken(*points: tuple[str, PointKind, float]) -> tuple[SeriesTable, ClientSeries]:
    table, client = SeriesTable(), ClientSeries()
    table.take(client, [Point(name, kind, {}, value) for name, kind, value in points])
    return table, client


def values(client: ClientSeries) -> dict[str, float]:
    return {name: value for (name, _), value in client.values.items()}


def test_increments_add_up_totals_and_gauges_replace() -> None:
    _, client = taken(
        ("org.apache.kafka.a.total", INCREMENT, 3),
        ("org.apache.kafka.a.total", INCREMENT, 4),
        ("org.apache.kafka.b.total", COUNTER, 3),
        ("org.apache.kafka.b.total", COUNTER, 4),
        ("org.apache.kafka.c.avg", GAUGE, 3),
        ("org.apache.kafka.c.avg", GAUGE, 2.5),
    )
    assert values(client) == {
        "org_apache_kafka_a_total": 7,
        "org_apache_kafka_b_total": 4,
        "org_apache_kafka_c_avg": 2.5,
    }


def test_an_average_over_nothing_is_no_value() -> None:
    table, client = taken(("org.apache.kafka.c", GAUGE, 1), ("org.apache.kafka.c", GAUGE, math.nan))
    assert (client.values, table.count, list(table.families())) == ({}, 0, [])
    table, client = taken(("org.apache.kafka.c", GAUGE, math.inf))
    assert (client.values, table.dropped) == ({}, 0)


@pytest.mark.parametrize(
    "points",
    [
        [("a.b", GAUGE, 1), ("a.b.total", COUNTER, 1)],
        [("a.b.total", COUNTER, 1), ("a.b", GAUGE, 1)],
        [("a.b.total", COUNTER, 1), ("a.b.created", GAUGE, 1)],
        [("a.b.total", COUNTER, 1), ("a.b.total", GAUGE, 1)],
        [("x", INCREMENT, 1), ("x.total", INCREMENT, -1)],
    ],
)
def test_what_would_make_the_text_unreadable_is_dropped(points: list[tuple[str, PointKind, float]]) -> None:
    table, client = taken(*points)
    assert (len(client.values), table.dropped) == (1, 1)


def test_names() -> None:
    assert family_name("org.apache.kafka.producer.record-send.rate") == "org_apache_kafka_producer_record_send_rate"
    assert family_name("kafka_brokers") == "client_kafka_brokers"
    assert family_name('x{y="z"} 1\nfoo') == "client_x_y__z___1_foo"
    assert family_name("...") == ""


def test_labels_are_few_short_and_escaped() -> None:
    assert label_text({"b": 'say "hi"\\\n', "a": "1"}) == 'a="1",b="say \\"hi\\"\\\\\\n"'
    assert (
        label_text({"client_id": "x", "le": "1", "__name__": "x", "9": "x", "node-id": "2"}) == 'name="x",node_id="2"'
    )
    assert label_text({"a.b": "1", "a-b": "2"}) == 'a_b="2"', "one of them"
    assert label_text({f"l{number}": "v" for number in range(20)}).count("=") == 8
    assert len(label_text({"l" * 1000: "v" * 100_000})) < 400


def test_series_are_bounded_per_client_and_in_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(series_module, "SERIES_PER_CLIENT", 3)
    monkeypatch.setattr(series_module, "SERIES", 5)
    monkeypatch.setattr(series_module, "FAMILIES", 4)
    table, first, second, third = SeriesTable(), ClientSeries(), ClientSeries(), ClientSeries()
    for client in (first, second):
        table.take(client, [Point("x", GAUGE, {"n": str(number)}, 1) for number in range(4)])
    assert (len(first.values), len(second.values), table.count, table.dropped) == (3, 2, 5, 3)
    table.forget(first)
    table.take(third, [Point(f"f{number}", GAUGE, {}, 1) for number in range(3)])
    assert (len(third.values), table.count) == (3, 5)
    table.forget(second)
    table.forget(third)
    assert (table.count, list(table.families())) == (0, [])
    table.take(first := ClientSeries(), [Point(f"f{number}", GAUGE, {"n": str(number)}, 1) for number in range(2)])
    table.take(second := ClientSeries(), [Point(f"g{number}", GAUGE, {}, 1) for number in range(3)])
    assert len(list(table.families())) == 4, "names are bounded as well"


def test_of_a_name_that_is_cut_the_whole_is_not_kept() -> None:
    table, _ = taken(("a" + "." * 1_000_000, GAUGE, 1))
    (family,) = table.families()
    assert family.name == "client_a" and len(family.original) == series_module.LONGEST_NAME
