"""`barnabas group` for real, with members of librdkafka."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent import produce_all
from confluent_kafka import Consumer
from eventually import eventually

from barnabas import Admin, OffsetAndMetadata, TopicPartition
from barnabas.testing import Broker


@pytest.fixture
def group(broker: Broker, barnabas: Any, topic: str) -> str:
    """A group without members that has read three of five records of partition 0 of a topic of the same name."""
    produce_all(broker.bootstrap, topic, [b"x"] * 5)
    assert (
        barnabas("group", "reset-offsets", topic, "--topic", f"{topic}:0", "--to-offset", "3", "--execute").status == 0
    )
    return topic


@pytest.fixture
def member(broker: Broker, group: str) -> Iterator[Consumer]:
    settings = {"bootstrap.servers": broker.bootstrap, "group.id": group, "client.id": "reader"}
    consumer = Consumer(settings | {"group.instance.id": "one", "enable.auto.commit": False})
    consumer.subscribe([group])
    eventually(lambda: (consumer.poll(0.05), consumer.assignment())[1], timeout=30)
    yield consumer
    consumer.close()


def new_offsets(done: Any) -> dict[tuple[str, int], int]:
    assert done.status == 0, done.err
    return {(row["topic"], row["partition"]): row["new_offset"] for row in done.json["offsets"]}


def test_groups_of_spark_sinks_are_left_out(barnabas: Any, broker: Broker, topic: str) -> None:
    with Admin(broker.bootstrap) as admin:
        for name in ("__barnabas_sink.q-0", "__other"):
            admin.alter_group_offsets(name, {TopicPartition(topic, 0): OffsetAndMetadata(0)})
    listed = barnabas("group list").out
    assert "__barnabas_sink" not in listed and "__other" in listed
    assert "__barnabas_sink.q-0" not in [each["group_id"] for each in barnabas("group list --json").json]
    assert "__barnabas_sink.q-0" in barnabas("group list --all").out
    assert "group __barnabas_sink.q-0: Empty" in barnabas("group describe __barnabas_sink.q-0").out


def test_list(barnabas: Any, group: str) -> None:
    assert [group, "Classic", "-", "Empty"] in barnabas("group list").rows
    assert group in [each["group_id"] for each in barnabas("group list --json --state empty --type classic").json]
    assert group not in barnabas("group list --state stable").out
    wrong = barnabas("group list --state asleep")
    assert wrong.status == 2 and "expected one of" in wrong.err


def test_describe_shows_lag(barnabas: Any, group: str) -> None:
    done = barnabas("group", "describe", group)
    assert done.out.startswith(f"group {group}: Empty, 0 members")
    assert "total lag 2" in done.out
    assert done.rows[-1] == [group, "0", "3", "5", "2", "-", "-", "-"]
    told = barnabas("group", "describe", group, "--json").json[0]
    assert told["group"]["state"] == "Empty" and told["partitions"][0]["lag"] == 2
    missing = barnabas("group describe missing")
    assert missing.status == 1 and "`barnabas group list` shows" in missing.err


def test_describe_after_the_topic_is_gone(barnabas: Any, group: str) -> None:
    barnabas("topic", "delete", group)
    done = barnabas("group", "describe", group, "--timeout", "1")
    assert done.status == 0, done.err


def test_members(barnabas: Any, group: str, member: Consumer) -> None:
    row = barnabas("group", "members", group).rows[1]
    assert row[0] == group and row[2:4] == ["one", "reader"] and row[-2:] == ["2", f"{group}:0,1"]
    told = barnabas("group", "members", group, "--json").json
    assert told[0]["members"][0]["group_instance_id"] == "one"
    described = barnabas("group", "describe", group).rows
    assert described[-2][:5] == [group, "0", "3", "5", "2"] and described[-1][:5] == [group, "1", "-", "0", "-"]
    assert described[-1][-1] == "reader"


def test_a_reset_is_dry_unless_told_otherwise(barnabas: Any, group: str) -> None:
    done = barnabas("group", "reset-offsets", group, "--topic", group, "--to-earliest")
    assert done.status == 0
    lines = done.out.splitlines()
    assert lines[0] == f"group {group}: Empty, 0 members"
    assert lines[-1] == "dry run, nothing changed; add --execute"
    assert done.rows[2:4] == [[group, "0", "3", "0"], [group, "1", "-", "0"]]
    assert "total lag 2" in barnabas("group", "describe", group).out
    done = barnabas("group", "reset-offsets", group, "--topic", group, "--to-earliest", "--execute")
    assert done.out.splitlines()[-1] == f"done: 2 offsets of group {group} set"
    assert "total lag 5" in barnabas("group", "describe", group).out


def test_a_reset_names_the_members_that_must_stop(barnabas: Any, group: str, member: Consumer) -> None:
    dry = barnabas("group", "reset-offsets", group, "--all-topics", "--to-earliest")
    assert dry.status == 0 and "these members must stop first:" in dry.out
    assert "client reader on" in dry.out and "instance one" in dry.out
    done = barnabas("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--execute")
    assert done.status == 1
    assert f"nothing changed, because group {group} has members" in done.err
    assert "total lag 2" in barnabas("group", "describe", group).out
    told = barnabas("group", "reset-offsets", group, "--all-topics", "--to-earliest", "--json").json
    assert told["state"] == "Stable" and len(told["members"]) == 1 and told["changed"] is False


@pytest.mark.parametrize(
    ("where", "wanted"),
    [
        (["--to-latest"], 5),
        (["--to-current"], 3),
        (["--to-offset", "4"], 4),
        (["--to-offset", "99"], 5),
        (["--shift-by", "-2"], 1),
        (["--shift-by", "-20"], 0),
        (["--to-datetime", "2020-01-01T00:00:00.000"], 0),
        (["--to-datetime", "2099-01-01"], 5),
        (["--by-duration", "1h"], 0),
        (["--by-duration", "PT0S"], 5),
    ],
)
def test_where_a_reset_goes(barnabas: Any, group: str, where: list[str], wanted: int) -> None:
    done = barnabas("group", "reset-offsets", group, "--topic", f"{group}:0", *where, "--json")
    assert new_offsets(done) == {(group, 0): wanted}


def test_a_reset_from_a_file(barnabas: Any, group: str, tmp_path: Path) -> None:
    file = tmp_path / "offsets.csv"
    file.write_text(f"{group},0,2\n{group},1,0\n")
    done = barnabas("group", "reset-offsets", group, "--from-file", str(file), "--json")
    assert new_offsets(done) == {(group, 0): 2, (group, 1): 0}
    file.write_text(f"{group},0\n")
    wrong = barnabas("group", "reset-offsets", group, "--from-file", str(file))
    assert wrong.status == 2 and "line 1" in wrong.err
    file.write_text(f"{group},0,2\n")
    for chosen in (f"{group}:1", "other"):
        missing = barnabas("group", "reset-offsets", group, "--topic", chosen, "--from-file", str(file))
        assert missing.status == 2 and f"{file} says nothing of {chosen.replace(':', '-')}\n" in missing.err


def test_wrong_resets(barnabas: Any, group: str) -> None:
    for wrong in (
        ["--to-earliest"],
        ["--topic", group],
        ["--topic", f"{group}:x", "--to-earliest"],
        ["--topic", f"{group}:1", "--to-current"],
        ["--topic", group, "--by-duration", "a while"],
    ):
        assert barnabas("group", "reset-offsets", group, *wrong).status == 2, wrong
    assert barnabas("group", "reset-offsets", "missing", "--all-topics", "--to-earliest").status == 2


def test_delete(barnabas: Any, group: str) -> None:
    assert barnabas("group", "delete-offsets", group, "--topic", f"{group}:1").status == 2
    assert barnabas("group", "delete-offsets", group, "--topic", group).out == f"deleted the offset of {group}-0\n"
    barnabas("group", "reset-offsets", group, "--topic", group, "--to-earliest", "--execute")
    done = barnabas("group", "delete", group, "missing")
    assert (done.status, done.out) == (1, f"deleted {group}\n")


def test_a_group_with_members_is_not_deleted(barnabas: Any, group: str, member: Consumer) -> None:
    done = barnabas("group", "delete", group)
    assert done.status == 1 and "stop its members" in done.err
