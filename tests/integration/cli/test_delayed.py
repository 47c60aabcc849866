"""`barnabas delayed`."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

import pytest
from eventually import eventually

from barnabas import Producer
from barnabas.testing import Broker

HOUR_MS = 3_600_000


@pytest.fixture(scope="module")
def broker() -> Iterator[Broker]:
    with Broker() as broker:
        broker.create_topic("orders")
        yield broker


@pytest.fixture
def intake(broker: Broker, topic: str) -> str:
    name = f"{topic}.delayed"
    broker.create_topic(name, 2, {"delay.target.topic": "orders"})
    return name


def send(broker: Broker, topic: str, *records: tuple[int, bytes, int, bytes | None]) -> None:
    """(partition, key, hours, schedule id)"""
    now_ms = time.time_ns() // 1_000_000
    with Producer(broker.bootstrap) as producer:
        for partition, key, hours, schedule in records:
            headers = [("deliver-at", str(now_ms + hours * HOUR_MS).encode())]
            headers += [] if schedule is None else [("schedule-id", schedule)]
            producer.send(topic, b"value", key=key, partition=partition, headers=headers)


def pending(barnabas: Any, topic: str) -> list[tuple[int, int, str]]:
    found = barnabas("delayed", "list", topic, "--json").json
    return [(row["partition"], row["offset"], row["key"]) for row in found["next"]]


def test_what_is_pending_is_listed_in_the_order_of_delivery(broker: Broker, barnabas: Any, intake: str) -> None:
    send(broker, intake, (0, b"a", 5, None), (1, b"b", 2, b"s"), (0, b"c", 3, None), (1, b"d", 400, None))
    found = barnabas("delayed", "list", intake, "--json").json
    assert [row["key"] for row in found["next"]] == ["b", "c", "a", "d"]
    assert found["due_within"] == {"a day": 3, "longer": 1}
    assert (found["target"], found["pending"], found["is_complete"]) == ("orders", 4, True)
    assert found["next"][0]["schedule_id"] == "s"
    lines = barnabas("delayed", "list", intake, "-n", "1", "-p", "0").out.splitlines()
    assert lines[0] == "2 records pending, for orders"
    assert lines[3].split() == ["a", "day", "2"]
    assert lines[5].split() == ["PARTITION", "OFFSET", "DUE", "KEY", "SCHEDULE-ID"]
    assert lines[6].split()[:2] == ["0", "1"] and lines[6].split()[3:] == ["c", "-"]
    assert len(lines) == 7


def test_what_was_delivered_is_not_pending(broker: Broker, barnabas: Any, intake: str) -> None:
    send(broker, intake, (0, b"late", 1, None), (0, b"old", -1, None))
    eventually(lambda: pending(barnabas, intake) == [(0, 0, "late")])
    done = barnabas("delayed", "cancel", intake, "0", "1")
    assert done.status == 1 and "no record at offset 1 of partition 0 is pending" in done.err


def test_a_record_is_cancelled_by_its_offset(broker: Broker, barnabas: Any, intake: str) -> None:
    send(broker, intake, (1, b"a", 1, None), (1, b"b", 2, None))
    done = barnabas("delayed", "cancel", intake, "1", "0")
    assert done.status == 0 and done.out.startswith("cancelled partition 1 offset 0, which was due at 20")
    assert pending(barnabas, intake) == [(1, 1, "b")]
    again = barnabas("delayed", "cancel", intake, "1", "0")
    assert again.status == 1 and "is pending" in again.err
    assert not broker.records("orders", committed=True) or all(
        each.key not in (b"a", b"b") for each in broker.records("orders", committed=True)
    )


def test_records_are_cancelled_by_their_schedule_id(broker: Broker, barnabas: Any, intake: str) -> None:
    send(broker, intake, (0, b"a", 1, b"s"), (1, b"b", 2, b"s"), (1, b"c", 3, b"t"), (0, b"a", 4, b"s"))
    done = barnabas("delayed", "cancel", intake, "--schedule-id", "s", "--json")
    assert [(row["partition"], row["offset"], row["was_due"]) for row in done.json] == [(1, 0, False), (0, 1, False)]
    assert pending(barnabas, intake) == [(1, 1, "c")]
    done = barnabas("delayed", "cancel", intake, "0", "--schedule-id", "t")
    assert done.status == 1 and "no record with the schedule id t is pending" in done.err


def test_a_compacted_intake_takes_a_cancellation(broker: Broker, barnabas: Any) -> None:
    broker.create_topic("compacted", 1, {"delay.target.topic": "orders", "cleanup.policy": "compact"})
    send(broker, "compacted", (0, b"a", 1, None))
    assert barnabas("delayed", "cancel", "compacted", "0", "0").status == 0
    assert pending(barnabas, "compacted") == []


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        ("list orders", 1, "orders is no intake of delayed messages"),
        ("list nowhere", 1, "nowhere"),
        ("list INTAKE -p 7", 1, "has no partition 7: it has 2 partitions"),
        ("list INTAKE -n -1", 2, "expected 0 or more"),
        ("cancel INTAKE", 2, "give PARTITION and OFFSET"),
        ("cancel INTAKE 0", 2, "give PARTITION and OFFSET"),
        ("cancel INTAKE 0 1 --schedule-id s", 2, "give PARTITION and OFFSET"),
        ("cancel INTAKE zero 1", 2, "zero"),
        ("cancel orders 0 1", 1, "orders is no intake"),
    ],
)
def test_what_cannot_be(barnabas: Any, intake: str, words: str, status: int, said: str) -> None:
    done = barnabas("delayed", *words.replace("INTAKE", intake).split())
    assert (done.status, said in done.err) == (status, True), done.err
