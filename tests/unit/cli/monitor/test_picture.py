"""What the monitor shows of a view, and what keys change."""

from __future__ import annotations

import json
import random

import pytest

from barnabas.cli.monitor.keys import press, split_keys
from barnabas.cli.monitor.picture import LISTS, Choice, age, document_of, lines_of, rows_of, size, sorts_of
from barnabas.client.metadata import Node, PartitionMetadata
from barnabas.console.recent import RecentHistory, values_of
from barnabas.console.view import ClusterView, GroupView, TopicView


def topic(name: str, *, rate: float = 0.0, lag: int = 0, internal: bool = False) -> TopicView:
    partition = PartitionMetadata(0, leader=0, leader_epoch=0, replicas=(0, 1), isr=(0,))
    made = TopicView(name, "id", internal, (partition,), [0], [10], rate=rate, measured_at=1.0)
    made.lag, made.lag_seconds = lag, float(lag)
    return made


@pytest.fixture
def view() -> ClusterView:
    topics = [topic("orders", rate=5.0, lag=3), topic("bills", rate=50.0, lag=1), topic("__x", internal=True)]
    group = GroupView("evil\x1b[2J\n", None, None, "consumer", lag=4)
    brokers = {number: Node(number, "h", 9092 + number, None) for number in (0, 1)}
    return ClusterView(
        cluster_id="c",
        controller=0,
        brokers=brokers,
        topics={each.name: each for each in topics},
        groups={group.group_id: group},
        collected_at=1000.0,
        rate=55.0,
    )


def names(view: ClusterView, choice: Choice) -> list[str]:
    return [row["name"] for row in rows_of(view, choice)]


def test_rows_are_filtered_and_sorted(view: ClusterView) -> None:
    assert names(view, Choice()) == ["bills", "orders"]
    assert names(view, Choice(internal=True)) == ["__x", "bills", "orders"]
    assert names(view, Choice(sort="rate")) == ["bills", "orders"]
    assert names(view, Choice(sort="lag")) == ["orders", "bills"]
    assert names(view, Choice(sort="lag", reverse=True)) == ["bills", "orders"]
    assert names(view, Choice(filter="RDER")) == ["orders"]
    assert names(view, Choice("brokers", sort="replicas")) == [0, 1]
    assert rows_of(view, Choice("brokers"))[0]["leaders"] == 3


def test_the_document_is_json_and_complete(view: ClusterView) -> None:
    document = json.loads(json.dumps(document_of(view, Choice())))
    assert (document["topics_count"], document["partitions"], document["out_of_sync"]) == (2, 3, 3)
    assert [each["name"] for each in document["groups"]] == ["evil\x1b[2J\n"]


def test_lines_fit_the_height_and_obey_nobody(view: ClusterView) -> None:
    recent = RecentHistory()
    recent.record(1000.0, values_of(view))
    for shown in LISTS:
        for height in (8, 12, 40):
            lines = lines_of(view, recent, Choice(shown), 1000.0, height)
            assert len(lines) <= height and all(line.isprintable() for line in lines)
    text = "\n".join(lines_of(view, recent, Choice(sort="lag"), 1000.0, 40))
    assert "TOPICS  2, by lag" in text and "█" in text and "replicas out of sync 3" in text
    assert all(line.isascii() for line in lines_of(view, recent, Choice(), 1000.0, 40, plain=True))


def test_a_cluster_that_does_not_respond(view: ClusterView) -> None:
    view.error = "no broker\nanswers"
    assert "The cluster does not respond: no broker\ufffdanswers" in lines_of(view, RecentHistory(), Choice(), 1.0, 40)
    assert lines_of(ClusterView(), RecentHistory(), Choice(), 1.0, 40)[0] == "Looking at the cluster ..."


def test_keys() -> None:
    choice = Choice()
    assert list(split_keys("q\x1b[A\x1bx\x1b[6~")) == ["q", "up", "\x1b", "x", "page down"]
    press(choice, "s")
    assert choice.sort == sorts_of("topics")[1]
    press(choice, "r")
    assert choice.reverse
    press(choice, "\t")
    assert (choice.shown, choice.sort, choice.reverse) == ("groups", "", False)
    for key in "/sq":
        assert press(choice, key), "in a filter no key is an order"
    assert choice.filter == "sq"
    press(choice, "\x7f")
    press(choice, "\r")
    assert (choice.filter, choice.is_typing) == ("s", False)
    press(choice, "\x1b")
    assert choice.filter == ""
    assert not press(choice, "q")


def test_any_keys_leave_a_choice_that_can_be_shown(view: ClusterView) -> None:
    chance, choice = random.Random(3), Choice()
    for _ in range(3000):
        press(
            choice, chance.choice(["\t", "s", "r", "/", "x", "\r", "up", "down", "page down", "home", " ", "i", "\x1b"])
        )
        assert lines_of(view, RecentHistory(), choice, 1.0, chance.randrange(1, 30))


def test_units() -> None:
    assert [size(each) for each in (None, 0, 999, 1500, 250e6, 5e18)] == [
        "-",
        "0 B",
        "999 B",
        "1.5 kB",
        "250 MB",
        "5,000 PB",
    ]
    assert [age(each) for each in (None, 0, 1.25, 119, 600, 7200, 400_000)] == [
        "-",
        "0.0 s",
        "1.2 s",
        "119 s",
        "10 min",
        "2.0 h",
        "5 d",
    ]
