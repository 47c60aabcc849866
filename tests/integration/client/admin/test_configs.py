"""Settings through the admin client, seen again by librdkafka."""

from __future__ import annotations

import pytest
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin import ConfigResource as JudgesResource
from eventually import eventually

from barnabas import Admin, ErrorCode, KafkaError
from barnabas.client.admin import AdminError
from barnabas.client.admin.types import ConfigChange, ConfigResource, ConfigResourceType, ConfigSource, ConfigType


def test_single_settings_change_and_the_rest_stays(admin: Admin, judge: AdminClient, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    admin.alter_config(resource, {"retention.ms": 1000, "preallocate": True, "max.message.bytes": 5000})
    admin.alter_config(resource, append={"cleanup.policy": "compact"}, delete=["max.message.bytes"])

    def seen() -> dict[str, str]:
        theirs = JudgesResource("topic", topic)
        return {name: entry.value for name, entry in judge.describe_configs([theirs])[theirs].result(10).items()}

    wanted = {"retention.ms": "1000", "preallocate": "true", "cleanup.policy": "delete,compact"}
    config = eventually(seen, lambda config: wanted.items() <= config.items())
    assert config["max.message.bytes"] == "1048588"
    admin.alter_config(resource, subtract={"cleanup.policy": "delete"})
    eventually(seen, lambda config: config["cleanup.policy"] == "compact")


def test_described_settings(admin: Admin, judge: AdminClient, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    admin.alter_config(resource, {"retention.ms": 1000})
    config = eventually(
        lambda: admin.describe_config(resource, include_synonyms=True, include_documentation=True),
        lambda config: not config["retention.ms"].is_default,
    )
    entry = config["retention.ms"]
    assert (entry.value, entry.source, entry.type) == ("1000", ConfigSource.DYNAMIC_TOPIC_CONFIG, ConfigType.LONG)
    assert not entry.is_read_only and not entry.is_sensitive
    assert entry.documentation
    assert entry.synonyms[0].name == "retention.ms"
    assert config["segment.bytes"].is_default
    few = admin.describe_config(resource, names=["retention.ms", "segment.bytes"])
    assert set(few) == {"retention.ms", "segment.bytes"}
    assert few["retention.ms"].documentation is None and few["retention.ms"].synonyms == ()
    theirs = JudgesResource("topic", topic)
    assert set(config) == set(judge.describe_configs([theirs])[theirs].result(10))


def test_checked_only_and_refused(admin: Admin, topic: str) -> None:
    resource = ConfigResource.topic(topic)
    admin.alter_config(resource, {"retention.ms": 1000}, validate_only=True)
    assert admin.describe_config(resource, names=["retention.ms"])["retention.ms"].is_default
    with pytest.raises(KafkaError, match=topic) as raised:
        admin.alter_config(resource, {"retention.ms": "soon"}, validate_only=True)
    assert raised.value.code is ErrorCode.INVALID_CONFIG


def test_several_resources(admin: Admin, topic: str) -> None:
    good, bad = ConfigResource.topic(topic), ConfigResource.topic("missing")
    with pytest.raises(AdminError) as raised:
        admin.alter_configs({good: ConfigChange(set={"retention.ms": 7}), bad: ConfigChange(set={"retention.ms": 7})})
    assert set(raised.value.results) == {good}
    assert raised.value.errors[bad].code is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    eventually(lambda: admin.describe_config(good)["retention.ms"].value == "7")
    with pytest.raises(AdminError) as raised:
        admin.describe_configs([good, bad])
    assert raised.value.results[good]["retention.ms"].value == "7"


def test_settings_of_a_broker(admin: Admin) -> None:
    broker = admin.describe_cluster().brokers[0].node.id
    one, all_brokers = ConfigResource.broker(broker), ConfigResource.broker()
    assert admin.describe_config(one)["num.partitions"].value == "1"
    admin.alter_config(all_brokers, {"log.cleaner.threads": 2})
    changed = eventually(
        lambda: admin.describe_config(one, names=["log.cleaner.threads"])["log.cleaner.threads"],
        lambda entry: entry.value == "2",
    )
    assert changed.source is ConfigSource.DYNAMIC_DEFAULT_BROKER_CONFIG
    admin.alter_config(all_brokers, delete=["log.cleaner.threads"])
    with pytest.raises(KafkaError, match="no broker 99") as raised:
        admin.describe_config(ConfigResource.broker(99))
    assert raised.value.code is ErrorCode.BROKER_ID_NOT_REGISTERED


def test_settings_of_a_group_and_resources(admin: Admin, topic: str) -> None:
    group = ConfigResource.group(topic)
    admin.alter_config(group, {"consumer.session.timeout.ms": 50000})
    config = eventually(
        lambda: admin.describe_config(group), lambda config: config["consumer.session.timeout.ms"].value == "50000"
    )
    assert config["consumer.session.timeout.ms"].source is ConfigSource.DYNAMIC_GROUP_CONFIG
    everything = admin.list_config_resources()
    assert group in everything and ConfigResource.topic(topic) in everything
    assert admin.list_config_resources([ConfigResourceType.CLIENT_METRICS]) == []
