"""Rack-aware assignment (KIP-881): as near as the balance allows, and all that holds without racks still does."""

from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.assignors import (
    AssignorMember,
    assign_cooperative_sticky,
    assign_range,
    assign_sticky,
)
from barnabas.machines.assignors.broker import assign_broker_range, assign_uniform
from barnabas.machines.assignors.locality import positive_cycles
from barnabas.machines.assignors.racks import racks_matter
from barnabas.types import TopicPartition

Members = dict[str, AssignorMember[str]]
RackMap = dict[str, list[frozenset[str]]]
Group = tuple[dict[str, int], Members, RackMap]
TOPICS = ["t0", "t1", "t2"]
RACKS = ["a", "b", "c"]
EVERYWHERE = frozenset(RACKS)


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool = False, owning: bool = True) -> Group:
    counts = {topic: draw(st.integers(0, 4)) for topic in TOPICS}
    racks = {
        topic: [draw(st.frozensets(st.sampled_from(RACKS), max_size=2)) for _ in range(count)]
        for topic, count in counts.items()
    }
    subscription = st.lists(st.sampled_from(TOPICS), unique=True)
    shared = draw(subscription)
    members: Members = {}
    for number in range(draw(st.integers(1, 6))):
        topics = shared if same_topics else draw(subscription)
        members[f"m{number}"] = AssignorMember(
            topics, rack=draw(st.sampled_from([*RACKS, "elsewhere", "", None])), generation=1
        )
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in members}
    for topic in TOPICS:
        for partition in range(4 if owning else 0):
            owner = draw(st.sampled_from([*members, None]))
            if owner is not None:
                owned[owner].append(TopicPartition(topic, partition))
    return counts, {m: replace(member, owned=owned[m]) for m, member in members.items()}, racks


