"""kafka-topics.sh and kafka-get-offsets.sh, line by line with Apache Kafka's, on the same broker."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from kafka_commands import KafkaTools, SideBySide

from barnabas.testing import Broker

pytestmark = pytest.mark.java


@pytest.fixture(scope="module")
def both(kafka_tools: KafkaTools) -> Iterator[SideBySide]:
    with Broker() as broker:
        yield SideBySide(kafka_tools, broker.bootstrap)


def test_topics_are_created_grown_and_deleted(both: SideBySide) -> None:
    twins = {"kafkas": "made-1", "ours": "made-2"}
    lines = both.same_of_twins("topics", "--create", "--topic", "TWIN", "--partitions", "2", **twins)
    assert lines == ["Created topic made-1."]
    for words in (
        ["--create", "--topic", "TWIN"],  # is there
        ["--create", "--topic", "TWIN", "--if-not-exists"],
        ["--create", "--topic", "TWIN.with_both", "--config", "retention.ms=5", "--config=cleanup.policy=compact"],
        ["--create", "--topic", "TWIN-by-hand", "--replica-assignment", "0,0,0"],
        ["--alter", "--topic", "TWIN", "--partitions", "3"],
        ["--alter", "--topic", "TWIN", "--partitions", "1"],
        ["--delete", "--topic", "TWIN.with_both"],
        ["--delete", "--topic", "TWIN.with_both"],
        ["--delete", "--topic", "TWIN.with_both", "--if-exists"],
        ["--list", "--topic", "TWIN.*"],
    ):
        both.same_of_twins("topics", *words, **twins)


def test_a_file_of_properties_for_all_clients(both: SideBySide, tmp_path: Path) -> None:
    file = tmp_path / "client.properties"
    file.write_text("client.id = me\nacks = all\nauto.offset.reset = earliest\nodd.option = 1\nretries=3\n")
    for flag in ("--command-config", "--admin.config"):
        told = both.ours("topics", "--list", flag, str(file))
        assert told.err == "WARN: odd.option: no client has this option, left out\n"
        assert told[:2] == both.kafkas("topics", "--list", "--command-config", str(file))[:2]
    file.write_text("security.protocol = odd\n")
    assert both.ours("topics", "--list", "--command-config", str(file)).status == 1
    assert both.ours("topics", "--list", "--command-config", str(tmp_path / "missing")).status == 1


def test_topics_are_described(both: SideBySide) -> None:
    for name, *more in (["shown-a"], ["shown-b", "--partitions", "3", "--config", "retention.ms=7"]):
        both.ours("topics", "--create", "--topic", name, *more)
    for words in (
        ["--list"],
        ["--list", "--exclude-internal"],
        ["--list", "--topic", "shown-a,shown-b"],
        ["--list", "--topic", "nothing-like-it"],
        ["--describe", "--topic", "shown-a"],
        ["--describe", "--topic", "'shown-.'"],
        ["--describe"],
        ["--describe", "--topics-with-overrides", "--topic", "shown.*"],
        ["--describe", "--at-min-isr-partitions", "--topic", "shown.*"],
        ["--describe", "--under-min-isr-partitions", "--unavailable-partitions"],
        ["--describe", "--under-replicated-partitions"],
        ["--describe", "--topic", "no-such-topic"],
        ["--describe", "--topic", "no-such-topic", "--if-exists"],
        ["--describe", "--topic-id", "AAAAAAAAAAAAAAAAAAAAAQ"],
    ):
        both.same("topics", *words, any_order=True)
    described = both.ours("topics", "--describe", "--topic", "shown-b").lines
    topic_id = described[0].split("TopicId: ")[1].split("\t")[0]
    assert both.same("topics", "--describe", "--topic-id", topic_id)[0] == described[0]


@pytest.mark.parametrize(
    "words",
    [
        ["--create"],
        ["--list", "--describe"],
        ["--create", "--topic", "t", "--partitions", "0"],
        ["--create", "--topic", "t", "--partitions", "many"],
        ["--create", "--topic", "t", "--replication-factor", "0"],
        ["--create", "--topic", "t", "--replication-factor", "2"],
        ["--create", "--topic", "t", "--replica-assignment", "0:0"],
        ["--create", "--topic", "t", "--replica-assignment", "0:1,0"],
        ["--create", "--topic", "t", "--replica-assignment", "0", "--partitions", "1"],
        ["--create", "--topic", "t", "--config", "no.such.setting=1"],
        ["--create", "--topic", "t", "--config", "nothing"],
        ["--create", "--topic", "bad/name"],
        ["--alter", "--topic", "t"],
        ["--list", "--partitions", "3"],
        ["--describe", "--topic", "[", "--exclude-internal"],
        ["--no-such-flag"],
        ["--topic"],
        ["--version"],
    ],
    ids=" ".join,
)
def test_wrong_use(both: SideBySide, words: list[str]) -> None:
    both.same("topics", *words)
    theirs, ours = (
        printed.err.split("\n")[0] for printed in (both.kafkas("topics", *words), both.ours("topics", *words))
    )
    assert ours.startswith(theirs) or not ours, "the reason is on stderr unless it was on stdout"
