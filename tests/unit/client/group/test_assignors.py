"""Assignors as a consumer offers them, and what the leader of a group makes of theirs and of users' own."""

from collections.abc import Mapping
from typing import Any

import pytest

from barnabas.client.consumer.group.actions import TopicView
from barnabas.client.consumer.group.assignors import Assignments, all_cooperative, make_assignors
from barnabas.client.consumer.group.leadership import Leadership
from barnabas.client.consumer.group.protocol import MemberAssignment, MemberSubscription, encode_subscription
from barnabas.client.errors import ConfigError, IllegalStateError
from barnabas.protocol.messages.join_group import JoinGroupResponse, JoinGroupResponseMember
from barnabas.types import TopicPartition

VIEW = TopicView({"t": 4})
T = [TopicPartition("t", number) for number in range(4)]


class Mine:
    """Everything to the first member, or what the test sets."""

    name = "mine"

    def __init__(self, given: Assignments | None = None, *, cooperative: bool = False) -> None:
        self.given = given
        self.cooperative = cooperative

    def subscription_user_data(self, topics: frozenset[str]) -> bytes | None:
        return b",".join(topic.encode() for topic in sorted(topics))

    def assign(self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]) -> Assignments:
        if self.given is not None:
            return self.given
        everything = [TopicPartition(topic, n) for topic, count in partition_counts.items() for n in range(count)]
        return {min(members): everything}


def lead(**members: MemberSubscription) -> Leadership:
    joined = [
        JoinGroupResponseMember(member_id=member_id, metadata=encode_subscription(subscription))
        for member_id, subscription in members.items()
    ]
    return Leadership(JoinGroupResponse(protocol_name="range", leader="a", member_id="a", members=joined))


def shares(assignments: Mapping[str, MemberAssignment]) -> dict[str, list[int]]:
    return {member_id: [each.partition for each in given.partitions] for member_id, given in assignments.items()}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("range", {"a": [0, 1], "b": [2, 3]}),
        ("roundrobin", {"a": [0, 2], "b": [1, 3]}),
        ("sticky", {"a": [0, 2], "b": [1, 3]}),
        ("cooperative-sticky", {"a": [0, 2], "b": [1, 3]}),
    ],
)
def test_built_in_assignors_by_name(name: str, expected: dict[str, list[int]]) -> None:
    (assignor,) = make_assignors((name,))
    leadership = lead(a=MemberSubscription(("t",)), b=MemberSubscription(("t", "gone")))
    given = leadership.assign(assignor, VIEW, cooperative=all_cooperative((assignor,)))
    assert shares(given) == expected
    assert leadership.has_missing_topics()


@pytest.mark.parametrize("name", ["range", "sticky", "cooperative-sticky"])
def test_built_in_assignors_look_at_racks(name: str) -> None:
    (assignor,) = make_assignors((name,))
    leadership = lead(a=MemberSubscription(("t",), rack="r1"), b=MemberSubscription(("t",), rack="r2"))
    view = TopicView({"t": 4}, racks={"t": [frozenset({rack}) for rack in ("r2", "r1", "r1", "r2")]})
    given = leadership.assign(assignor, view, cooperative=all_cooperative((assignor,)))
    assert shares(given) == {"a": [1, 2], "b": [0, 3]}


def test_sticky_tells_what_it_had_and_keeps_it() -> None:
    (assignor,) = make_assignors(("sticky",))
    assert assignor.subscription_user_data(frozenset({"t"})) is None
    assignor.on_assignment(MemberAssignment(tuple(T[1:])), 3)  # type: ignore[attr-defined]
    told = MemberSubscription(("t",), assignor.subscription_user_data(frozenset({"t"})))
    given = shares(lead(a=MemberSubscription(("t",)), b=told).assign(assignor, VIEW, cooperative=False))
    assert sorted(given["b"])[:1] in ([1], [2]) and len(given["b"]) == 2 and set(given["b"]) < {1, 2, 3}


def test_cooperative_sticky_leaves_out_what_is_still_owned() -> None:
    (assignor,) = make_assignors(("cooperative-sticky",))
    leadership = lead(a=MemberSubscription(("t",), None, tuple(T), 5), b=MemberSubscription(("t",)))
    given = shares(leadership.assign(assignor, VIEW, cooperative=True))
    assert len(given["a"]) == 2 and given["b"] == []


def test_the_generation_of_an_older_member_is_in_its_user_data() -> None:
    """v1 has owned partitions but no generation of its own; the later claim wins."""
    (assignor,) = make_assignors(("cooperative-sticky",))
    old = MemberSubscription(("t",), b"\0\0\0\2", tuple(T))
    new = MemberSubscription(("t",), b"\0\0\0\3", tuple(T))
    given = shares(lead(a=old, b=new).assign(assignor, VIEW, cooperative=True))
    assert given["a"] == [] and len(given["b"]) == 2


def test_an_assignor_of_the_user() -> None:
    (mine,) = make_assignors((Mine(),))
    leadership = lead(a=MemberSubscription(("t",)), b=MemberSubscription(("t",)))
    assert shares(leadership.assign(mine, VIEW, cooperative=False)) == {"a": [0, 1, 2, 3], "b": []}


@pytest.mark.parametrize(
    ("given", "complaint"),
    [
        ({"a": T, "b": T[:1]}, "gave t-0 to both a and b"),
        ({"a": T, "c": []}, "gave partitions to c"),
        ({"a": T[:2], "b": T[2:]}, "moved t-2, t-3 while the old owner still has it"),
    ],
)
def test_mistakes_of_an_assignor_are_found(given: dict[str, Any], complaint: str) -> None:
    leadership = lead(a=MemberSubscription(("t",), None, tuple(T), 1), b=MemberSubscription(("t",)))
    with pytest.raises(IllegalStateError, match=complaint):
        leadership.assign(Mine(given, cooperative=True), VIEW, cooperative=True)


def test_a_subscription_that_cannot_be_read_names_its_member() -> None:
    broken = JoinGroupResponseMember(member_id="go-client-1", metadata=b"\0")
    with pytest.raises(IllegalStateError, match="go-client-1"):
        Leadership(JoinGroupResponse(protocol_name="range", leader="a", member_id="a", members=[broken]))


def test_cooperative_only_if_all_are() -> None:
    assert not all_cooperative(make_assignors(("range", "cooperative-sticky")))
    assert all_cooperative(make_assignors(("cooperative-sticky", Mine(cooperative=True))))


def test_faults_of_the_strategy_are_named_together() -> None:
    with pytest.raises(ConfigError) as caught:
        make_assignors(("rang", "sticky", "sticky", 5))
    text = str(caught.value)
    assert "'rang'" in text and "'sticky' is given twice" in text and "5 is neither" in text
    with pytest.raises(ConfigError, match="at least one"):
        make_assignors(())


def test_what_the_leader_watches() -> None:
    leadership = lead(a=MemberSubscription(("t", "u")))
    leadership.see(VIEW)
    assert leadership.change_since(VIEW, is_fresh=True) is None
    assert leadership.change_since(TopicView({}), is_fresh=False) is None
    assert leadership.change_since(TopicView({}), is_fresh=True) == "topic t is gone"
    assert leadership.change_since(TopicView({"t": 5}), is_fresh=False) == "topic t has 5 partitions, had 4"
    assert leadership.change_since(TopicView({"t": 4, "u": 1}), is_fresh=False) == "topic u has 1 partitions"
