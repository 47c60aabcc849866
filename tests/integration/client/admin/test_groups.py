"""Groups through the admin client, with members of librdkafka in them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from confluent_kafka import Consumer, ConsumerGroupTopicPartitions
from confluent_kafka.admin import AdminClient
from eventually import eventually

from barnabas import Admin, ErrorCode, KafkaError, TopicPartition
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import GroupState, GroupType, MemberToRemove, OffsetAndMetadata

Join = Callable[..., Consumer]


@pytest.fixture
def join(bootstrap: str) -> Iterator[Join]:
    """Members that have joined and got their partitions; they leave at the end."""
    members: list[Consumer] = []

    def start(group: str, topic: str, **settings: Any) -> Consumer:
        given = {"bootstrap.servers": bootstrap, "group.id": group, "auto.offset.reset": "earliest"}
        member = Consumer(given | {name.replace("_", "."): value for name, value in settings.items()})
        members.append(member)
        member.subscribe([topic])
        eventually(lambda: (member.poll(0.1), member.assignment())[1], timeout=30)
        return member

    yield start
    for member in members:
        member.close()


def test_a_classic_group(admin: Admin, judge: AdminClient, topic: str, join: Join) -> None:
    member = join(topic, topic, client_id="reader", partition_assignment_strategy="roundrobin")
    described = eventually(lambda: admin.describe_group(topic), lambda group: group.state is GroupState.STABLE)
    seen = judge.describe_consumer_groups([topic])[topic].result(10)
    assert (described.type, described.protocol_type, described.assignor) == (
        GroupType.CLASSIC,
        "consumer",
        "roundrobin",
    )
    assert described.coordinator.id == seen.coordinator.id
    (ours,), (theirs,) = described.members, seen.members
    assert (ours.member_id, ours.client_id, ours.host) == (theirs.member_id, "reader", theirs.host)
    assert ours.assignment == {(topic, 0), (topic, 1)} == {(each.topic, each.partition) for each in member.assignment()}
    assert ours.subscribed_topics == {topic}
    assert ours.target_assignment is None and ours.member_epoch is None
    assert described.authorized_operations is None
    assert admin.describe_group(topic, include_authorized_operations=True).authorized_operations


def test_a_group_of_the_consumer_protocol(admin: Admin, topic: str, join: Join) -> None:
    join(topic, topic, client_id="reader", group_protocol="consumer")
    described = eventually(lambda: admin.describe_group(topic), lambda group: group.state is GroupState.STABLE)
    assert (described.type, described.protocol_type, described.assignor) == (GroupType.CONSUMER, "consumer", "uniform")
    (member,) = described.members
    assert member.assignment == member.target_assignment == {(topic, 0), (topic, 1)}
    assert member.subscribed_topics == {topic} and member.client_id == "reader"
    assert member.member_epoch == described.group_epoch == described.target_assignment_epoch
    assert member.upgraded is True


def test_listed_groups(admin: Admin, topic: str, new_name: str, join: Join) -> None:
    simple, classic, consumer = (f"{new_name}.{kind}" for kind in ("simple", "classic", "consumer"))
    admin.alter_group_offsets(simple, {(topic, 0): 0})
    join(classic, topic)
    join(consumer, topic, group_protocol="consumer")
    mine = {simple, classic, consumer}

    def listed(**filters: Any) -> dict[str, tuple[str, Any, Any]]:
        found = admin.list_groups(**filters)
        return {each: (found[each].protocol_type, found[each].state, found[each].type) for each in mine & set(found)}

    everything = {
        simple: ("", GroupState.EMPTY, GroupType.CLASSIC),
        classic: ("consumer", GroupState.STABLE, GroupType.CLASSIC),
        consumer: ("consumer", GroupState.STABLE, GroupType.CONSUMER),
    }
    eventually(listed, lambda groups: groups == everything)
    assert set(listed(states=["Stable"])) == {classic, consumer}
    assert set(listed(types=[GroupType.CONSUMER])) == {consumer}
    assert set(listed(protocol_types=[""])) == {simple}
    assert admin.list_groups()[simple].is_simple_consumer_group
    assert admin.describe_group(simple).is_simple_consumer_group


def test_groups_that_are_not_there(admin: Admin, topic: str) -> None:
    admin.alter_group_offsets(topic, {(topic, 0): 1})
    with pytest.raises(KafkaError, match=r"missing.*list_groups shows") as raised:
        admin.describe_group("missing")
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND
    with pytest.raises(AdminError) as several:
        admin.describe_groups([topic, "missing"])
    assert set(several.value.results) == {topic} and set(several.value.errors) == {"missing"}
    with pytest.raises(KafkaError) as raised:
        admin.delete_group("missing")
    assert raised.value.code is ErrorCode.GROUP_ID_NOT_FOUND


def test_offsets_of_a_group(admin: Admin, judge: AdminClient, topic: str) -> None:
    admin.alter_group_offsets(topic, {(topic, 0): 5, (topic, 1): OffsetAndMetadata(7, "note", 0)})
    stored = {
        TopicPartition(topic, 0): OffsetAndMetadata(5),
        TopicPartition(topic, 1): OffsetAndMetadata(7, "note", 0),
    }
    assert admin.list_group_offsets(topic) == stored
    assert admin.list_group_offsets(topic, require_stable=True) == stored
    asked = admin.list_group_offsets(topic, [(topic, 1), (topic, 9)])
    assert asked == {(topic, 1): stored[TopicPartition(topic, 1)], (topic, 9): None}
    assert admin.list_groups_offsets({topic: None, "missing": None}) == {topic: stored, "missing": {}}
    theirs = judge.list_consumer_group_offsets([ConsumerGroupTopicPartitions(topic)])[topic].result(10)
    assert {(each.topic, each.partition, each.offset) for each in theirs.topic_partitions} == {
        (topic, 0, 5),
        (topic, 1, 7),
    }
    admin.delete_group_offsets(topic, [(topic, 0)])
    assert set(admin.list_group_offsets(topic)) == {(topic, 1)}
    admin.delete_group(topic)
    assert topic not in admin.list_groups()


def test_a_group_with_members_is_left_alone(admin: Admin, topic: str, join: Join) -> None:
    join(topic, topic)
    with pytest.raises(AdminError, match="has members: stop them first"):
        admin.alter_group_offsets(topic, {(topic, 0): 0})
    with pytest.raises(AdminError, match="stop the members that read the topic") as raised:
        admin.delete_group_offsets(topic, [(topic, 0)])
    assert raised.value.code is ErrorCode.GROUP_SUBSCRIBED_TO_TOPIC
    with pytest.raises(KafkaError, match="stop its members") as refused:
        admin.delete_group(topic)
    assert refused.value.code is ErrorCode.NON_EMPTY_GROUP


def test_members_are_removed(admin: Admin, bootstrap: str, topic: str, join: Join) -> None:
    static = join(topic, topic, group_instance_id="one")
    with pytest.raises(AdminError, match="left already"):
        admin.remove_members(topic, ["two"])
    admin.remove_members(topic, ["one"])
    eventually(lambda: admin.describe_group(topic).members == ())
    del static
    admin.remove_members(topic)
    with pytest.raises(AdminError, match="member gone"):
        admin.remove_members(topic, [MemberToRemove(member_id="gone")])


def test_all_members_are_removed(admin: Admin, topic: str, join: Join) -> None:
    join(topic, topic, group_instance_id="one")
    eventually(lambda: len(admin.describe_group(topic).members) == 1)
    admin.remove_members(topic)
    assert admin.describe_group(topic).members == ()
