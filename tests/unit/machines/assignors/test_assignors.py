"""Properties of all assignors: every partition of a subscribed topic has one owner, balanced, few moves."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from barnabas.machines.assignors import (
    AssignorMember,
    assign_cooperative_sticky,
    assign_range,
    assign_round_robin,
    assign_sticky,
)
from barnabas.machines.assignors.broker import assign_broker_range, assign_uniform
from barnabas.machines.assignors.sticky import believed_owners
from barnabas.types import TopicPartition

Members = dict[str, AssignorMember[str]]
TOPICS = [f"t{number}" for number in range(5)]
ASSIGNORS = [assign_range, assign_round_robin, assign_sticky]


@st.composite
def groups(draw: st.DrawFn, *, same_topics: bool = False, owning: bool = False) -> tuple[dict[str, int], Members]:
    """Topics with partition counts (some subscribed topics do not exist) and members that may own some of them."""
    counts = {topic: draw(st.integers(0, 7)) for topic in TOPICS if draw(st.booleans())}
    member_ids = [f"m{number}" for number in range(draw(st.integers(1, 7)))]
    subscription = st.lists(st.sampled_from(TOPICS), unique=True)
    shared = draw(subscription)
    topics_of = {member_id: shared if same_topics else draw(subscription) for member_id in member_ids}
    owned: dict[str, list[TopicPartition]] = {member_id: [] for member_id in member_ids}
    if owning:
        for topic in TOPICS:
            for partition in range(7):
                owner = draw(st.sampled_from([*member_ids, None]))
                if owner is not None:
                    owned[owner].append(TopicPartition(topic, partition))
    return counts, {m: AssignorMember(topics_of[m], owned=owned[m], generation=1) for m in member_ids}


def owners(assigned: Mapping[str, list[TopicPartition]]) -> dict[TopicPartition, str]:
    found: dict[TopicPartition, str] = {}
    for member_id, partitions in assigned.items():
        for partition in partitions:
            assert partition not in found, f"{partition} has two owners"
            found[partition] = member_id
    return found


def check_complete(counts: Mapping[str, int], members: Members, assigned: Mapping[str, list[TopicPartition]]) -> None:
    assert assigned.keys() == members.keys()
    for partition, owner in owners(assigned).items():
        assert partition.topic in members[owner].topics
    subscribed = {topic for member in members.values() for topic in member.topics}
    expected = {TopicPartition(t, p) for t in subscribed & counts.keys() for p in range(counts[t])}
    assert owners(assigned).keys() == expected


@pytest.mark.parametrize("assign", ASSIGNORS)
@given(group=groups(owning=True))
@settings(max_examples=30)
def test_every_partition_has_one_subscribed_owner(assign, group):  # type: ignore[no-untyped-def]
    counts, members = group
    check_complete(counts, members, assign(counts, members))


@given(group=groups(owning=True))
@settings(max_examples=60)
def test_sticky_is_balanced(group: tuple[dict[str, int], Members]) -> None:
    counts, members = group
    assigned = assign_sticky(counts, members)
    loads = {member_id: len(partitions) for member_id, partitions in assigned.items()}
    for partition, owner in owners(assigned).items():
        for other, member in members.items():
            if partition.topic in member.topics:
                assert loads[owner] <= loads[other] + 1


@given(group=groups(owning=True))
@settings(deadline=None)
def test_no_assignment_is_more_even(group: tuple[dict[str, int], Members]) -> None:
    """Against another way: partitions one by one, each by the path of moves that ends at the emptiest member."""
    counts, members = group
    loads = sorted(map(len, assign_sticky(counts, members).values()))
    assert loads == sorted(most_even_loads(counts, members))


def most_even_loads(counts: Mapping[str, int], members: Members) -> list[int]:
    holder: dict[TopicPartition, str] = {}
    loads = dict.fromkeys(members, 0)
    for partition in [TopicPartition(topic, number) for topic, count in counts.items() for number in range(count)]:
        # Member -> the partition it would receive, and from whom.
        reached: dict[str, tuple[TopicPartition, str | None]] = {
            m: (partition, None) for m, member in members.items() if partition.topic in member.topics
        }
        if not reached:
            continue
        for giver in (order := list(reached)):
            for held in [each for each, owner in holder.items() if owner == giver]:
                for m, member in members.items():
                    if m not in reached and held.topic in member.topics:
                        reached[m] = held, giver
                        order.append(m)
        taker: str | None = min(reached, key=loads.__getitem__)
        loads[taker] += 1
        while taker is not None:
            received, giver_or_none = reached[taker]
            holder[received] = taker
            taker = giver_or_none
    return list(loads.values())


def test_a_member_in_between_takes_one_and_gives_another() -> None:
    """No member could give a partition to one that has two fewer, and yet the loads are not even."""
    p, q = ([TopicPartition(topic, number) for number in range(2)] for topic in ("p", "q"))
    members = {
        "full": AssignorMember(["p"], owned=p, generation=1),
        "between": AssignorMember(["p", "q"], owned=q[:1], generation=1),
        "empty": AssignorMember(["q"], generation=1),
    }
    assert assign_sticky({"p": 2, "q": 1}, members) == {"full": p[:1], "between": p[1:], "empty": q[:1]}


@given(group=groups(owning=True))
@settings(max_examples=50)
def test_sticky_moves_nothing_that_is_balanced(group: tuple[dict[str, int], Members]) -> None:
    counts, members = group
    once = assign_sticky(counts, members)
    again = {member_id: replace(member, owned=once[member_id]) for member_id, member in members.items()}
    assert assign_sticky(counts, again) == once


@given(group=groups(owning=True, same_topics=True))
@settings(max_examples=60)
def test_sticky_keeps_as_much_as_can_be_kept(group: tuple[dict[str, int], Members]) -> None:
    counts, members = group
    assigned = assign_sticky(counts, members)
    existing = owners(assigned).keys()
    kept = sum(len(set(member.owned).intersection(assigned[member_id])) for member_id, member in members.items())
    quota, remainder = divmod(len(existing), len(members))
    owned = sorted((len(existing & set(member.owned)) for member in members.values()), reverse=True)
    best = sum(min(count, quota + (place < remainder)) for place, count in enumerate(owned))
    assert kept == best


@given(group=groups(owning=True), leaving=st.integers(0, 6))
@settings(max_examples=30)
def test_when_a_member_leaves_equal_members_keep_theirs(group: tuple[dict[str, int], Members], leaving: int) -> None:
    counts, members = group
    members = {member_id: replace(member, topics=TOPICS) for member_id, member in members.items()}
    before = assign_sticky(counts, members)
    left = sorted(members)[leaving % len(members)]
    staying = {m: replace(member, owned=before[m]) for m, member in members.items() if m != left}
    if staying:
        after = assign_sticky(counts, staying)
        assert all(set(before[member_id]) <= set(after[member_id]) for member_id in staying)


@given(group=groups(owning=True))
@settings(max_examples=50)
def test_cooperative_sticky_gives_nothing_that_another_still_holds(group: tuple[dict[str, int], Members]) -> None:
    """Each round is followed by another while something is left out, as consumers do."""
    counts, members = group
    for generation in range(2, 8):
        assigned = assign_cooperative_sticky(counts, members)
        held = {partition: member_id for member_id, member in members.items() for partition in member.owned}
        for partition, owner in owners(assigned).items():
            assert held.get(partition, owner) == owner
        if assigned == assign_sticky(counts, members):
            break
        members = {m: replace(each, owned=assigned[m], generation=generation) for m, each in members.items()}
    check_complete(counts, members, assigned)


def test_of_two_claims_the_later_generation_counts() -> None:
    both = [TopicPartition("t", 0)]
    members = {
        "a": AssignorMember(["t"], owned=both, generation=4),
        "b": AssignorMember(["t"], owned=both, generation=5),
    }
    assert assign_sticky({"t": 1}, members) == {"a": [], "b": both}
    swapped = {"a": replace(members["a"], generation=6), "b": members["b"]}
    assert assign_sticky({"t": 1}, swapped) == {"a": both, "b": []}


def test_equal_claims_cancel_out() -> None:
    both = [TopicPartition("t", 0)]
    members = {m: AssignorMember(["t"], owned=both, generation=5) for m in ("a", "b")}
    assert believed_owners(members) == {both[0]: None}
    third = {**members, "c": AssignorMember(["t"], owned=both, generation=6)}
    assert believed_owners(third) == {both[0]: "c"}


def test_range_gives_the_remainder_to_the_first_and_co_partitions() -> None:
    members: Members = {"b": AssignorMember(["x", "y"]), "a": AssignorMember(["x", "y"])}
    assigned = assign_range({"x": 3, "y": 3}, members)
    assert assigned["a"] == [
        TopicPartition("x", 0),
        TopicPartition("x", 1),
        TopicPartition("y", 0),
        TopicPartition("y", 1),
    ]
    assert assigned["b"] == [TopicPartition("x", 2), TopicPartition("y", 2)]


def test_static_members_come_first_by_instance_id() -> None:
    members: Members = {
        "a": AssignorMember(["x"]),
        "z": AssignorMember(["x"], instance_id="i1"),
        "y": AssignorMember(["x"], instance_id="i2"),
    }
    assigned = assign_range({"x": 3}, members)
    assert [assigned[m][0].partition for m in ("z", "y", "a")] == [0, 1, 2]
    assert assign_round_robin({"x": 1}, members)["z"] == [TopicPartition("x", 0)]


def test_round_robin_goes_round_over_topics() -> None:
    members: Members = {"a": AssignorMember(["x", "y"]), "b": AssignorMember(["x", "y"])}
    assigned = assign_round_robin({"x": 3, "y": 3}, members)
    assert assigned["a"] == [TopicPartition("x", 0), TopicPartition("x", 2), TopicPartition("y", 1)]


X, Y = b"x" * 16, b"y" * 16


def test_uniform_keeps_owners_and_evens_out() -> None:
    members = {
        "a": AssignorMember([X, Y], owned=[(X, 0), (X, 1), (Y, 0), (Y, 1)]),
        "b": AssignorMember([X, Y]),
    }
    assigned = assign_uniform({X: 2, Y: 2}, members)
    assert [sum(len(each) for each in assigned[m].values()) for m in "ab"] == [2, 2]
    moved = Counter(p for topic, partitions in assigned["b"].items() for p in [(topic, n) for n in partitions])
    assert set(moved) <= set(members["a"].owned)


def test_broker_range_is_by_topic_id() -> None:
    members = {"a": AssignorMember([X, Y]), "b": AssignorMember([X])}
    assigned = assign_broker_range({X: 3, Y: 1}, members)
    assert assigned == {"a": {X: frozenset({0, 1}), Y: frozenset({0})}, "b": {X: frozenset({2})}}


@pytest.mark.parametrize("topic_count", [1, 20, 2000])
def test_large_groups_end_balanced(topic_count: int) -> None:
    counts = {f"t{number:04}": 2000 // topic_count for number in range(topic_count)}
    first: Members = {"m000": AssignorMember(list(counts))}
    everything = assign_sticky(counts, first)["m000"]
    members = {f"m{number:03}": AssignorMember(list(counts)) for number in range(200)}
    members["m000"] = replace(members["m000"], owned=everything)
    assigned = assign_sticky(counts, members)
    assert {len(partitions) for partitions in assigned.values()} == {10}
    assert len(owners(assigned)) == 2000
