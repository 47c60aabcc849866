"""Batch reads: each option gives the rows, columns and tasks that the official connector gives."""

from __future__ import annotations

import base64
import json
from collections.abc import Callable
from typing import Any

import pytest
from confluent import make_topic
from confluent_kafka import Producer
from confluent_kafka import TopicPartition as Partition
from confluent_kafka.admin import AdminClient
from eventually import eventually

Ask = Callable[..., Any]
NewTopic = Callable[..., str]
EACH = (40, 10, 0)
"""Records of each partition; the n-th of each has the time 1000 * (n + 1)."""


@pytest.fixture(scope="module")
def filled(judge: AdminClient, bootstrap: str) -> str:
    topic = make_topic(judge, "filled.official", len(EACH), {"retention.ms": "-1"})
    producer = Producer({"bootstrap.servers": bootstrap})
    for partition, count in enumerate(EACH):
        for number in range(count):
            producer.produce(
                topic,
                key=(None, b"", b"k%d" % number)[number % 3],
                value=(b"%d-%d" % (partition, number), None, b"")[number % 7 % 3],
                partition=partition,
                timestamp=1000 * (number + 1),
                headers=([], [("a", b"1"), ("a", None)], [("n\N{LATIN SMALL LETTER E WITH ACUTE}", b"")])[number % 3],
            )
    assert producer.flush(30) == 0
    return topic


def offsets_of(response: Any) -> dict[int, list[int]]:
    found: dict[int, list[int]] = {}
    for row in response["rows"]:
        found.setdefault(row[3], []).append(row[4])
    return found


def test_columns_and_rows(same: Ask, filled: str) -> None:
    plain = same("read", {"subscribe": filled})
    assert offsets_of(plain) == {0: list(range(40)), 1: list(range(10))}
    assert len(plain["schema"]["fields"]) == 7
    headers = same("read", {"subscribe": filled, "includeHeaders": "true"})
    assert [field["name"] for field in headers["schema"]["fields"]][-1] == "headers"
    assert [row[:7] for row in headers["rows"]] == plain["rows"]
    first, second, third = headers["rows"][:3]
    assert first[0] is None and second[0] == "" and third[0] == base64.b64encode(b"k2").decode()
    assert first[7] is None and second[7] == [["a", "MQ=="], ["a", None]]
    assert first[5] == 1_000_000 and first[6] == 0


def test_time_of_the_broker(same: Ask, bootstrap: str, new_topic: NewTopic) -> None:
    topic = new_topic(**{"message.timestamp.type": "LogAppendTime"})
    producer = Producer({"bootstrap.servers": bootstrap})
    producer.produce(topic, b"x", timestamp=5)
    assert producer.flush(30) == 0
    (row,) = same("read", {"subscribe": topic})["rows"]
    assert row[6] == 1 and row[5] > 1_600_000_000_000_000


@pytest.mark.parametrize(
    ("options", "bounds"),
    [
        (
            {"startingOffsets": {"0": 30, "1": -2, "2": -2}, "endingOffsets": {"0": -1, "1": 4, "2": -1}},
            ((30, 40), (0, 4)),
        ),
        (
            {
                "startingTimestamp": "5000",
                "endingTimestamp": "7500",
                "startingOffsetsByTimestampStrategy": "latest",
            },
            ((4, 7), (4, 7)),
        ),
        (
            {
                "startingOffsetsByTimestamp": {"0": 39001, "1": 1, "2": 1},
                "startingOffsetsByTimestampStrategy": "latest",
                "endingOffsetsByTimestamp": {"0": 99999, "1": 3000, "2": 5},
            },
            ((39, 40), (0, 2)),
        ),
        ({"assign": [1]}, ((0, 0), (0, 10))),
    ],
    ids=["offsets", "time", "times", "assign"],
)
def test_where_to_start_and_end(same: Ask, filled: str, options: dict[str, Any], bounds: Any) -> None:
    given = {name: each if isinstance(each, str) else json.dumps({filled: each}) for name, each in options.items()}
    if "assign" not in given:
        given["subscribe"] = filled
    wanted = {partition: list(range(*bound)) for partition, bound in enumerate(bounds) if bound[0] < bound[1]}
    assert offsets_of(same("read", given)) == wanted


