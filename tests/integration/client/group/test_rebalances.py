"""Members come, go, freeze and return: who reads what, what listeners are called with, what may be committed."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from barnabas_members import OurMember, is_shared, poll_until, poll_until_shared
from confluent import make_topic, produce_all
from confluent_kafka.admin import AdminClient, NewPartitions
from eventually import eventually

from barnabas.client.consumer.group import MemberSubscription
from barnabas.client.consumer.offsets import OffsetAndMetadata, SubscriptionPattern
from barnabas.client.errors import CommitFailedError, FencedError
from barnabas.types import TopicPartition

Join = Callable[..., OurMember]
PROTOCOLS: dict[str, dict[str, Any]] = {
    "range": {"partition_assignment_strategy": ["range"]},
    "roundrobin": {"partition_assignment_strategy": ["roundrobin"]},
    "sticky": {"partition_assignment_strategy": ["sticky"]},
    "cooperative": {"partition_assignment_strategy": ["cooperative-sticky"]},
    "default": {},
    "kip848": {"group_protocol": "consumer"},
}
every_protocol = pytest.mark.parametrize("options", PROTOCOLS.values(), ids=PROTOCOLS.keys())
without_stopping = pytest.mark.parametrize(
    "options", [PROTOCOLS["cooperative"], PROTOCOLS["kip848"]], ids=["cooperative", "kip848"]
)
both = pytest.mark.parametrize("options", [PROTOCOLS["range"], PROTOCOLS["kip848"]], ids=["classic", "kip848"])


@every_protocol
def test_partitions_are_shared_and_taken_over(join: Join, topic: str, options: dict[str, Any]) -> None:
    members = [join(**options), join(**options)]
    poll_until_shared(members, topic, 4)
    members.append(join(**options))
    poll_until_shared(members, topic, 4)
    members.pop(0).close()
    poll_until_shared(members, topic, 4)
    members.pop().close()
    poll_until_shared(members, topic, 4)
    assert not any(member.diary.of("lost") for member in members)


@without_stopping
def test_only_what_moves_is_given_up(join: Join, topic: str, options: dict[str, Any]) -> None:
    first = join(**options)
    poll_until_shared([first], topic, 4)
    second = join(**options)
    poll_until_shared([first, second], topic, 4)
    kept = {number for _, number in first.partitions}
    assert sorted(first.diary.of("assigned")) == [0, 1, 2, 3]
    assert set(first.diary.of("revoked")) == {0, 1, 2, 3} - kept
    assert sorted(second.diary.of("assigned")) == sorted({0, 1, 2, 3} - kept)


@both
def test_offsets_are_committed_before_partitions_move(
    bootstrap: str, join: Join, topic: str, options: dict[str, Any]
) -> None:
    produce_all(bootstrap, topic, [b"%d" % number for number in range(200)])
    first = join(**options, enable_auto_commit=True, auto_commit_interval_ms=100_000)
    poll_until([first], lambda: len(first.records) == 200)
    second = join(**options, enable_auto_commit=True)
    poll_until_shared([first, second], topic, 4)
    for _ in range(5):
        first.poll(0.05), second.poll(0.05)
    assert len(first.records) == 200 and not second.records


@both
def test_who_does_not_poll_leaves_and_comes_back(
    join: Join, topic: str, options: dict[str, Any], caplog: pytest.LogCaptureFixture
) -> None:
    first = join(**options, max_poll_interval_ms=700)
    poll_until_shared([first], topic, 4)
    second = join(**options)
    poll_until_shared([first, second], topic, 4)
    mine = min(first.partitions)
    poll_until([second], lambda: is_shared([second], topic, 4))
    with pytest.raises(CommitFailedError, match=r"max\.poll\.interval\.ms"):
        first.consumer.commit({TopicPartition(*mine): OffsetAndMetadata(1)})
    assert "poll was not called" in caplog.text
    poll_until_shared([first, second], topic, 4)
    assert mine[1] in first.diary.of("lost")


def test_a_static_member_comes_back_without_a_rebalance(join: Join, topic: str) -> None:
    static = join(group_instance_id="a")
    other = join(group_instance_id="b")
    poll_until_shared([static, other], topic, 4)
    generation, partitions = other.generation, static.partitions
    static.close()
    again = join(group_instance_id="a")
    poll_until_shared([again, other], topic, 4)
    assert again.partitions == partitions and other.generation == generation


def test_a_static_member_comes_back_in_the_new_protocol(join: Join, topic: str) -> None:
    options = PROTOCOLS["kip848"]
    static, other = join(**options, group_instance_id="a"), join(**options, group_instance_id="b")
    poll_until_shared([static, other], topic, 4)
    partitions = static.partitions
    static.close()
    again = join(**options, group_instance_id="a")
    poll_until_shared([again, other], topic, 4)
    assert again.partitions == partitions and not other.diary.of("revoked")[2:]


def test_of_two_static_members_with_one_name_the_older_is_fenced(join: Join, topic: str) -> None:
    older = join(group_instance_id="a")
    poll_until_shared([older], topic, 4)
    newer = join(group_instance_id="a")
    poll_until_shared([newer], topic, 4)
    with pytest.raises(FencedError, match=r"group.instance.id of its own"):
        poll_until([older], lambda: False, timeout=10)
    assert sorted(older.diary.of("lost")) == [0, 1, 2, 3]


def test_in_the_new_protocol_the_second_is_refused(join: Join, topic: str) -> None:
    options = PROTOCOLS["kip848"] | {"group_instance_id": "a"}
    older = join(**options)
    poll_until_shared([older], topic, 4)
    newer = join(**options)
    with pytest.raises(Exception, match="UNRELEASED_INSTANCE_ID"):
        poll_until([older, newer], lambda: False, timeout=10)
    assert len(older.partitions) == 4


@both
def test_new_partitions_are_found(join: Join, judge: AdminClient, topic: str, options: dict[str, Any]) -> None:
    members = [join(**options, metadata_max_age_ms=300), join(**options, metadata_max_age_ms=300)]
    poll_until_shared(members, topic, 4)
    for done in judge.create_partitions([NewPartitions(topic, 6)]).values():
        done.result(10)
    poll_until_shared(members, topic, 6)


@pytest.mark.parametrize("options", [PROTOCOLS["cooperative"], PROTOCOLS["kip848"]], ids=["classic", "kip848"])
def test_topics_that_match_a_pattern_are_found(
    join: Join, judge: AdminClient, name: str, options: dict[str, Any]
) -> None:
    make_topic(judge, f"{name}.a", partitions=1)
    make_topic(judge, f"other.{name}.a", partitions=1)
    member = join(re.compile(re.escape(name) + r"\..*"), **options, metadata_max_age_ms=300)
    poll_until([member], lambda: member.partitions == {(f"{name}.a", 0)})
    make_topic(judge, f"{name}.b", partitions=1)
    poll_until([member], lambda: member.partitions == {(f"{name}.a", 0), (f"{name}.b", 0)})
    assert not member.diary.of("lost")
    assert member.consumer.subscription() == {f"{name}.a", f"{name}.b"}


def test_the_coordinator_matches_a_pattern_of_its_own(join: Join, judge: AdminClient, name: str) -> None:
    make_topic(judge, f"{name}.a", partitions=1)
    pattern = SubscriptionPattern(re.escape(name).replace(r"\-", "-") + r"\..*")
    member = join(pattern, group_protocol="consumer")
    poll_until([member], lambda: member.partitions == {(f"{name}.a", 0)})


@both
def test_a_topic_that_does_not_exist_yet(join: Join, judge: AdminClient, name: str, options: dict[str, Any]) -> None:
    member = join(**options, allow_auto_create_topics=False)
    poll_until([member], lambda: member.diary.entries == [("assigned", [])])
    make_topic(judge, name, partitions=4)
    poll_until_shared([member], name, 4)


@both
def test_the_subscription_changes(join: Join, judge: AdminClient, topic: str, options: dict[str, Any]) -> None:
    other = make_topic(judge, f"{topic}.other", partitions=2)
    member = join(**options)
    poll_until_shared([member], topic, 4)
    member.consumer.subscribe([other], listener=member.diary)
    poll_until_shared([member], other, 2)
    member.consumer.unsubscribe()
    assert not member.partitions and not member.diary.of("lost")


class EverythingToOne:
    """To the member with the largest user data."""

    name = "everything-to-one"

    def __init__(self, weight: bytes) -> None:
        self.weight = weight

    def subscription_user_data(self, topics: frozenset[str]) -> bytes:
        return self.weight

    def assign(
        self, partition_counts: Mapping[str, int], members: Mapping[str, MemberSubscription]
    ) -> dict[str, list[TopicPartition]]:
        heaviest = max(members, key=lambda member_id: members[member_id].user_data or b"")
        return {heaviest: [TopicPartition(topic, n) for topic, count in partition_counts.items() for n in range(count)]}


def test_an_assignor_of_the_user(join: Join, topic: str) -> None:
    light = join(partition_assignment_strategy=[EverythingToOne(b"1"), "range"])
    heavy = join(partition_assignment_strategy=[EverythingToOne(b"2"), "range"])
    poll_until([light, heavy], lambda: len(heavy.partitions) == 4 and not light.partitions)
    ordinary = join(partition_assignment_strategy=["range"])
    poll_until_shared([light, heavy, ordinary], topic, 4)


def test_members_that_have_no_assignor_in_common(join: Join, topic: str) -> None:
    first = join(partition_assignment_strategy=["range"])
    poll_until_shared([first], topic, 4)
    second = join(partition_assignment_strategy=["roundrobin"])
    with pytest.raises(Exception, match=r"INCONSISTENT_GROUP_PROTOCOL.*partition_assignment_strategy"):
        poll_until([first, second], lambda: False, timeout=10)
    assert len(first.partitions) == 4


@pytest.mark.parametrize("strategy", ["range", "cooperative-sticky"])
def test_a_group_changes_over_to_the_new_protocol_and_back(join: Join, topic: str, strategy: str) -> None:
    """Member by member, without a stop: the coordinator speaks to each in its own protocol."""
    classic = [join(partition_assignment_strategy=[strategy]) for _ in range(2)]
    poll_until_shared(classic, topic, 4)
    modern = join(group_protocol="consumer")
    poll_until_shared([*classic, modern], topic, 4)
    classic[0].close()
    left = [classic[1], modern]
    # Who is behind the group when it changes over has a generation that the classic group never had, and begins again.
    poll_until(left, lambda: is_shared(left, topic, 4) and classic[1].generation == modern.generation)
    modern.close()
    poll_until_shared([classic[1]], topic, 4)
    assert not classic[1].diary.of("lost")


def test_a_rebalance_on_demand(join: Join, topic: str) -> None:
    members = [join(), join()]
    poll_until_shared(members, topic, 4)
    generation = members[0].generation
    members[0].consumer.enforce_rebalance("just because")
    poll_until(members, lambda: all(member.generation > generation for member in members))
    poll_until_shared(members, topic, 4)


def test_rebalances_are_reported_in_words(join: Join, topic: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", "barnabas.client.consumer.group")
    member = join(partition_assignment_strategy=["range"])
    poll_until_shared([member], topic, 4)
    name = f"group {topic} (member-0)"
    assert f"{name}: joins for {topic}" in caplog.text
    assert f"{name}: in generation 1 as leader (members: 1), partitions are assigned by range" in caplog.text
    everything = ", ".join(f"{topic}-{number}" for number in range(4))
    # Told by the client's own thread, which may be a little later than poll.
    taken = f"{name}: generation 1: takes over {everything}; reads {everything} from now on"
    eventually(lambda: caplog.text, lambda text: taken in text)
    member.close()
    assert f"{name}: leaves: the consumer is being closed" in caplog.text
