"""Plans of kafka-reassign-partitions.sh: what is proposed for many brokers and racks, and what throttles name."""

from __future__ import annotations

import json
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from barnabas.cli.kafka.reassignment_plan import (
    Replica,
    check_plan,
    parse_plan,
    plan_json,
    propose,
)
from barnabas.client.replica_throttles import Move, throttled_replicas
from barnabas.types import TopicPartition


def topic(partitions: int, factor: int) -> dict[TopicPartition, list[int]]:
    return {TopicPartition("t", each): list(range(factor)) for each in range(partitions)}


@given(st.integers(1, 9), st.integers(1, 30), st.data())
def test_a_proposal_is_even(brokers: int, partitions: int, data: st.DataObject) -> None:
    factor = data.draw(st.integers(1, brokers))
    proposal = propose(topic(partitions, factor), dict.fromkeys(range(10, 10 + brokers)))
    assert len(proposal) == partitions
    assert all(len(set(replicas)) == factor for replicas in proposal.values())
    leaders = Counter(replicas[0] for replicas in proposal.values())
    assert max(leaders.values()) - min(leaders.values(), default=0) <= 1 or len(leaders) < brokers


@given(st.integers(2, 4), st.integers(1, 3), st.integers(1, 20))
def test_replicas_stand_in_different_racks(racks: int, per_rack: int, partitions: int) -> None:
    rack_of = {broker: f"rack-{broker % racks}" for broker in range(racks * per_rack)}
    for replicas in propose(topic(partitions, racks), rack_of).values():
        assert len({rack_of[broker] for broker in replicas}) == racks


def test_too_few_brokers() -> None:
    with pytest.raises(ValueError, match=r"Replication factor: 3 larger than available brokers: 2\."):
        propose(topic(1, 3), {1: None, 2: None})


def test_a_plan_and_its_json() -> None:
    text = plan_json({TopicPartition("t", 1): [1, 2], TopicPartition("t", 0): [2]})
    plan = parse_plan(text)
    assert plan.partitions == [(TopicPartition("t", 0), [2]), (TopicPartition("t", 1), [1, 2])]
    assert plan.log_dirs == {}
    rows = json.loads(text)["partitions"]
    rows[1]["log_dirs"] = ["/a", "any"]
    assert parse_plan(json.dumps({"partitions": rows})).log_dirs == {Replica(1, "t", 1): "/a"}


@pytest.mark.parametrize(
    ("rows", "reason"),
    [
        ([], "Partition reassignment list cannot be empty"),
        ([[0, []]], "Partition replica list cannot be empty"),
        ([[0, [1]], [0, [2]]], "Partition reassignment contains duplicate topic partitions: t-0"),
        (
            [[0, [1, 1]]],
            "Partition replica lists may not contain duplicate entries: t-0 contains multiple entries for 1",
        ),
    ],
)
def test_plans_that_make_no_sense(rows: list[tuple[int, list[int]]], reason: str) -> None:
    partitions = [{"topic": "t", "partition": number, "replicas": replicas} for number, replicas in rows]
    with pytest.raises(ValueError) as caught:
        check_plan(parse_plan(json.dumps({"version": 1, "partitions": partitions})))
    assert str(caught.value) == reason


def test_throttles_name_whom_is_read_from_and_written_to() -> None:
    moves = {
        TopicPartition("t", 0): Move({1, 2}, {3}),
        TopicPartition("t", 1): Move({2}, {2, 4}),
        TopicPartition("u", 0): Move({9}, {8}),
    }
    assert throttled_replicas(moves, "t") == ("0:1,0:2,1:2", "0:3,1:4")
