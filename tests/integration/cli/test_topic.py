"""`barnabas topic` for real."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from confluent import produce_all

from barnabas.testing import Broker


def test_create(barnabas: Any) -> None:
    done = barnabas("topic create made1 made2 -p 3 -r 1 -c retention.ms=5000")
    assert (done.status, done.err) == (0, "")
    assert done.out == "created made1: 3 partitions, 1 replica each\ncreated made2: 3 partitions, 1 replica each\n"
    again = barnabas("topic create made1")
    assert again.status == 1 and again.out == ""
    assert again.err.startswith("barnabas topic create: topic made1: ") and "add --if-not-exists" in again.err
    assert again.err.count("\n") == 1
    assert barnabas("topic create made1 --if-not-exists").out == "made1 exists already\n"
    told = barnabas("topic create made3 --json").json
    assert told[0]["name"] == "made3" and told[0]["partitions"] == 1 and len(told[0]["topic_id"]) == 22


def test_create_by_assignment_and_dry(barnabas: Any) -> None:
    assert barnabas("topic create placed -a 0,0,0").out == "created placed: 3 partitions, 1 replica each\n"
    wrong = barnabas("topic create placed -a 0,x")
    assert wrong.status == 2 and "'x' is not a list of broker ids" in wrong.err
    assert barnabas("topic create placed -a 0 -p 2").status == 2
    assert "dry run, nothing changed" in barnabas("topic create unmade --dry-run").out
    assert "unmade" not in barnabas("topic list").out


def test_several_failures_are_one_line(barnabas: Any, topic: str) -> None:
    done = barnabas("topic", "create", topic, "bad name")
    assert done.status == 1 and done.err.count("\n") == 1
    assert topic in done.err and "bad name" in done.err


def test_what_was_done_is_reported_though_others_failed(barnabas: Any, topic: str) -> None:
    done = barnabas("topic", "create", topic, f"{topic}-new", "-p", "2")
    assert (done.status, done.out) == (1, f"created {topic}-new: 2 partitions, 1 replica each\n")
    assert done.err.startswith(f"barnabas topic create: topic {topic}: ") and done.err.count("\n") == 1
    as_json = barnabas("topic", "create", topic, f"{topic}-newer", "--json")
    assert as_json.status == 1 and [each["name"] for each in as_json.json] == [f"{topic}-newer"]
    altered = barnabas("topic", "alter", "missing", topic, "--set", "retention.ms=5000")
    assert (altered.status, altered.out) == (1, f"altered {topic}\n")
    assert "missing" in altered.err and altered.err.count("\n") == 1


def test_records_deleted_from_some_partitions_are_reported(barnabas: Any, broker: Broker, topic: str) -> None:
    produce_all(broker.bootstrap, topic, [b"%d" % number for number in range(5)], partition=0)
    done = barnabas("topic", "delete-records", topic, "--before", "3")
    assert done.status == 1 and f"{topic}-1" in done.err
    assert done.rows == [["TOPIC", "PARTITION", "EARLIEST"], [topic, "0", "3"]]


def test_list(barnabas: Any, topic: str) -> None:
    done = barnabas("topic list")
    assert done.rows[0] == ["NAME", "PARTITIONS", "REPLICAS"]
    assert [topic, "2", "1"] in done.rows
    (mine,) = [each for each in barnabas("topic list --json").json if each["name"] == topic]
    assert mine["partitions"] == 2 and mine["is_internal"] is False
    barnabas("group", "reset-offsets", "g", "--topic", topic, "--to-earliest", "--execute")
    assert "__consumer_offsets" not in barnabas("topic list").out
    assert "__consumer_offsets" in barnabas("topic list --internal").out


def test_describe_and_alter(barnabas: Any, topic: str) -> None:
    assert (
        barnabas("topic", "alter", topic, "-s", "retention.ms=1000", "--append", "cleanup.policy=compact").status == 0
    )
    done = barnabas("topic", "describe", topic)
    assert ["config", "retention.ms", "1000"] in done.rows
    assert ["config", "cleanup.policy", "delete,compact"] in done.rows
    assert ["0", "0", "0", "0", "0", "-"] in done.rows
    assert "segment.bytes" not in done.out
    assert "segment.bytes" in barnabas("topic", "describe", topic, "--all-config").out
    told = barnabas("topic", "describe", topic, "--json").json[0]
    assert told["config"] == {"retention.ms": "1000", "cleanup.policy": "delete,compact"}
    assert [each["leader"] for each in told["topic"]["partitions"]] == [0, 0]
    barnabas("topic", "alter", topic, "-u", "retention.ms", "--subtract", "cleanup.policy=compact")
    assert barnabas("topic", "describe", topic, "--json").json[0]["config"] == {"cleanup.policy": "delete"}
    assert barnabas("topic", "alter", topic).status == 2
    wrong = barnabas("topic", "alter", topic, "-s", "retention.ms")
    assert wrong.status == 2 and "expected KEY=VALUE" in wrong.err
    missing = barnabas("topic describe missing")
    assert missing.status == 1 and "missing" in missing.err and "typo" in missing.err


def test_delete(barnabas: Any, topic: str) -> None:
    done = barnabas("topic", "delete", topic, "missing")
    assert (done.status, done.out) == (1, f"deleted {topic}\n")
    assert "missing" in done.err
    assert barnabas("topic", "delete", topic, "--if-exists").out == f"{topic} does not exist\n"


def test_add_partitions(barnabas: Any, topic: str) -> None:
    assert "could have 4" in barnabas("topic", "add-partitions", topic, "--by", "2", "--dry-run").out
    assert "has 3 partitions, before 2" in barnabas("topic", "add-partitions", topic, "--by", "1").out
    assert "has 5 partitions" in barnabas("topic", "add-partitions", topic, "--to", "5").out
    assert barnabas("topic", "add-partitions", topic, "--to", "2").status == 1
    assert barnabas("topic", "add-partitions", topic).status == 2


def test_offsets(barnabas: Any, broker: Broker, topic: str) -> None:
    produce_all(broker.bootstrap, topic, [b"a", b"b", b"c"])
    done = barnabas("topic", "offsets", topic)
    assert done.rows == [
        ["TOPIC", "PARTITION", "EARLIEST", "LATEST", "OFFSETS"],
        [topic, "0", "0", "3", "3"],
        [topic, "1", "0", "0", "0"],
    ]
    assert barnabas("topic", "offsets", topic, "--json").json[0] == {
        "topic": topic,
        "partition": 0,
        "earliest": 0,
        "latest": 3,
        "offsets": 3,
    }
    assert [row[2] for row in barnabas("topic", "offsets", topic, "--at", "latest").rows] == ["OFFSET", "3", "0"]
    assert [row[2] for row in barnabas("topic", "offsets", topic, "--at", "2020-01-01").rows] == ["OFFSET", "0", "-"]
    future = barnabas("topic", "offsets", topic, "--at", "2099-01-01T00:00Z", "--json").json
    assert [each["offset"] for each in future] == [None, None]
    wrong = barnabas("topic", "offsets", topic, "--at", "tomorrow")
    assert wrong.status == 2 and "expected a time like" in wrong.err


def test_delete_records(barnabas: Any, broker: Broker, topic: str, tmp_path: Path) -> None:
    produce_all(broker.bootstrap, topic, [b"x"] * 5)
    assert barnabas("topic", "delete-records", topic, "-p", "0", "--before", "2").rows[1] == [topic, "0", "2"]
    file = tmp_path / "offsets.json"
    file.write_text(json.dumps({"partitions": [{"topic": topic, "partition": 0, "offset": 3}], "version": 1}))
    assert barnabas("topic", "delete-records", "--file", str(file)).rows[1] == [topic, "0", "3"]
    done = barnabas("topic", "delete-records", topic, "--before", "latest", "--json")
    assert done.json == [
        {"topic": topic, "partition": 0, "earliest": 5},
        {"topic": topic, "partition": 1, "earliest": 0},
    ]
    beyond = barnabas("topic", "delete-records", topic, "-p", "0", "--before", "9")
    assert beyond.status == 1 and "`barnabas topic offsets` shows" in beyond.err
    file.write_text("{}")
    for wrong in ([topic], [], [topic, "--before", "soon"], ["--file", str(file)], ["--file", "/missing"]):
        assert barnabas("topic", "delete-records", *wrong).status == 2, wrong


@pytest.mark.parametrize("words", ["topic", "topic frobnicate", "topic describe", "topic list extra"])
def test_wrong_use(barnabas: Any, words: str) -> None:
    done = barnabas(words)
    assert done.status == 2 and "usage: barnabas topic" in done.err
