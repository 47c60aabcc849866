"""A broker with its metadata in a real etcd or ZooKeeper, chosen by option or by server.properties."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from barnabas_process import BarnabasProcess
from etcd_ensemble import EtcdEnsemble
from server_process import ServerFailed, free_port
from zookeeper_ensemble import ZooKeeperEnsemble

from barnabas import Admin, Consumer, Producer
from barnabas.cli.main import main
from barnabas.config.broker import BrokerConfig
from barnabas.metadata.registry import store_at
from barnabas.testing.network import BreakableNetwork
from barnabas.testing.server_thread import ServerThread

COUNT = 100


def produce_and_consume(bootstrap: str, topic: str) -> None:
    with Producer(bootstrap) as producer:
        for number in range(COUNT):
            producer.send(topic, b"%d" % number, key=b"%d" % number)
    seen: list[bytes | None] = []
    with Consumer(bootstrap, group_id="g", auto_offset_reset="earliest") as consumer:
        consumer.subscribe([topic])
        for batch in consumer.batches(timeout=120.0, stop_when_idle=True):
            seen += [record.value for record in batch]
            if len(seen) >= COUNT:
                break
    assert sorted(seen, key=str) == sorted((b"%d" % number for number in range(COUNT)), key=str)


def test_a_broker_on_etcd(etcd: EtcdEnsemble, tmp_path: Path) -> None:
    location = etcd.location("/smoke")
    broker = BarnabasProcess(tmp_path, "--metadata", location, settings={"num.partitions": "3"})
    with broker:
        produce_and_consume(broker.bootstrap, "orders")
        store = store_at(location)
        store.open()
        assert store.children("/brokers/ids") == ["1001"] and "orders" in store.children("/brokers/topics")
        broker.kill()
        broker.start()
        assert store.children("/brokers/ids") == ["1001"], "the id that was generated is kept"
        produce_and_consume(broker.bootstrap, "after-a-kill")
        broker.stop()
        assert store.children("/brokers/ids") == [] and store.get("/controller") is None
        store.close()
        broker.start()
        produce_and_consume(broker.bootstrap, "after-a-restart")


def test_a_broker_on_zookeeper_leaves_what_zkcli_users_know(zookeeper: ZooKeeperEnsemble, tmp_path: Path) -> None:
    from kazoo.client import KazooClient

    connect = f"{zookeeper.addresses}/kafka/one"
    broker = BarnabasProcess(tmp_path, settings={"num.partitions": "2", "zookeeper.connect": connect, "broker.id": "0"})
    with broker:
        produce_and_consume(broker.bootstrap, "orders")
        client = KazooClient(connect)
        client.start()
        client.sync("/")  # another node may be a moment behind

        def read(path: str) -> dict[str, object]:
            value: dict[str, object] = json.loads(client.get(path)[0])
            return value

        registered = read("/brokers/ids/0")
        assert registered["version"] == 5 and registered["endpoints"] == [f"PLAINTEXT://{broker.bootstrap}"]
        assert client.get("/brokers/ids/0")[1].ephemeralOwner == client.get("/controller")[1].ephemeralOwner != 0
        assert read("/controller")["brokerid"] == 0
        assert int(client.get("/controller_epoch")[0]) == 1
        assert {"__consumer_offsets", "orders"} <= set(client.get_children("/brokers/topics"))
        assert read("/brokers/topics/orders")["partitions"] == {"0": [0], "1": [0]}
        assert client.get_children("/brokers/topics/orders/partitions") == ["0", "1"]
        state = read("/brokers/topics/orders/partitions/1/state")
        assert {
            "version": 1,
            "leader": 0,
            "leader_epoch": 0,
            "controller_epoch": 1,
            "isr": [0],
        }.items() <= state.items()
        assert read("/config/topics/orders") == {"version": 1, "config": {}}
        assert read("/cluster/id")["version"] == "1"
        assert {"admin", "brokers", "cluster", "config", "controller", "controller_epoch"} <= set(
            client.get_children("/")
        )
        broker.kill()
        broker.start()
        produce_and_consume(broker.bootstrap, "after-a-kill")
        client.stop()
        client.close()


@pytest.mark.parametrize("location", ["etcd://127.0.0.1:{port}/x", "zookeeper://127.0.0.1:{port}/x"])
def test_an_engine_that_is_not_there(location: str, tmp_path: Path) -> None:
    if location.startswith("zookeeper"):
        pytest.importorskip("kazoo", reason="kazoo is not installed")
    settings = {"barnabas.metadata.connection.timeout.ms": "1000"}
    broker = BarnabasProcess(tmp_path, "--metadata", location.format(port=free_port()), settings=settings)
    with pytest.raises(ServerFailed) as caught:
        broker.start()
    assert "exited with 1 before serving" in str(caught.value) and "Traceback" not in str(caught.value)


@pytest.mark.parametrize("engine", ["etcd", "zookeeper"])
def test_the_first_administrator_and_a_token(
    engine: str, request: pytest.FixtureRequest, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Both are in the engine: the one before any broker has started, the other where Kafka had it."""
    location = request.getfixturevalue(engine).location("/secured")
    file = tmp_path / "password"
    file.write_text("first-secret-4410\n")
    create = ["user", "create", "admin", "--metadata", location, "--password-file", str(file)]
    assert main(create) == 0
    config = BrokerConfig.parse(
        {
            "listeners": "SASL_PLAINTEXT://127.0.0.1:0",
            "sasl.enabled.mechanisms": "SCRAM-SHA-256",
            "delegation.token.secret.key": "key-4411",
            "log.dirs": str(tmp_path / "data"),
            "node.id": "0",
        }
    )
    login = {"security_protocol": "SASL_PLAINTEXT", "sasl_mechanism": "SCRAM-SHA-256"}
    tokens = []
    for _ in range(2):
        thread = ServerThread(config, store_at(location), BreakableNetwork())  # type: ignore[arg-type]
        address = thread.broker.address
        assert main([*create[:2], "other", *create[3:]]) == 1
        assert "brokers of this cluster run" in capsys.readouterr().err
        with Admin(address, **login, sasl_username="admin", sasl_password="first-secret-4410") as admin:  # type: ignore[arg-type]
            tokens.append(admin.create_delegation_token())
            assert {each.token_id for each in admin.describe_delegation_tokens()} == {each.token_id for each in tokens}
        for token in tokens:
            name, password = token.token_id, token.password
            holder = {"sasl_username": name, "sasl_password": password, "sasl_scram_token_auth": True}
            with Admin(address, **login, **holder) as admin:  # type: ignore[arg-type]
                admin.list_topics()
        thread.stop()
    store = store_at(location)
    store.open()
    assert store.children("/delegation_token/tokens") == sorted(each.token_id for each in tokens)
    store.close()
