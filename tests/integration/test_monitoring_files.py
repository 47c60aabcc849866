"""The dashboards and alert rules of `monitoring/`, against what a real cluster with groups and clients shows."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import promql_parser
import pytest
import yaml
from eventually import eventually
from metrics_lint import faults_of
from prometheus_client.openmetrics.parser import text_string_to_metric_families as parse_open_metrics
from prometheus_client.parser import text_string_to_metric_families as parse_text
from telemetry import scraped, subscribe_all

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Cluster

FOLDER = Path(__file__).parents[2] / "monitoring"
DASHBOARDS = sorted((FOLDER / "grafana").glob("*.json"))
OF_PROMETHEUS = {"job", "instance"}
"""Labels that a scrape adds."""
OPEN_METRICS = "application/openmetrics-text"
LAST_TO_COME = {
    "org_apache_kafka_producer_request_latency_avg",
    "org_apache_kafka_consumer_coordinator_commit_latency_avg",
    "org_apache_kafka_consumer_coordinator_last_heartbeat_seconds_ago",
    "org_apache_kafka_consumer_time_between_poll_max",
}
"""Metrics of clients that have no value before something has happened."""
Found = dict[str, list[dict[str, str]]]


class Texts:
    """What all brokers show, in both formats, and the labels of each series by name."""

    def __init__(self, cluster: Cluster) -> None:
        self.plain = [scraped(broker) for broker in cluster.brokers]
        self.opened = [scraped(broker, OPEN_METRICS) for broker in cluster.brokers]
        self.found: Found = {"up": [{}]}
        for text in self.plain:
            for family in parse_text(text):
                for sample in family.samples:
                    self.found.setdefault(sample.name, []).append(sample.labels)


@pytest.fixture(scope="module")
def texts() -> Iterator[Texts]:
    with Cluster(3, {"metrics.listener": "127.0.0.1:0", "telemetry.max.bytes": "1000000"}) as cluster:
        subscribe_all(cluster.brokers[0])
        with Admin(cluster.bootstrap) as admin:
            admin.create_topic("orders", partitions=3, replication_factor=3)
        with (
            Producer(cluster.bootstrap, client_id="seller") as producer,
            Consumer(cluster.bootstrap, client_id="buyer", group_id="buyers", auto_offset_reset="earliest") as consumer,
        ):
            consumer.subscribe(["orders"])

            def all_there() -> Texts | None:
                producer.send("orders", b"x", timestamp=int(time.time() * 1000) - 1000).result(30)
                consumer.poll(0.1)
                consumer.commit()
                texts = Texts(cluster)
                return texts if texts.found.keys() >= LAST_TO_COME else None

            yield eventually(all_there, timeout=120)


def queries_of(dashboard: Any) -> Iterator[str]:
    for panel in dashboard["panels"]:
        for target in panel.get("targets", ()):
            yield target["expr"]
    for variable in dashboard["templating"]["list"]:
        if variable["type"] == "query":
            match = re.fullmatch(r"label_values\((.+), (\w+)\)", variable["definition"])
            assert match is not None, variable
            yield f"count by ({match[2]}) ({match[1]})"


def all_queries() -> Iterator[tuple[str, str]]:
    for path in DASHBOARDS:
        for query in queries_of(json.loads(path.read_text())):
            yield path.name, query.replace("$__rate_interval", "5m")
    rules = yaml.safe_load((FOLDER / "prometheus" / "alerts.yml").read_text())
    for group in rules["groups"]:
        for rule in group["rules"]:
            yield rule["alert"], rule["expr"]


def selectors(expression: Any) -> Iterator[tuple[Any, set[str]]]:
    """Each selector of an expression, with the labels that are asked for around it."""
    if isinstance(expression, promql_parser.VectorSelector):
        yield expression, set()
    elif isinstance(expression, promql_parser.MatrixSelector):
        yield expression.vector_selector, set()
    elif isinstance(expression, promql_parser.AggregateExpr):
        wanted = set(expression.modifier.labels) if expression.modifier is not None else set()
        for selector, labels in selectors(expression.expr):
            yield selector, labels | wanted
    elif isinstance(expression, promql_parser.BinaryExpr):
        yield from selectors(expression.lhs)
        yield from selectors(expression.rhs)
    elif isinstance(expression, promql_parser.ParenExpr):
        yield from selectors(expression.expr)
    elif isinstance(expression, promql_parser.Call):
        for argument in expression.args:
            yield from selectors(argument)
    else:
        assert isinstance(expression, promql_parser.NumberLiteral), type(expression)


def faults_in(query: str, found: Found) -> Iterator[str]:
    for selector, labels in selectors(promql_parser.parse(query)):
        series = found.get(selector.name)
        if series is None:
            yield f"there is no {selector.name}"
            continue
        known = {label for each in series for label in each} | OF_PROMETHEUS
        matchers = selector.matchers.matchers
        for label in sorted(labels | {matcher.name for matcher in matchers}):
            if label not in known:
                yield f"{selector.name} has no label {label}"
        for matcher in matchers:
            is_literal = str(matcher.op) == "MatchOp.Equal" and matcher.name not in OF_PROMETHEUS
            if is_literal and all(each.get(matcher.name, "") != matcher.value for each in series):
                yield f"{selector.name}: no series has {matcher.name}={matcher.value}"


def test_the_queries_are_many() -> None:
    assert len(DASHBOARDS) == 2
    assert len(list(all_queries())) > 80


def test_every_query_asks_for_what_is_there(texts: Texts) -> None:
    faults = [
        f"{where}: {fault} ({query})" for where, query in all_queries() for fault in faults_in(query, texts.found)
    ]
    assert faults == []


def test_wrong_queries_are_found(texts: Texts) -> None:
    for query in (
        "kafka_no_such_metric",
        "sum by (nothing) (kafka_brokers)",
        'kafka_log_log_size{color="red"}',
        'kafka_log_log_size{topic="no-such"}',
        "rate(kafka_no_such[5m]) / 2",
    ):
        assert list(faults_in(query, texts.found)), query


def test_alerts_have_what_people_read() -> None:
    rules = yaml.safe_load((FOLDER / "prometheus" / "alerts.yml").read_text())
    names = []
    for group in rules["groups"]:
        for rule in group["rules"]:
            names.append(rule["alert"])
            assert set(rule) <= {"alert", "expr", "for", "labels", "annotations"}
            assert rule["labels"]["severity"] in ("critical", "warning", "info")
            assert rule["annotations"]["summary"]
    assert len(set(names)) == len(names)
    scrape = yaml.safe_load((FOLDER / "prometheus" / "prometheus.yml").read_text())
    assert scrape["scrape_configs"][0]["job_name"] == "kafka"


@pytest.mark.parametrize("path", DASHBOARDS, ids=lambda path: path.stem)
def test_panels_of_a_dashboard_fit_together(path: Path) -> None:
    panels = json.loads(path.read_text())["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken: set[tuple[int, int]] = set()
    for panel in panels:
        place = panel["gridPos"]
        assert place["x"] + place["w"] <= 24
        cells = {
            (x, y)
            for x in range(place["x"], place["x"] + place["w"])
            for y in range(place["y"], place["y"] + place["h"])
        }
        assert not cells & taken, panel["title"]
        taken |= cells


def test_what_brokers_show_passes_the_lint(texts: Texts) -> None:
    for text in texts.plain:
        assert faults_of(text) == []
    for text in texts.opened:
        assert faults_of(text, open_metrics=True) == []
        families = list(parse_open_metrics(text))
        assert len({family.name for family in families}) == len(families)


@pytest.mark.parametrize(
    "text",
    [
        "# HELP a b\n# TYPE a gauge\na 1\na 2\n",
        "# HELP a b\n# TYPE a counter\na 1\n",
        "# HELP a_total b\n# TYPE a_total counter\na_total -1\n",
        "# TYPE a gauge\na 1\n",
        "# HELP a b\na 1\n",
        "# HELP a b\n# TYPE a gauge\na{x=\"1\",x=\"2\"} 1\n",
        "# HELP a b\n# TYPE a gauge\na 1\n# EOF\n",
        "# HELP a b\n# TYPE a gauge\na{quantile=\"1\"} 1\n",
        "# HELP a b\n# TYPE a gauge\n# HELP c b\n# TYPE c gauge\na 1\nc 1\na{x=\"1\"} 1\n",
        "# HELP a b\n# TYPE a gauge\na 1",
    ],
)  # fmt: skip
def test_the_lint_finds_faults(text: str) -> None:
    assert faults_of(text)