def owners(assigned: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    found: dict[TopicPartition, str] = {}
    for member_id, partitions in assigned.items():
        for partition in partitions:
            assert found.setdefault(partition, member_id) == member_id, f"{partition} has two owners"
    assert len(found) == sum(map(len, assigned.values()))
    return found


def check_complete(group: Group, assigned: Mapping[str, list[TopicPartition]]) -> None:
    counts, members, _ = group
    assert assigned.keys() == members.keys()
    subscribed = {topic for member in members.values() for topic in member.topics}
    assert owners(assigned).keys() == {TopicPartition(t, p) for t in subscribed for p in range(counts[t])}
    for partition, owner in owners(assigned).items():
        assert partition.topic in members[owner].topics


def is_far(group: Group, member_id: str, partition: TopicPartition) -> bool:
    _, members, racks = group
    rack = members[member_id].rack
    return bool(rack) and rack not in racks[partition.topic][partition.partition]


def far_count(group: Group, assigned: Mapping[str, list[TopicPartition]]) -> int:
    return sum(is_far(group, owner, partition) for partition, owner in owners(assigned).items())


def matters(group: Group) -> bool:
    _, members, racks = group
    subscribed = {topic for member in members.values() for topic in member.topics}
    return racks_matter(
        [member.rack for member in members.values()], [each for topic in subscribed for each in racks[topic]]
    )


def least_far_count(group: Group) -> int:
    """By another way, where all members have the same topics: how many partitions find a near place at once.

    Each member has `quota` places; `remainder` members have one more. A maximum flow from partitions to places, found
    one partition at a time: places are (member, number), the last place of a member costs one of the remainder.
    """
    counts, members, _ = group
    topics = next(iter(members.values())).topics
    partitions = [TopicPartition(topic, number) for topic in topics for number in range(counts[topic])]
    quota, remainder = divmod(len(partitions), len(members))
    edges: dict[object, dict[object, int]] = {}

    def connect(source: object, target: object, capacity: int) -> None:
        edges.setdefault(source, {})[target] = capacity
        edges.setdefault(target, {}).setdefault(source, 0)

    connect("extra", "sink", remainder)
    for member_id in members:
        connect(member_id, "sink", quota)
        connect(member_id, "extra", 1)
    for partition in partitions:
        connect("source", partition, 1)
        for member_id in members:
            if not is_far(group, member_id, partition):
                connect(partition, member_id, 1)

    def push(node: object, seen: set[object]) -> bool:
        if node == "sink":
            return True
        seen.add(node)
        for target, capacity in edges.get(node, {}).items():
            if capacity and target not in seen and push(target, seen):
                edges[node][target] -= 1
                edges[target][node] += 1
                return True
        return False

    near = 0
    while push("source", set()):
        near += 1
    return len(partitions) - near


@given(group=groups(same_topics=True))
@settings(max_examples=40, deadline=None)
def test_sticky_is_as_near_as_the_balance_allows(group: Group) -> None:
    counts, members, racks = group
    assigned = assign_sticky(counts, members, racks)
    check_complete(group, assigned)
    loads = [len(partitions) for partitions in assigned.values()]
    assert max(loads) - min(loads) <= 1
    if matters(group):
        assert far_count(group, assigned) == least_far_count(group)
    else:
        assert assigned == assign_sticky(counts, members)


@given(group=groups())
@settings(max_examples=40, deadline=None)
def test_sticky_with_racks_keeps_the_loads(group: Group) -> None:
    """And so the balance, whatever the members have subscribed to; never is it farther than without racks."""
    counts, members, racks = group
    assigned, without = assign_sticky(counts, members, racks), assign_sticky(counts, members)
    check_complete(group, assigned)
    assert sorted(map(len, assigned.values())) == sorted(map(len, without.values()))
    assert far_count(group, assigned) <= far_count(group, without)
    loads = {member_id: len(partitions) for member_id, partitions in assigned.items()}
    for partition, owner in owners(assigned).items():
        for other, member in members.items():
            assert partition.topic not in member.topics or loads[owner] <= loads[other] + 1


@given(group=groups())
@settings(max_examples=40, deadline=None)
def test_no_two_members_could_swap_to_be_nearer(group: Group) -> None:
    counts, members, racks = group
    if not matters(group):
        return
    found = owners(assign_sticky(counts, members, racks))
    for one, its_owner in found.items():
        for other, other_owner in found.items():
            if other.topic in members[its_owner].topics and one.topic in members[other_owner].topics:
                now = is_far(group, its_owner, one) + is_far(group, other_owner, other)
                assert now <= is_far(group, its_owner, other) + is_far(group, other_owner, one)


@given(group=groups())
@settings(max_examples=40, deadline=None)
def test_nothing_moves_that_is_near_and_balanced(group: Group) -> None:
    counts, members, racks = group
    once = assign_sticky(counts, members, racks)
    again = {member_id: replace(member, owned=once[member_id]) for member_id, member in members.items()}
    assert assign_sticky(counts, again, racks) == once


def test_an_exchange_leaves_no_move_that_would_even_out() -> None:
    """Found by the test above: after the exchange m2 or m3 could have given a partition to m1, m4 or m5."""
    counts = {"t0": 1, "t1": 2, "t2": 4}
    racks = {"t0": [frozenset[str]()], "t1": [frozenset[str]()] * 2, "t2": [frozenset[str]()] * 4}
    racks["t2"][1] = frozenset("a")
    topics = [["t2"], ["t1"], TOPICS, TOPICS, ["t0"], ["t0", "t2"]]
    members = {
        f"m{number}": AssignorMember(each, rack="a" if number else "b", generation=1)
        for number, each in enumerate(topics)
    }
    members["m0"] = replace(members["m0"], owned=[TopicPartition("t2", number) for number in range(4)])
    once = assign_sticky(counts, members, racks)
    again = {member_id: replace(member, owned=once[member_id]) for member_id, member in members.items()}
    assert assign_sticky(counts, again, racks) == once


@given(group=groups())
@settings(max_examples=40, deadline=None)
def test_cooperative_sticky_gives_nothing_that_another_still_holds(group: Group) -> None:
    counts, members, racks = group
    for generation in range(2, 8):
        assigned = assign_cooperative_sticky(counts, members, racks)
        held = {partition: member_id for member_id, member in members.items() for partition in member.owned}
        for partition, owner in owners(assigned).items():
            assert held.get(partition, owner) == owner
        if assigned == assign_sticky(counts, members, racks):
            break
        members = {m: replace(each, owned=assigned[m], generation=generation) for m, each in members.items()}
    check_complete((counts, members, racks), assigned)


def test_few_partitions_move_for_the_racks() -> None:
    """Two readers on the wrong sides swap; the third, and what is near already, stays where it is."""
    racks = {"t": [frozenset("a"), frozenset("b"), frozenset("c"), frozenset("a"), frozenset("b"), frozenset("c")]}
    p = [TopicPartition("t", number) for number in range(6)]
    members = {
        "x": AssignorMember(["t"], rack="a", owned=[p[0], p[1]], generation=1),
        "y": AssignorMember(["t"], rack="b", owned=[p[3], p[4]], generation=1),
        "z": AssignorMember(["t"], rack="c", owned=[p[2], p[5]], generation=1),
    }
    assert assign_sticky({"t": 6}, members, racks) == {"x": [p[0], p[3]], "y": [p[1], p[4]], "z": [p[2], p[5]]}
    assert assign_cooperative_sticky({"t": 6}, members, racks) == {"x": [p[0]], "y": [p[4]], "z": [p[2], p[5]]}


def test_what_nobody_had_moves_rather_than_what_somebody_has() -> None:
    near_both = frozenset("ab")
    p = [TopicPartition("t", number) for number in range(4)]
    members = {
        "x": AssignorMember(["t"], rack="a", owned=[p[1]], generation=1),
        "y": AssignorMember(["t"], rack="b", owned=[p[0]], generation=1),
    }
    assigned = assign_sticky({"t": 4}, members, {"t": [frozenset("a"), near_both, near_both, near_both]})
    assert assigned == {"x": [p[0], p[1]], "y": [p[2], p[3]]}


@given(group=groups(owning=False))
@settings(max_examples=40, deadline=None)
def test_range_stays_even_and_co_partitioned(group: Group) -> None:
    counts, members, racks = group
    assigned = assign_range(counts, members, racks)
    check_complete(group, assigned)
    found = owners(assigned)
    subscribers = {t: frozenset(m for m in members if t in members[m].topics) for t in TOPICS}
    for topic in TOPICS:
        loads = [sum(each.topic == topic for each in assigned[m]) for m in subscribers[topic]]
        assert not loads or max(loads) - min(loads) <= 1
        for other in TOPICS:
            if counts[topic] == counts[other] and subscribers[topic] == subscribers[other] and subscribers[topic]:
                for number in range(counts[topic]):
                    assert found[TopicPartition(topic, number)] == found[TopicPartition(other, number)]
    assert all(partitions == sorted(partitions) for partitions in assigned.values())


def test_range_matches_racks_first() -> None:
    members = {name: AssignorMember(["t"], rack=rack) for name, rack in (("m1", "a"), ("m2", "b"), ("m3", "c"))}
    racks = {"t": [frozenset("c"), frozenset("b"), frozenset("a"), frozenset("a"), frozenset("b"), frozenset("c")]}
    assigned = assign_range({"t": 6}, members, racks)
    assert {m: [each.partition for each in given] for m, given in assigned.items()} == {
        "m1": [2, 3],
        "m2": [1, 4],
        "m3": [0, 5],
    }


def test_range_prefers_co_partitioning_to_racks() -> None:
    members = {"m1": AssignorMember(["t", "u"], rack="a"), "m2": AssignorMember(["t", "u"], rack="b")}
    crossed = {"t": [frozenset("b"), frozenset("a")], "u": [frozenset("a"), frozenset("b")]}
    assigned = assign_range({"t": 2, "u": 2}, members, crossed)
    assert assigned["m1"] == [TopicPartition("t", 0), TopicPartition("u", 0)]
    alike = {topic: [frozenset("b"), frozenset("a")] for topic in "tu"}
    assigned = assign_range({"t": 2, "u": 2}, members, alike)
    assert assigned["m1"] == [TopicPartition("t", 1), TopicPartition("u", 1)]


@pytest.mark.parametrize("everywhere", [{}, {"t0": [EVERYWHERE] * 6}, {"t0": [frozenset("z")] * 6}])
@given(group=groups())
@settings(max_examples=30, deadline=None)
def test_without_racks_that_matter_nothing_changes(everywhere: RackMap, group: Group) -> None:
    counts, members, _ = group
    counts = {"t0": counts["t0"]}
    for assign in (assign_range, assign_sticky, assign_cooperative_sticky):
        assert assign(counts, members, everywhere) == assign(counts, members)
    homeless = {member_id: replace(member, rack=None) for member_id, member in members.items()}
    racks = {"t0": [frozenset("ab"[number % 2]) for number in range(6)]}
    for assign in (assign_range, assign_sticky, assign_cooperative_sticky):
        assert assign(counts, homeless, racks) == assign(counts, homeless)


def test_the_broker_s_assignors_take_racks_too() -> None:
    topic = b"x" * 16
    members = {"m1": AssignorMember([topic], rack="a"), "m2": AssignorMember([topic], rack="b")}
    racks = {topic: [frozenset("b"), frozenset("b"), frozenset("a"), frozenset("a")]}
    near = {"m1": {topic: frozenset({2, 3})}, "m2": {topic: frozenset({0, 1})}}
    assert assign_uniform({topic: 4}, members, racks) == near
    assert assign_broker_range({topic: 4}, members, racks) == near
    assert assign_broker_range({topic: 4}, members) == {
        "m1": {topic: frozenset({0, 1})},
        "m2": {topic: frozenset({2, 3})},
    }


def test_cycles() -> None:
    assert positive_cycles({}, 3) == []
    assert positive_cycles({(0, 1): 1, (1, 0): -1}, 2) == []
    (found,) = positive_cycles({(0, 1): -1, (1, 2): 1, (2, 0): 1, (2, 1): -1}, 3)
    assert sorted(found) == [(0, 1), (1, 2), (2, 0)]
    both = positive_cycles({(0, 1): 1, (1, 0): 0, (2, 3): 0, (3, 2): 1, (4, 0): 5}, 5)
    assert sorted(map(sorted, both)) == [[(0, 1), (1, 0)], [(2, 3), (3, 2)]]


@pytest.mark.parametrize(("member_count", "topics_each", "most_far"), [(3, 20, 400), (200, 20, 0), (200, 15, 0)])
def test_large_groups(member_count: int, topics_each: int, most_far: int) -> None:
    """2,000 partitions of two replicas each, over six racks; with fewer topics each there are sixty kinds of member."""
    counts = {f"t{number:02}": 100 for number in range(20)}
    pairs = [frozenset({f"r{one}", f"r{other}"}) for one in range(6) for other in range(one)]
    racks = {topic: [pairs[(place * 7 + number) % 15] for number in range(100)] for place, topic in enumerate(counts)}
    topics = [*counts, *counts]
    members: Members = {
        f"m{number:03}": AssignorMember(topics[number % 20 : number % 20 + topics_each], rack=f"r{number % 6}")
        for number in range(member_count)
    }
    found = owners(assign_sticky(counts, members, racks))
    far = [each for each, owner in found.items() if members[owner].rack not in racks[each.topic][each.partition]]
    assert len(found) == 2000
    assert len(far) <= most_far
