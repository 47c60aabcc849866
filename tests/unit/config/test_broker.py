import pytest

from barnabas.config.broker import BrokerConfig, no_effect
from barnabas.config.faults import ConfigFaults
from barnabas.config.listeners import Listener

STOCK = {
    "process.roles": "broker,controller",
    "node.id": "1",
    "controller.quorum.bootstrap.servers": "localhost:9093",
    "listeners": "PLAINTEXT://:9092,CONTROLLER://:9093",
    "inter.broker.listener.name": "PLAINTEXT",
    "advertised.listeners": "PLAINTEXT://localhost:9092,CONTROLLER://localhost:9093",
    "controller.listener.names": "CONTROLLER",
    "listener.security.protocol.map": "CONTROLLER:PLAINTEXT,PLAINTEXT:PLAINTEXT,SSL:SSL",
    "log.dirs": "/tmp/kraft-combined-logs",
    "num.partitions": "1",
}


def faults_of(given: dict[str, str]) -> list[str]:
    with pytest.raises(ConfigFaults) as raised:
        BrokerConfig.parse(given)
    return list(raised.value.faults)


def test_the_file_that_kafka_ships_is_taken() -> None:
    config = BrokerConfig.parse(STOCK)
    assert config.bound_listeners() == (Listener("PLAINTEXT", "", 9092),)
    assert config.published_listeners() == (Listener("PLAINTEXT", "localhost", 9092),)
    assert (config.node_id, config.broker_id) == (1, 1)
    assert config.log_directories == ("/tmp/kraft-combined-logs",)


def test_every_fault_is_reported_at_once() -> None:
    faults = faults_of(
        {
            "num.partition": "3",
            "num.partitions": "0",
            "log.retention.hours": "a week",
            "listeners": "SSL://:9093",
            "authorizer.class.name": "org.example.Authorizer",
            "node.id": "4",
            "broker.id": "3",
        }
    )
    assert len(faults) == 6
    assert "num.partition: unknown setting, did you mean num.partitions?" in faults
    assert any(fault.startswith("num.partitions: '0' is not allowed") for fault in faults)
    assert any("SSL" in fault for fault in faults)


def test_the_value_of_a_secret_is_not_in_a_fault() -> None:
    faults = faults_of({"listener.name.x.ssl.client.auth": "hunter2", "sasl.jass.config": "hunter2"})
    assert len(faults) == 2
    assert "sasl.jass.config: unknown setting, did you mean sasl.jaas.config?" in faults
    assert "hunter2" not in faults[1]


@pytest.mark.parametrize(
    ("given", "part"),
    [
        ({"listeners": "PLAINTEXT://0.0.0.0:9092"}, "clients cannot reach 0.0.0.0"),
        ({"listeners": "FOO://:9092"}, "not in listener.security.protocol.map"),
        ({"listeners": "PLAINTEXT://:99999"}, "is not NAME://host:port"),
        ({"listeners": ""}, "at least one listener"),
        ({"advertised.listeners": "OTHER://h:1"}, "OTHER is not in listener.security.protocol.map"),
        ({"listener.security.protocol.map": "A:B"}, "is not NAME:PROTOCOL"),
        ({"inter.broker.listener.name": "SSL"}, "SSL is not advertised"),
        ({"queued.max.request.bytes": "1000"}, "queued.max.request.bytes"),
        ({"max.connections.per.ip": "0"}, "max.connections.per.ip may be 0 only"),
        ({"max.connections.per.ip.overrides": "host"}, "is not host:count"),
        ({"log.retention.ms": "0"}, "log.retention.ms must be"),
        ({"log.roll.ms": "0"}, "log.roll.ms must be at least 1"),
        ({"log.dirs": " , "}, "at least one log directory"),
        ({"log.dirs": "a,a"}, "listed twice"),
        ({"log.cleaner.dedupe.buffer.size": "1048576"}, "log.cleaner.dedupe.buffer.size"),
        ({"log.cleaner.min.compaction.lag.ms": "9", "log.cleaner.max.compaction.lag.ms": "8"}, "is greater than"),
        ({"default.replication.factor": "0"}, "default.replication.factor"),
        ({"group.consumer.migration.policy": "sometimes"}, "must be one of"),
    ],
)
def test_contradictions(given: dict[str, str], part: str) -> None:
    faults = faults_of(given)
    assert len(faults) == 1
    assert part in faults[0]


def test_broker_id_stands_for_node_id() -> None:
    assert BrokerConfig.parse({"broker.id": "7"}).node_id == 7
    assert BrokerConfig.parse({"node.id": "7"}).broker_id == 7
    assert BrokerConfig.parse({}).node_id == 0


def test_settings_of_listeners_and_plugins_are_taken_by_pattern() -> None:
    given = {
        "listener.name.internal.num.network.threads": "10",
        "listener.name.internal.scram-sha-256.sasl.enabled.mechanisms": "x",
        "rsm.config.bucket": "b",
        "config.providers": "file",
    }
    BrokerConfig.parse(given)
    assert [line.partition(":")[0] for line in no_effect(given)] == sorted(given)
    assert faults_of({"listener.name.internal.max.connections": "many"})


def test_what_has_no_effect_is_named_with_its_reason() -> None:
    assert no_effect({"num.partitions": "3", "num.io.threads": "8"}) == [
        "num.io.threads: one event loop serves sockets and requests"
    ]


def test_overrides_per_address() -> None:
    config = BrokerConfig.parse({"max.connections.per.ip.overrides": "localhost:5, [::1]:7 ,10.0.0.1:0"})
    assert config.connection_overrides() == {"localhost": 5, "::1": 7, "10.0.0.1": 0}
