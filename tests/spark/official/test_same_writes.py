"""Writes: what either of the two wrote is the same on the topic, and both refuse the same misuse."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from spark_worker import SparkWorker

Ask = Callable[..., Any]
NewTopic = Callable[..., str]
Row = tuple[Any, ...]
PARTITIONS = 3
HEADERS = "headers array<struct<key: string, value: binary>>"


def written(workers: tuple[SparkWorker, SparkWorker], bootstrap: str, topic: str) -> list[Row]:
    """Keys, values, partitions and headers, in no order: tasks run side by side."""
    options = {"kafka.bootstrap.servers": bootstrap, "subscribe": topic, "includeHeaders": "true"}
    options["kafka.isolation.level"] = "read_committed"
    rows = workers[0].ask("read", options=options)["rows"]
    return sorted(((row[0], row[1], row[3], row[7]) for row in rows), key=repr)


@pytest.mark.parametrize(
    ("schema", "rows"),
    [
        ("key string, value string", [[f"k{n}", f"v{n}"] for n in range(20)]),
        ("key binary, value binary", [[b"\x00%d" % n, b"\xff%d" % n] for n in range(20)]),
        ("key string, value string", [["", "v"], ["tombstone", None], ["e\u0301\U0001f600", ""]]),
        ("value string, partition int", [["a", 0], ["b", 2], ["c", 1]]),
        (
            f"key string, value string, {HEADERS}",
            [["a", "b", [["h", b"1"], ["h", None]]], ["c", "d", None], ["e", "f", []]],
        ),
        ("key string, partition int, value string", [["a", None, "b"], ["c", 1, "d"]]),
    ],
    ids=["strings", "binary", "empty and null", "partition", "headers", "some partitions"],
)
def test_same_records(
    workers: tuple[SparkWorker, SparkWorker], bootstrap: str, new_topic: NewTopic, schema: str, rows: list[list[Any]]
) -> None:
    found = []
    for worker in workers:
        topic = new_topic(partitions=PARTITIONS)
        options = {"kafka.bootstrap.servers": bootstrap, "topic": topic}
        worker.ask("write", schema=schema, rows=rows, options=options)
        found.append(written(workers, bootstrap, topic))
    assert found[0] == found[1] and len(found[0]) == len(rows)


@pytest.mark.parametrize("option", [False, True], ids=["column", "option"])
def test_topic_by_column_or_option(
    workers: tuple[SparkWorker, SparkWorker], bootstrap: str, new_topic: NewTopic, option: bool
) -> None:
    """The option wins."""
    found = []
    for worker in workers:
        topics = [new_topic(), new_topic()]
        options = {"kafka.bootstrap.servers": bootstrap} | ({"topic": topics[1]} if option else {})
        rows = [["a", topics[0]], ["b", topics[1]]]
        worker.ask("write", schema="value string, topic string", rows=rows, options=options)
        found.append([written(workers, bootstrap, topic) for topic in topics])
    assert found[0] == found[1]
    assert [len(each) for each in found[0]] == ([0, 2] if option else [1, 1])


@pytest.mark.parametrize(
    ("schema", "row", "with_topic", "theirs", "ours"),
    [
        ("key string", ["a"], True, "value", "column value: is missing"),
        ("value string", ["a"], False, "topic", "topic: set the option topic, or add a column"),
        ("value int", [1], True, "value", "column value: is int, must be binary or string"),
        ("value string, topic string", ["a", None], False, "null topic", "topic"),
    ],
    ids=["no value", "no topic", "type", "null topic"],
)
def test_both_refuse(
    both_refuse: Ask, new_topic: NewTopic, schema: str, row: list[Any], with_topic: bool, theirs: str, ours: str
) -> None:
    options = {"topic": new_topic()} if with_topic else {}
    said = both_refuse("write", options, schema=schema, rows=[row])
    assert theirs in said[0].lower() and ours in said[1]