def test_pattern(same: Ask, judge: AdminClient, bootstrap: str, new_topic: NewTopic, name: str) -> None:
    """All of a name must fit, and what the broker keeps for itself is none of it."""
    topics = [new_topic(), new_topic()]
    make_topic(judge, f"{topics[0]}-more")
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    producer.begin_transaction()
    for topic in topics:
        producer.produce(topic, topic.encode())
    producer.commit_transaction(30)
    eventually(lambda: "__transaction_state" in judge.list_topics(timeout=10).topics)
    found = same("read", {"subscribePattern": f"({name}.*[01]|__.*)"})
    assert [row[2] for row in found["rows"]] == topics


@pytest.mark.parametrize("least", ["2", "4", "5", "7", "11"])
def test_min_partitions(same: Ask, filled: str, least: str) -> None:
    found = same("read", {"subscribe": filled, "minPartitions": least})
    assert len(found["tasks"]) == int(least)


def test_transactions(same: Ask, bootstrap: str, new_topic: NewTopic, name: str) -> None:
    """Committed, aborted, and one that is still open when it is read."""
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap, "transactional.id": name})
    producer.init_transactions(30)
    for number, end in enumerate((producer.commit_transaction, producer.abort_transaction, None)):
        producer.begin_transaction()
        producer.produce(topic, b"%d" % number)
        assert producer.flush(30) == 0
        if end is not None:
            end(30)
    committed = {"subscribe": topic, "kafka.isolation.level": "read_committed"}
    assert offsets_of(same("read", committed)) == {0: [0]}
    assert offsets_of(same("read", {"subscribe": topic})) == {0: [0, 2, 4]}
    producer.commit_transaction(30)
    assert offsets_of(same("read", committed)) == {0: [0, 4]}


def test_records_that_are_gone(
    same: Ask, both_refuse: Ask, judge: AdminClient, bootstrap: str, new_topic: NewTopic
) -> None:
    topic = new_topic()
    producer = Producer({"bootstrap.servers": bootstrap})
    for number in range(10):
        producer.produce(topic, b"%d" % number)
    assert producer.flush(30) == 0
    judge.delete_records([Partition(topic, 0, 4)])[Partition(topic, 0)].result(30)
    options = {"subscribe": topic, "startingOffsets": json.dumps({topic: {"0": 1}})}
    assert offsets_of(same("read", {**options, "failOnDataLoss": "false"})) == {0: list(range(4, 10))}
    theirs, ours = both_refuse("read", options)
    assert "lost" in theirs and "offsets 1 to 3 are lost" in ours
    same("read", {"subscribe": topic})


@pytest.mark.parametrize(
    ("options", "theirs", "ours"),
    [
        ({"startingOffsets": {"0": 1}}, "don't match what are assigned", "is missing"),
        ({"startingOffsets": "latest"}, "starting offset can't be latest", "a batch cannot start at latest"),
        ({"startingOffsets": {"0": -1, "1": -2, "2": -2}}, "can't be latest", "a batch cannot start at latest"),
        ({"endingOffsets": {"0": -1, "1": -2, "2": -1}}, "can't be earliest", "cannot be the end of a read"),
        ({"endingOffsets": "earliest"}, "ending offset can't be earliest", "it must be latest or JSON"),
        ({"startingTimestamp": "99999999"}, "No offset matched", "has no record from that time on"),
        ({"assign": [0]}, "Only one of", "exclude each other"),
        ({"kafka.auto.offset.reset": "latest"}, "is not supported", "use startingOffsets"),
    ],
    ids=["some", "latest", "latest of one", "earliest of one", "earliest", "too late", "both", "reset"],
)
def test_both_refuse(both_refuse: Ask, filled: str, options: dict[str, Any], theirs: str, ours: str) -> None:
    given = {name: each if isinstance(each, str) else json.dumps({filled: each}) for name, each in options.items()}
    said = both_refuse("read", {"subscribe": filled, **given})
    assert theirs.lower() in said[0].lower() and ours in said[1]


def test_no_such_topic(both_refuse: Ask, name: str) -> None:
    both_refuse("read", {"subscribe": name})
