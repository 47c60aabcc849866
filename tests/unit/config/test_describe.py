import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.describe import (
    BrokerLayers,
    ConfigEntry,
    ConfigSource,
    ConfigSynonym,
    describe_broker,
    describe_broker_default,
    describe_group,
    describe_topic,
)
from barnabas.config.topic import TopicConfig


def entry(entries: list[ConfigEntry], name: str) -> ConfigEntry:
    (found,) = [entry for entry in entries if entry.name == name]
    return found


def layers(
    given: dict[str, str], default: dict[str, str] | None = None, own: dict[str, str] | None = None
) -> BrokerLayers:
    return BrokerLayers(BrokerConfig.parse(given), default or {}, own or {})


def test_a_topic_setting_lists_every_place_it_is_set_in() -> None:
    found = entry(
        describe_topic(
            layers({"message.max.bytes": "2"}, {"message.max.bytes": "3"}, {"message.max.bytes": "4"}),
            {"max.message.bytes": "5"},
        ),
        "max.message.bytes",
    )
    assert (found.value, found.source, found.is_default) == ("5", ConfigSource.TOPIC, False)
    assert found.synonyms == (
        ConfigSynonym("max.message.bytes", "5", ConfigSource.TOPIC),
        ConfigSynonym("message.max.bytes", "4", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("message.max.bytes", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER),
        ConfigSynonym("message.max.bytes", "2", ConfigSource.STATIC_BROKER),
        ConfigSynonym("message.max.bytes", "1048588", ConfigSource.DEFAULT),
    )
    assert found.type_code == 3


def test_a_synonym_by_another_name_counts_but_is_not_listed() -> None:
    found = entry(describe_topic(layers({"log.retention.hours": "2"}), {}), "retention.ms")
    assert (found.value, found.source, found.synonyms) == ("7200000", ConfigSource.DEFAULT, ())


def test_the_synonyms_of_a_broker_setting() -> None:
    found = entry(
        describe_broker(layers({"log.retention.hours": "2"}, own={"log.retention.ms": "9"})), "log.retention.ms"
    )
    assert (found.value, found.source) == ("9", ConfigSource.DYNAMIC_BROKER)
    assert found.synonyms == (
        ConfigSynonym("log.retention.ms", "9", ConfigSource.DYNAMIC_BROKER),
        ConfigSynonym("log.retention.hours", "2", ConfigSource.STATIC_BROKER),
        ConfigSynonym("log.retention.hours", "168", ConfigSource.DEFAULT),
    )


def test_internal_settings_show_only_when_set() -> None:
    names = [entry.name for entry in describe_topic(layers({}), {})]
    assert names == sorted(name for name, setting in TopicConfig.settings.items() if not setting.internal)
    found = entry(describe_topic(layers({}), {"internal.segment.bytes": "99"}), "internal.segment.bytes")
    assert found.value == "99"


@pytest.mark.parametrize("name", ["ssl.key.password", "listener.name.a.ssl.key.password", "rsm.config.key"])
def test_secrets_and_unknown_names_are_never_shown(name: str) -> None:
    entries = describe_broker(layers({name: "hunter2"}))
    found = entry(entries, name)
    assert found.sensitive
    assert found.source is ConfigSource.STATIC_BROKER
    assert "hunter2" not in repr(entries)


def test_a_broker_started_in_code_says_so_too() -> None:
    found = entry(describe_broker(BrokerLayers(BrokerConfig(num_partitions=3))), "num.partitions")
    assert (found.value, found.source, found.read_only) == ("3", ConfigSource.STATIC_BROKER, True)


def test_layers_over_a_changed_config_still_tell_start_from_change() -> None:
    changed = layers({}, {"message.max.bytes": "3"}).effective()
    found = entry(describe_broker(BrokerLayers(changed, {"message.max.bytes": "3"})), "message.max.bytes")
    assert [synonym.source for synonym in found.synonyms] == [ConfigSource.DYNAMIC_DEFAULT_BROKER, ConfigSource.DEFAULT]
    assert not found.read_only


def test_the_clusters_default_shows_only_what_was_set() -> None:
    (found,) = describe_broker_default(layers({"message.max.bytes": "2"}, {"message.max.bytes": "3"}))
    assert (found.value, found.source) == ("3", ConfigSource.DYNAMIC_DEFAULT_BROKER)
    assert found.synonyms == (ConfigSynonym("message.max.bytes", "3", ConfigSource.DYNAMIC_DEFAULT_BROKER),)


def test_a_group() -> None:
    entries = describe_group(
        layers({"group.consumer.session.timeout.ms": "50000"}), {"consumer.heartbeat.interval.ms": "6000"}
    )
    assert entry(entries, "consumer.session.timeout.ms").value == "50000"
    found = entry(entries, "consumer.heartbeat.interval.ms")
    assert (found.value, found.source) == ("6000", ConfigSource.GROUP)


def test_documentation_says_when_there_is_no_effect() -> None:
    found = entry(describe_broker(layers({})), "num.io.threads")
    assert (
        found.documentation
        == "Number of threads that process requests. No effect here: one event loop serves sockets and requests."
    )


def test_a_limit_on_replication_is_shown() -> None:
    found = entry(
        describe_broker(layers({}, {}, {"leader.replication.throttled.rate": "1000"})),
        "leader.replication.throttled.rate",
    )
    assert (found.value, found.sensitive, found.source) == ("1000", False, ConfigSource.DYNAMIC_BROKER)
