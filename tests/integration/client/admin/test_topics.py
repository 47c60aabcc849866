"""Topics through the admin client, seen again by librdkafka."""

from __future__ import annotations

import pytest
from confluent_kafka import TopicCollection
from confluent_kafka.admin import AdminClient, ConfigResource
from eventually import eventually

import barnabas.client.admin.topics as topics_module
from barnabas import Admin, ErrorCode, KafkaError, UnknownTopicError
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import AclOperation, NewTopic


def test_a_new_topic_is_as_it_was_asked_for(admin: Admin, judge: AdminClient, new_name: str) -> None:
    made = admin.create_topic(new_name, 3, 1, {"retention.ms": 259200000, "cleanup.policy": ["compact", "delete"]})
    assert (made.name, made.partitions, made.replication_factor, made.existed) == (new_name, 3, 1, False)
    assert made.config is not None and made.config["retention.ms"].value == "259200000"
    seen = eventually(lambda: judge.describe_topics(TopicCollection([new_name]))[new_name].result(10))
    assert len(seen.partitions) == 3
    assert made.topic_id == _kafkas_spelling(seen.topic_id)
    resource = ConfigResource("topic", new_name)
    config = judge.describe_configs([resource])[resource].result(10)
    assert config["cleanup.policy"].value == "compact,delete"


def test_counts_left_out_are_the_brokers(admin: Admin, new_name: str) -> None:
    made = admin.create_topic(new_name)
    assert (made.partitions, made.replication_factor) == (1, 1)


def test_a_topic_by_assignment(admin: Admin, judge: AdminClient, new_name: str) -> None:
    broker = admin.describe_cluster().brokers[0].node.id
    admin.create_topic(new_name, assignments={0: [broker], 1: [broker]})
    eventually(lambda: judge.describe_topics(TopicCollection([new_name]))[new_name].result(10))
    described = admin.describe_topic(new_name)
    assert [each.replicas for each in described.partitions] == [(broker,), (broker,)]


def test_only_checked_is_not_made(admin: Admin, new_name: str) -> None:
    checked = admin.create_topic(new_name, 4, validate_only=True)
    assert checked.partitions == 4
    assert new_name not in admin.list_topics()


def test_a_topic_that_exists(admin: Admin, topic: str) -> None:
    with pytest.raises(KafkaError, match=f"{topic}.*if_not_exists") as raised:
        admin.create_topic(topic)
    assert raised.value.code is ErrorCode.TOPIC_ALREADY_EXISTS
    assert not raised.value.retriable
    assert admin.create_topic(topic, if_not_exists=True).existed


def test_what_succeeded_is_not_lost_among_failures(admin: Admin, topic: str, new_name: str) -> None:
    other, bad = f"{new_name}.other", "not a name"
    with pytest.raises(AdminError, match="and 1 more failed") as raised:
        admin.create_topics([NewTopic(name=topic), NewTopic(name=other, partitions=2), NewTopic(name=bad)])
    assert raised.value.results[other].partitions == 2
    assert {name: error.code for name, error in raised.value.errors.items()} == {
        topic: ErrorCode.TOPIC_ALREADY_EXISTS,
        bad: ErrorCode.INVALID_TOPIC_EXCEPTION,
    }
    assert raised.value.code is ErrorCode.TOPIC_ALREADY_EXISTS


def test_refusals_say_what_is_wrong(admin: Admin, new_name: str) -> None:
    with pytest.raises(KafkaError, match=new_name) as raised:
        admin.create_topic(new_name, replication_factor=99)
    assert raised.value.code is ErrorCode.INVALID_REPLICATION_FACTOR
    with pytest.raises(KafkaError) as raised:
        admin.create_topic(new_name, config={"retention.ms": "soon"})
    assert raised.value.code is ErrorCode.INVALID_CONFIG
    with pytest.raises(KafkaError) as raised:
        admin.create_topic(new_name, partitions=0)
    assert raised.value.code is ErrorCode.INVALID_PARTITIONS


def test_delete_by_name_and_by_id(admin: Admin, judge: AdminClient, new_name: str) -> None:
    names = [f"{new_name}.{number}" for number in range(3)]
    made = admin.create_topics(NewTopic(name=name) for name in names)
    admin.delete_topic(names[0])
    admin.delete_topic(topic_id=made[names[1]].topic_id)
    admin.delete_topics([names[2]])
    eventually(lambda: not set(names) & set(judge.list_topics(timeout=10).topics))
    with pytest.raises(UnknownTopicError, match=names[0]):
        admin.delete_topic(names[0])
    with pytest.raises(KafkaError) as raised:
        admin.delete_topic(topic_id=made[names[1]].topic_id)
    assert raised.value.code is ErrorCode.UNKNOWN_TOPIC_ID


