"""librdkafka's admin client (confluent-kafka): topics, partitions, settings, offsets, the cluster, and its refusals."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

import pytest
from confluent import make_topic, produce_all, read_partition
from confluent_kafka import (
    OFFSET_BEGINNING,
    IsolationLevel,
    KafkaError,
    KafkaException,
    TopicCollection,
    TopicPartition,
)
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    ConfigSource,
    NewPartitions,
    NewTopic,
    OffsetSpec,
    ResourceType,
)
from eventually import eventually


def error_code(call: Callable[[], dict[Any, Future[Any]]]) -> int:
    """The code with which the broker refused."""
    (future,) = call().values()
    with pytest.raises(KafkaException) as failure:
        future.result(30)
    code: int = failure.value.args[0].code()
    return code


def configs_of(admin: AdminClient, resource: ConfigResource) -> dict[str, ConfigEntry]:
    described: dict[str, ConfigEntry] = admin.describe_configs([resource])[resource].result(30)
    return described


def test_create_list_describe_delete(admin: AdminClient, new_name: str) -> None:
    make_topic(admin, new_name, 3)
    listed = admin.list_topics(timeout=10).topics[new_name]
    assert sorted(listed.partitions) == [0, 1, 2]
    described = admin.describe_topics(TopicCollection([new_name]))[new_name].result(30)
    assert described.name == new_name and not described.is_internal
    assert described.topic_id.get_most_significant_bits() != 0
    leader = described.partitions[0].leader
    assert [node.id for node in described.partitions[0].replicas] == [leader.id]
    assert [node.id for node in described.partitions[0].isr] == [leader.id]
    admin.delete_topics([new_name])[new_name].result(30)
    eventually(lambda: new_name not in admin.list_topics(timeout=10).topics)


def test_a_topic_created_again_is_empty_and_has_a_new_id(bootstrap: str, admin: AdminClient, topic: str) -> None:
    first_id = admin.describe_topics(TopicCollection([topic]))[topic].result(30).topic_id
    produce_all(bootstrap, topic, [b"old"])
    admin.delete_topics([topic])[topic].result(30)
    make_topic(admin, topic)
    second = eventually(lambda: admin.describe_topics(TopicCollection([topic]))[topic].result(30))
    assert second.topic_id != first_id
    assert produce_all(bootstrap, topic, [b"new"]) == [0]
    assert read_partition(bootstrap, topic, 1)[0].value() == b"new"


def test_validate_only_creates_nothing(admin: AdminClient, new_name: str) -> None:
    admin.create_topics([NewTopic(new_name, 1, 1)], validate_only=True)[new_name].result(30)
    assert new_name not in admin.list_topics(timeout=10).topics


def test_explicit_assignment(admin: AdminClient, new_name: str) -> None:
    broker = next(iter(admin.list_topics(timeout=10).brokers))
    admin.create_topics([NewTopic(new_name, 2, replica_assignment=[[broker], [broker]])])[new_name].result(30)
    eventually(lambda: len(admin.list_topics(timeout=10).topics[new_name].partitions) == 2)


@pytest.mark.parametrize(
    ("changes", "code"),
    [
        ({"topic": "bad name!"}, KafkaError.TOPIC_EXCEPTION),
        ({"topic": ".."}, KafkaError.TOPIC_EXCEPTION),
        ({"topic": "x" * 250}, KafkaError.TOPIC_EXCEPTION),
        ({"num_partitions": 0}, KafkaError.INVALID_PARTITIONS),
        ({"replication_factor": 7}, KafkaError.INVALID_REPLICATION_FACTOR),
        ({"config": {"no.such.setting": "1"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"retention.ms": "soon"}}, KafkaError.INVALID_CONFIG),
        ({"config": {"cleanup.policy": "burn"}}, KafkaError.INVALID_CONFIG),
    ],
    ids=["bad-name", "dots", "long-name", "no-partitions", "replicas", "unknown-config", "bad-number", "bad-policy"],
)
def test_refused_topics(admin: AdminClient, new_name: str, changes: dict[str, Any], code: int) -> None:
    wanted = {"topic": new_name, "num_partitions": 1, "replication_factor": 1} | changes
    assert error_code(lambda: admin.create_topics([NewTopic(**wanted)])) == code
    assert wanted["topic"] not in admin.list_topics(timeout=10).topics


def test_existing_and_unknown_topics(admin: AdminClient, topic: str) -> None:
    assert error_code(lambda: admin.create_topics([NewTopic(topic, 1, 1)])) == KafkaError.TOPIC_ALREADY_EXISTS
    unknown = topic + ".unknown"
    assert error_code(lambda: admin.delete_topics([unknown])) == KafkaError.UNKNOWN_TOPIC_OR_PART
    assert error_code(lambda: admin.describe_topics(TopicCollection([unknown]))) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_add_partitions(bootstrap: str, admin: AdminClient, topic: str) -> None:
    admin.create_partitions([NewPartitions(topic, 4)], validate_only=True)[topic].result(30)
    admin.create_partitions([NewPartitions(topic, 4)])[topic].result(30)
    assert produce_all(bootstrap, topic, [b"there"], partition=3) == [0]
    assert error_code(lambda: admin.create_partitions([NewPartitions(topic, 2)])) == KafkaError.INVALID_PARTITIONS


def test_delete_records_moves_the_beginning(bootstrap: str, admin: AdminClient, topic: str) -> None:
    produce_all(bootstrap, topic, [b"%d" % number for number in range(10)])
    partition = TopicPartition(topic, 0, 4)
    assert admin.delete_records([partition])[partition].result(30).low_watermark == 4
    assert read_partition(bootstrap, topic, 1, offset=OFFSET_BEGINNING)[0].value() == b"4"
    beyond = TopicPartition(topic, 0, 99)
    assert error_code(lambda: admin.delete_records([beyond])) == KafkaError.OFFSET_OUT_OF_RANGE


@pytest.mark.parametrize("isolation", [IsolationLevel.READ_UNCOMMITTED, IsolationLevel.READ_COMMITTED])
def test_list_offsets(bootstrap: str, admin: AdminClient, topic: str, isolation: IsolationLevel) -> None:
    produce_all(bootstrap, topic, [b"%d" % number for number in range(10)])
    partition = TopicPartition(topic, 0)

    def offset(spec: OffsetSpec) -> int:
        future = admin.list_offsets({partition: spec}, isolation_level=isolation)[partition]
        found: int = future.result(30).offset
        return found

    assert offset(OffsetSpec.earliest()) == 0
    assert offset(OffsetSpec.latest()) == 10
    assert 0 <= offset(OffsetSpec.max_timestamp()) <= 9
    assert offset(OffsetSpec.for_timestamp(0)) == 0
    assert offset(OffsetSpec.for_timestamp(4_000_000_000_000)) == -1


def test_topic_settings_are_described_with_their_source(admin: AdminClient, new_name: str) -> None:
    make_topic(admin, new_name, config={"retention.ms": "1234567"})
    entries = configs_of(admin, ConfigResource(ResourceType.TOPIC, new_name))
    assert (entries["retention.ms"].value, entries["retention.ms"].source) == (
        "1234567",
        ConfigSource.DYNAMIC_TOPIC_CONFIG.value,
    )
    assert not entries["retention.ms"].is_default
    assert entries["segment.bytes"].value == "1073741824" and entries["segment.bytes"].is_default
    assert "retention.ms" in entries["retention.ms"].synonyms


def test_incremental_alter_sets_appends_subtracts_and_deletes(admin: AdminClient, topic: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, topic)

    def alter(name: str, value: str | None, operation: AlterConfigOpType) -> None:
        entry = ConfigEntry(name, value, incremental_operation=operation)
        change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
        admin.incremental_alter_configs([change])[change].result(30)

    alter("retention.ms", "60000", AlterConfigOpType.SET)
    alter("cleanup.policy", "compact", AlterConfigOpType.APPEND)
    entries = eventually(lambda: configs_of(admin, resource), lambda seen: "compact" in seen["cleanup.policy"].value)
    assert entries["retention.ms"].value == "60000"
    assert set(entries["cleanup.policy"].value.split(",")) == {"delete", "compact"}
    alter("cleanup.policy", "delete", AlterConfigOpType.SUBTRACT)
    alter("retention.ms", None, AlterConfigOpType.DELETE)
    entries = eventually(lambda: configs_of(admin, resource), lambda seen: seen["retention.ms"].is_default)
    assert entries["cleanup.policy"].value == "compact"
    assert entries["retention.ms"].value == "604800000"


@pytest.mark.parametrize(("name", "value"), [("retention.ms", "soon"), ("no.such.setting", "1")])
def test_bad_settings_change_nothing(admin: AdminClient, topic: str, name: str, value: str) -> None:
    entry = ConfigEntry(name, value, incremental_operation=AlterConfigOpType.SET)
    change = ConfigResource(ResourceType.TOPIC, topic, incremental_configs=[entry])
    assert error_code(lambda: admin.incremental_alter_configs([change])) == KafkaError.INVALID_CONFIG
    assert configs_of(admin, ConfigResource(ResourceType.TOPIC, topic))["retention.ms"].is_default


def test_broker_settings_are_described(admin: AdminClient) -> None:
    broker = next(iter(admin.list_topics(timeout=10).brokers))
    entries = configs_of(admin, ConfigResource(ResourceType.BROKER, str(broker)))
    assert entries["message.max.bytes"].value == "1048588"
    assert entries["log.dirs"].is_read_only and not entries["message.max.bytes"].is_read_only


def test_settings_of_an_unknown_topic(admin: AdminClient, new_name: str) -> None:
    resource = ConfigResource(ResourceType.TOPIC, new_name)
    assert error_code(lambda: admin.describe_configs([resource])) == KafkaError.UNKNOWN_TOPIC_OR_PART


def test_cluster_is_described(bootstrap: str, admin: AdminClient) -> None:
    cluster = admin.describe_cluster().result(30)
    assert len(cluster.nodes) == 1 and cluster.controller.id == cluster.nodes[0].id
    assert f"{cluster.nodes[0].host}:{cluster.nodes[0].port}" == bootstrap
    assert cluster.cluster_id
