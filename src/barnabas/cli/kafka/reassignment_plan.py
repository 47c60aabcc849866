"""Plans of `kafka-reassign-partitions.sh`: their JSON, a proposal for brokers and racks, and the throttles they need.

No client here: what a cluster says comes in as arguments.
"""

from __future__ import annotations

import json
import random
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import Any, NamedTuple

from barnabas.cli.kafka.flags import integer
from barnabas.types import TopicPartition

ANY_LOG_DIR = "any"
Assignment = dict[TopicPartition, list[int]]


class Replica(NamedTuple):
    """In Kafka's order: by broker, then by partition."""

    broker: int
    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}-{self.broker}"


class Plan(NamedTuple):
    """Replicas of each partition, as the file has them; and the log directories of those that name one."""

    partitions: list[tuple[TopicPartition, list[int]]]
    log_dirs: dict[Replica, str]

    @property
    def topics(self) -> list[str]:
        return sorted({key.topic for key, _ in self.partitions})


def text_of(partition: TopicPartition) -> str:
    return f"{partition.topic}-{partition.partition}"


def plural(things: Sized) -> str:
    return "" if len(things) == 1 else "s"


def parse_plan(text: str) -> Plan:
    given = _versioned(text)
    partitions: list[tuple[TopicPartition, list[int]]] = []
    log_dirs: dict[Replica, str] = {}
    for row in given.get("partitions", ()):
        try:
            key = TopicPartition(row["topic"], integer(row["partition"]))
            replicas = [integer(each) for each in row["replicas"]]
            directories = list(row.get("log_dirs", [ANY_LOG_DIR] * len(replicas)))
        except (KeyError, TypeError) as error:
            raise ValueError(f"No such field exists: {error}") from None
        if len(replicas) != len(directories):
            raise ValueError(
                f"Size of replicas list {replicas} is different from size of log dirs list"
                f" [{', '.join(directories)}] for partition {text_of(key)}"
            )
        partitions.append((key, replicas))
        log_dirs |= {Replica(each, *key): path for each, path in zip(replicas, directories) if path != ANY_LOG_DIR}
    return Plan(partitions, log_dirs)


def check_plan(plan: Plan) -> None:
    """What may not be executed."""
    if not plan.partitions:
        raise ValueError("Partition reassignment list cannot be empty")
    if not all(replicas for _, replicas in plan.partitions):
        raise ValueError("Partition replica list cannot be empty")
    twice = _twice(key for key, _ in plan.partitions)
    if twice:
        raise ValueError(f"Partition reassignment contains duplicate topic partitions: {','.join(map(text_of, twice))}")
    wrong = [
        f"{text_of(key)} contains multiple entries for {','.join(map(str, _twice(replicas)))}"
        for key, replicas in plan.partitions
        if _twice(replicas)
    ]
    if wrong:
        raise ValueError(f"Partition replica lists may not contain duplicate entries: {'. '.join(wrong)}")


def parse_topics(text: str) -> list[str]:
    topics = [row["topic"] for row in _versioned(text).get("topics", ())]
    if _twice(topics):
        listed = ", ".join(_twice(topics))
        raise ValueError(f"List of topics to reassign contains duplicate entries: [{listed}]")
    return topics


def parse_brokers(text: str) -> list[int]:
    try:
        brokers = [integer(each) for each in text.split(",")]
    except ValueError:
        raise ValueError(f'For input string: "{text}"') from None
    if _twice(brokers):
        raise ValueError(f"Broker list contains duplicate entries: {_twice(brokers)}")
    return brokers


def _versioned(text: str) -> dict[str, Any]:
    try:
        given = json.loads(text)
    except ValueError:
        raise ValueError("The input string is not a valid JSON") from None
    if not isinstance(given, dict):
        raise ValueError("The input string is not a valid JSON")
    if given.get("version", 1) != 1:
        raise ValueError(f"Not supported version field value {given['version']}")
    return given


def _twice(values: Iterable[Any]) -> list[Any]:
    listed = list(values)
    return sorted({each for each in listed if listed.count(each) > 1})


def plan_json(assignment: Mapping[TopicPartition, Sequence[int]]) -> str:
    rows = [
        {
            "topic": key.topic,
            "partition": key.partition,
            "replicas": list(assignment[key]),
            "log_dirs": [ANY_LOG_DIR] * len(assignment[key]),
        }
        for key in sorted(assignment)
    ]
    return json.dumps({"version": 1, "partitions": rows}, separators=(",", ":"))


def propose(current: Mapping[TopicPartition, Sequence[int]], racks: Mapping[int, str | None]) -> Assignment:
    """Spread each topic over brokers (id -> rack), as evenly as can be, starting anywhere."""
    proposal: Assignment = {}
    for topic in sorted({key.topic for key in current}):
        keys = sorted(key for key in current if key.topic == topic)
        factor = len(current[keys[0]])
        if factor > len(racks):
            raise ValueError(f"Replication factor: {factor} larger than available brokers: {len(racks)}.")
        proposal |= dict(zip(keys, _spread(racks, len(keys), factor)))
    return proposal


def _spread(racks: Mapping[int, str | None], partitions: int, factor: int) -> list[list[int]]:
    """Replicas of a partition stand in as many racks as there are; without racks, every broker is its own."""
    rack_of = {broker: rack if rack is not None else str(broker) for broker, rack in racks.items()}
    brokers = _alternating(rack_of)
    rack_count, count = len(set(rack_of.values())), len(brokers)
    start, shift = random.randrange(count), random.randrange(count)
    spread = []
    for partition in range(partitions):
        if partition and partition % count == 0:
            shift += 1
        first = (partition + start) % count
        chosen = [brokers[first]]
        step = 0
        while len(chosen) < factor:
            broker = brokers[_index(first, shift * (rack_count if rack_count < count else 1), step, count)]
            step += 1
            used = {rack_of[each] for each in chosen}
            if broker not in chosen and (rack_of[broker] not in used or len(used) == rack_count):
                chosen.append(broker)
        spread.append(chosen)
    return spread


def _alternating(rack_of: Mapping[int, str]) -> list[int]:
    """One broker of each rack after the other."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(rack_of):
        by_rack.setdefault(rack_of[broker], []).append(broker)
    longest = max(map(len, by_rack.values()))
    return [by_rack[rack][turn] for turn in range(longest) for rack in sorted(by_rack) if turn < len(by_rack[rack])]


def _index(first: int, shift: int, step: int, count: int) -> int:
    return (first + 1 + (shift + step) % (count - 1)) % count
