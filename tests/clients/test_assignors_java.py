"""Our assignors next to Kafka's own, over random groups with racks: range the same, sticky no farther and as even."""

from __future__ import annotations

import random
import subprocess
from collections.abc import Iterator
from itertools import chain

import pytest
from kafka_process import CLASS_PATH, ROOT, SHORT_TOOL_JVM

from barnabas.machines.assignors import AssignorMember, assign_range, assign_sticky
from barnabas.machines.assignors.racks import racks_matter
from barnabas.types import TopicPartition

pytestmark = pytest.mark.java
JUDGE = ROOT / "tests" / "foreign" / "java" / "Assignments.java"
GROUP_COUNT = 400
Members = dict[str, AssignorMember[str]]
RackMap = dict[str, list[frozenset[str]]]
Assigned = dict[str, list[TopicPartition]]


def random_group(chance: random.Random, *, same_topics: bool) -> tuple[RackMap, Members]:
    names = [f"t{number}" for number in range(chance.randint(1, 4))]
    racks = {
        name: [frozenset(chance.sample("abc", chance.randint(0, 2))) for _ in range(chance.choice([1, 3, 6, 6, 9]))]
        for name in names
    }
    members: Members = {}
    for number in range(chance.randint(1, 6)):
        topics = names if same_topics else chance.sample(names, chance.randint(1, len(names)))
        members[f"m{number}"] = AssignorMember(topics, rack=chance.choice(["a", "b", "c", "c", "elsewhere", None]))
    return racks, members


def theirs(groups: list[tuple[RackMap, Members]], assignor: str) -> Iterator[Assigned]:
    lines = []
    for racks, members in groups:
        lines += [f"topic {name} {';'.join(','.join(sorted(each)) or '-' for each in racks[name])}" for name in racks]
        lines += [f"member {name} {member.rack or '-'} {','.join(member.topics)}" for name, member in members.items()]
        lines.append(f"assign {assignor}")
    command = ["java", *SHORT_TOOL_JVM, "-cp", CLASS_PATH, str(JUDGE)]
    done = subprocess.run(command, input="\n".join(lines), capture_output=True, text=True, timeout=120, check=True)
    response: Assigned = {}
    for line in done.stdout.splitlines():
        if line == "end":
            yield response
            response = {}
            continue
        member_id, _, given = line.partition(" ")
        pairs = [each.split(":") for each in given.split(",") if each]
        response[member_id] = [TopicPartition(topic, int(number)) for topic, number in pairs]


def far_count(racks: RackMap, members: Members, assigned: Assigned) -> int:
    return sum(
        members[member_id].rack is not None and members[member_id].rack not in racks[topic][number]
        for member_id, partitions in assigned.items()
        for topic, number in partitions
    )


@pytest.fixture
def chance(request: pytest.FixtureRequest) -> random.Random:
    seed = random.randrange(1 << 32)
    print(f"seed {seed}")
    return random.Random(seed)


def test_range_is_the_same(chance: random.Random) -> None:
    groups = [random_group(chance, same_topics=chance.random() < 0.5) for _ in range(GROUP_COUNT)]
    for (racks, members), expected in zip(groups, theirs(groups, "range"), strict=True):
        counts = {topic: len(partitions) for topic, partitions in racks.items()}
        assert assign_range(counts, members, racks) == expected, (racks, members)


def test_sticky_is_as_even_and_no_farther(chance: random.Random) -> None:
    groups = [random_group(chance, same_topics=True) for _ in range(GROUP_COUNT)]
    nearer = 0
    for (racks, members), expected in zip(groups, theirs(groups, "cooperative-sticky"), strict=True):
        counts = {topic: len(partitions) for topic, partitions in racks.items()}
        assigned = assign_sticky(counts, members, racks)
        assert sorted(map(len, assigned.values())) == sorted(map(len, expected.values()))
        if not racks_matter([each.rack for each in members.values()], list(chain(*racks.values()))):
            continue  # then neither of the two looks at them
        ours, judged = far_count(racks, members, assigned), far_count(racks, members, expected)
        assert ours <= judged, (racks, members)
        nearer += judged - ours
    print(f"{nearer} partitions nearer than with Kafka's")
