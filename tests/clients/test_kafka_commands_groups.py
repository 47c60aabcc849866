"""kafka-consumer-groups.sh and kafka-groups.sh, line by line with Apache Kafka's, on the same broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from eventually import eventually
from kafka_commands import KafkaTools, SideBySide

from barnabas import Admin, Consumer, Producer
from barnabas.testing import Broker

pytestmark = pytest.mark.java
QUICK = {"group.initial.rebalance.delay.ms": "0"}


@pytest.fixture(scope="module")
def both(kafka_tools: KafkaTools) -> Iterator[SideBySide]:
    """A topic with 5 records in each of 2 partitions, and three groups with offsets but no members."""
    with Broker(QUICK) as broker:
        with Admin(broker.bootstrap) as admin, Producer(broker.bootstrap) as producer:
            admin.create_topic("orders", 2)
            admin.create_topic("bills", 1)
            for number in range(10):
                producer.send("orders", b"x", partition=number % 2, timestamp=1_700_000_000_000 + number)
            producer.flush()
            for group in ("twin-1", "twin-2", "shown"):
                admin.alter_group_offsets(group, {("orders", 0): 3, ("orders", 1): 2})
        yield SideBySide(kafka_tools, broker.bootstrap)


TWINS = {"kafkas": "twin-1", "ours": "twin-2"}


def test_groups_without_members(both: SideBySide) -> None:
    for words in (
        ["--list"],
        ["--list", "--state"],
        ["--list", "--type"],
        ["--list", "--type", "classic", "--state", "empty,Stable"],
        ["--list", "--type=consumer"],
        ["--describe", "--group", "shown"],
        ["--describe", "--group", "shown", "--offsets", "--verbose"],
        ["--describe", "--group", "shown", "--members", "--verbose"],
        ["--describe", "--group", "shown", "--state"],
        ["--describe", "--group", "shown", "--state", "--verbose"],
        ["--describe", "--all-groups"],
        ["--describe", "--group", "no-such-group"],
        ["--delete", "--group", "no-such-group"],
        ["--delete-offsets", "--group", "no-such-group", "--topic", "orders"],
        ["--delete-offsets", "--group", "shown", "--topic", "no-such-topic"],
    ):
        both.same("consumer-groups", *words, any_order=True)


def test_groups_with_members(both: SideBySide) -> None:
    options = {"auto_offset_reset": "earliest", "enable_auto_commit": False}
    with (
        Consumer(both.bootstrap, group_id="classic", client_id="static", group_instance_id="i", **options) as classic,
        Consumer(both.bootstrap, group_id="modern", group_protocol="consumer", **options) as modern,
    ):
        for consumer in (classic, modern):
            consumer.subscribe(["orders", "bills"])
            eventually(lambda consumer=consumer: consumer.poll(0.2) or consumer.assignment(), lambda got: len(got) >= 3)
            consumer.commit()
        for words in (
            ["--describe", "--group", "classic", "--group", "modern"],
            ["--describe", "--group", "classic", "--group", "modern", "--verbose"],
            ["--describe", "--group", "classic", "--group", "modern", "--members"],
            ["--describe", "--group", "classic", "--group", "modern", "--members", "--verbose"],
            ["--describe", "--group", "classic", "--group", "modern", "--state", "--verbose"],
            ["--delete", "--group", "classic"],
            ["--delete-offsets", "--group", "classic", "--topic", "orders:1", "--topic", "bills"],
            ["--reset-offsets", "--group", "modern", "--all-topics", "--to-earliest", "--execute"],
        ):
            both.same("consumer-groups", *words, any_order=True)


def test_offsets_are_reset(both: SideBySide, tmp_path: Path) -> None:
    one_group, two_groups = tmp_path / "one.csv", tmp_path / "two.csv"
    one_group.write_text("orders,0,4\norders,1,400\n")
    two_groups.write_text("twin-1,orders,0,1\ntwin-2,orders,0,1\n")
    reset = ["--reset-offsets", "--group", "TWIN"]
    for words in (
        ["--topic", "orders", "--to-earliest"],  # nothing is done
        ["--topic", "orders", "--to-latest", "--execute"],
        ["--topic", "orders:1", "--shift-by", "-2", "--execute"],
        ["--all-topics", "--shift-by", "100", "--dry-run"],
        ["--all-topics", "--to-offset", "3", "--execute"],
        ["--topic", "orders:0,1", "--to-current", "--export", "--dry-run"],
        ["--topic", "bills", "--to-current", "--dry-run"],
        ["--topic", "orders", "--to-datetime", "2023-11-14T22:13:20.005", "--execute"],
        ["--topic", "orders", "--to-datetime", "2023-11-14T22:13:20.005+01:00", "--dry-run"],
        ["--topic", "orders", "--by-duration", "P1D", "--dry-run"],
        ["--from-file", str(one_group), "--execute"],
        ["--group", "TWIN", "--from-file", str(two_groups), "--dry-run"],
        ["--topic", "no-such-topic", "--to-latest", "--dry-run"],
        ["--topic", "orders:x", "--to-latest", "--dry-run"],
        ["--topic", "orders", "--dry-run"],
        ["--to-latest", "--dry-run"],
        ["--topic", "orders", "--to-latest", "--to-earliest", "--dry-run"],
        ["--topic", "orders", "--to-latest", "--execute", "--dry-run"],
        ["--topic", "bills", "--shift-by", "1", "--dry-run"],
    ):
        both.same_of_twins("consumer-groups", *reset, *words, **TWINS, any_order=True)
        if "--execute" in words:
            described = both.same_of_twins("consumer-groups", "--describe", "--group", "TWIN", **TWINS, any_order=True)
            assert described, "what was done is the same as well"
    for words in (
        ["--describe", "--group", "TWIN"],
        ["--delete-offsets", "--group", "TWIN", "--topic", "orders:0"],
        ["--describe", "--group", "TWIN"],
        ["--delete", "--group", "TWIN", "--group", "no-such-group"],
        ["--delete", "--group", "TWIN"],
    ):
        both.same_of_twins("consumer-groups", *words, **TWINS, any_order=True)


@pytest.mark.parametrize(
    "words",
    [
        ["--describe"],
        ["--describe", "--group", "g", "--members", "--state"],
        ["--describe", "--group", "g", "--state", "stable"],
        ["--delete"],
        ["--delete", "--group", "g", "--topic", "t"],
        ["--delete-offsets", "--group", "g"],
        ["--reset-offsets", "--dry-run"],
        ["--list", "--describe", "--group", "g"],
        ["--list", "--members"],
        ["--list", "--state", "fine"],
        ["--list", "--type", "share"],
        ["--list", "--group", "g"],
        ["--describe", "--group", "g", "--all-groups"],
        ["--group"],
        ["--describe", "--group", "g", "--timeout", "soon"],
    ],
    ids=" ".join,
)
def test_wrong_use(both: SideBySide, words: list[str]) -> None:
    both.same("consumer-groups", *words)
