from typing import NamedTuple

import pytest

from barnabas.config.broker import BrokerConfig
from barnabas.config.dynamic import (
    BROKER,
    CLIENT_METRICS,
    GROUP,
    TOPIC,
    ResourceRules,
    check_broker_change,
    effective_config,
)
from barnabas.config.faults import ConfigFaults
from barnabas.config.quotas import UNLIMITED, BrokerQuotas
from barnabas.errors import ErrorCode, KafkaError

STATIC = BrokerConfig.parse({"node.id": "1", "message.max.bytes": "2000", "log.retention.hours": "5"})


class Resource(NamedTuple):
    type: int
    name: str = "x"


def rules(default: dict[str, str] | None = None, own: dict[str, str] | None = None) -> ResourceRules:
    return ResourceRules(STATIC, lambda: (default or {}, own or {}))


def test_own_wins_over_default_over_start() -> None:
    assert effective_config(STATIC, {}, {}).message_max_bytes == 2000
    assert effective_config(STATIC, {"message.max.bytes": "3000"}, {}).message_max_bytes == 3000
    both = effective_config(STATIC, {"message.max.bytes": "3000"}, {"message.max.bytes": "4000"})
    assert both.message_max_bytes == 4000
    # Taking the settings away again leads back to the start, also from a config that was changed before.
    assert effective_config(both, {}, {}).message_max_bytes == 2000


def test_stored_settings_that_cannot_change_are_passed_over() -> None:
    assert effective_config(STATIC, {"node.id": "9", "some.plugin": "x"}, {}).node_id == 1


@pytest.mark.parametrize(
    ("changes", "per_broker", "part"),
    [
        ({"node.id": "2"}, True, "cannot be changed while"),
        ({"listeners": "PLAINTEXT://:1"}, True, "cannot be changed while"),
        ({"sasl.jaas.config": "x"}, False, "only for a single broker"),
        ({"ssl.keystore.location": "x"}, True, "only for one listener"),
        ({"listener.name.a.ssl.keystore.location": "x"}, False, "only for a single broker"),
        ({"listener.name.a.max.connections": "many"}, False, "max.connections: 'many'"),
        ({"max.connections": "-1"}, True, "must be at least 0"),
        ({"log.retention.ms": "0"}, False, "log.retention.ms must be"),
    ],
)
def test_refused_changes(changes: dict[str, str], per_broker: bool, part: str) -> None:
    layers = ({}, changes) if per_broker else (changes, {})
    with pytest.raises(ConfigFaults, match=part.replace(".", r"\.")):
        check_broker_change(STATIC, *layers, per_broker=per_broker)


def test_allowed_changes() -> None:
    check_broker_change(STATIC, {"log.retention.ms": "5", "listener.name.a.max.connections": "3"}, {}, per_broker=False)
    check_broker_change(STATIC, {}, {"max.connections": "3", "sasl.enabled.mechanisms": "PLAIN"}, per_broker=True)


@pytest.mark.parametrize(
    ("resource", "config", "code"),
    [
        (Resource(TOPIC), {"retention.ms": "x"}, ErrorCode.INVALID_CONFIG),
        (Resource(TOPIC), {"no.such": "x"}, ErrorCode.INVALID_CONFIG),
        (Resource(BROKER, "1"), {"node.id": "2"}, ErrorCode.INVALID_REQUEST),
        (Resource(BROKER, ""), {"sasl.jaas.config": "x"}, ErrorCode.INVALID_REQUEST),
        (Resource(GROUP), {"consumer.session.timeout.ms": "1"}, ErrorCode.INVALID_CONFIG),
        (Resource(CLIENT_METRICS), {"interval.ms": "99"}, ErrorCode.INVALID_REQUEST),
    ],
)
def test_codes_of_the_controllers_rules(resource: Resource, config: dict[str, str], code: ErrorCode) -> None:
    with pytest.raises(KafkaError) as raised:
        rules().check(resource, config)
    assert raised.value.code is code


def test_a_topic_is_checked_against_the_settings_as_they_are_now() -> None:
    rules().check(Resource(TOPIC), {"min.compaction.lag.ms": "50"})
    with pytest.raises(KafkaError):
        rules({"log.cleaner.max.compaction.lag.ms": "40"}).check(Resource(TOPIC), {"min.compaction.lag.ms": "50"})


def test_lists_and_where_appending_starts() -> None:
    assert rules().is_list(Resource(TOPIC), "cleanup.policy")
    assert not rules().is_list(Resource(TOPIC), "retention.ms")
    assert not rules().is_list(Resource(TOPIC), "no.such")
    assert rules().default(Resource(TOPIC), "cleanup.policy") == "delete"
    assert rules({"log.cleanup.policy": "compact"}).default(Resource(TOPIC), "cleanup.policy") == "compact"
    assert rules().default(Resource(BROKER), "log.cleanup.policy") == "delete"


@pytest.mark.parametrize("per_broker", [True, False])
def test_limits_on_replication_are_checked(per_broker: bool) -> None:
    for name in ("leader.replication.throttled.rate", "follower.replication.throttled.rate"):
        for text in ("-1", "fast", "1.5"):
            with pytest.raises(ConfigFaults, match=name):
                check_broker_change(STATIC, {name: text}, {name: text}, per_broker)
        check_broker_change(STATIC, {name: "0"}, {name: "1000"}, per_broker)


def test_limits_on_replication_come_from_the_broker_or_the_clusters_default() -> None:
    name = "leader.replication.throttled.rate"
    assert BrokerQuotas.resolve({}, {}).leader_replication_throttled_rate == UNLIMITED
    assert BrokerQuotas.resolve({name: "5"}, {}).leader_replication_throttled_rate == 5
    assert BrokerQuotas.resolve({name: "5"}, {name: "7"}).leader_replication_throttled_rate == 7


def test_limits_on_replication_are_not_for_the_brokers_file() -> None:
    with pytest.raises(ConfigFaults, match=r"leader\.replication\.throttled\.rate: unknown"):
        BrokerConfig.parse({"leader.replication.throttled.rate": "5"})