def test_listed_topics(admin: Admin, topic: str) -> None:
    listed = admin.list_topics()[topic]
    assert (listed.partitions, listed.replication_factor, listed.is_internal) == (2, 1, False)
    admin.alter_group_offsets(topic, {(topic, 0): 0})  # makes __consumer_offsets
    everything = admin.list_topics(include_internal=True)
    assert everything["__consumer_offsets"].is_internal
    assert "__consumer_offsets" not in admin.list_topics()
    assert list(everything) == sorted(everything)


def test_described_topics(admin: Admin, judge: AdminClient, topic: str) -> None:
    described = admin.describe_topic(topic, include_authorized_operations=True)
    seen = judge.describe_topics(TopicCollection([topic]), include_authorized_operations=True)[topic].result(10)
    assert described.topic_id == _kafkas_spelling(seen.topic_id)
    assert described.replication_factor == 1
    for ours, theirs in zip(described.partitions, seen.partitions, strict=True):
        assert (ours.partition, ours.leader) == (theirs.id, theirs.leader.id)
        assert ours.replicas == tuple(node.id for node in theirs.replicas)
        assert ours.isr == tuple(node.id for node in theirs.isr)
        assert ours.leader_epoch is not None and not ours.is_under_replicated
    assert described.authorized_operations == {AclOperation[each.name] for each in seen.authorized_operations}
    assert admin.describe_topic(topic).authorized_operations is None
    assert admin.describe_topic(topic_id=described.topic_id).name == topic
    with pytest.raises(AdminError) as raised:
        admin.describe_topics([topic, "missing"])
    assert isinstance(raised.value.errors["missing"], UnknownTopicError)
    assert raised.value.results[topic].topic_id == described.topic_id


def test_pages_of_partitions(admin: Admin, new_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(topics_module, "PARTITIONS_PER_PAGE", 3)
    names = [f"{new_name}.{number}" for number in range(3)]
    admin.create_topics(NewTopic(name=name, partitions=4) for name in names)
    described = eventually(lambda: admin.describe_topics(names))
    assert {name: [each.partition for each in described[name].partitions] for name in names} == {
        name: [0, 1, 2, 3] for name in names
    }


def test_more_partitions(admin: Admin, judge: AdminClient, topic: str) -> None:
    admin.add_partitions(topic, 5, validate_only=True)
    assert len(admin.describe_topic(topic).partitions) == 2
    admin.add_partitions(topic, 3)
    broker = admin.describe_cluster().brokers[0].node.id
    admin.add_partitions(topic, 4, assignments=[[broker]])
    eventually(lambda: len(judge.list_topics(topic, timeout=10).topics[topic].partitions), lambda count: count == 4)
    with pytest.raises(KafkaError, match=topic) as raised:
        admin.add_partitions(topic, 2)
    assert raised.value.code is ErrorCode.INVALID_PARTITIONS


def test_wrong_use(admin: Admin) -> None:
    with pytest.raises(ValueError, match="name or a topic_id"):
        admin.delete_topic()
    with pytest.raises(ValueError, match="not a topic id"):
        admin.describe_topic(topic_id="short")
    with pytest.raises(ValueError, match="twice"):
        admin.create_topics([NewTopic(name="a"), NewTopic(name="a")])
    with pytest.raises(TypeError, match="integer"):
        admin.create_topic("a", partitions="3")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="cannot be None"):
        admin.create_topic("a", config={"retention.ms": None})


def test_one_name_is_not_taken_letter_by_letter(admin: Admin) -> None:
    for call in (
        admin.delete_topics,
        admin.describe_topics,
        admin.describe_groups,
        admin.delete_groups,
        admin.describe_transactions,
        admin.fence_producers,
        admin.describe_user_scram_credentials,
    ):
        with pytest.raises(TypeError, match=r"\['abc'\] instead of 'abc'"):
            call("abc")
    with pytest.raises(TypeError):
        admin.remove_members("g", "abc")
    with pytest.raises(TypeError):
        admin.list_groups(states="Stable")


def _kafkas_spelling(topic_id: object) -> str:
    """librdkafka writes the two letters of base64 that are not letters or digits in another way."""
    return str(topic_id).replace("+", "-").replace("/", "_")
