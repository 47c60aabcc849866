"""Requests for the controller at brokers that are not: every API in every version, and foreign admin clients.

Clients send what is for the controller to the broker that metadata names. Kafka names any broker; here the tests make
the brokers name one that is not controller, so that the clients' own requests take that way.
"""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from broker_cluster import BrokerCluster
from confluent_kafka.admin import (
    AdminClient,
    AlterConfigOpType,
    ConfigEntry,
    ConfigResource,
    NewPartitions,
    NewTopic,
    ResourceType,
)
from eventually import eventually
from kafka.admin import KafkaAdminClient
from kafka.admin import NewPartitions as PythonNewPartitions
from kafka.admin import NewTopic as PythonNewTopic

from barnabas import Admin
from barnabas.protocol.api import ApiKey
from barnabas.protocol.message_types import request_type

HAS_A_CODEC_OF_ITS_OWN = (ApiKey.PRODUCE,)
TIMEOUT = 30


def run(
    directory: Path,
    monkeypatch: pytest.MonkeyPatch,
    scenario: Callable[[BrokerCluster, int, str], Awaitable[None]],
) -> None:
    """The scenario gets the cluster, the broker that is named as controller but is not, and its address."""

    async def main() -> None:
        async with BrokerCluster(directory, 3) as cluster:
            named = cluster.others()[0]
            for handler in ("metadata", "describe_cluster"):
                path = f"barnabas.server.handlers.{handler}.controller_for_clients"
                monkeypatch.setattr(path, lambda image, listed: named)
            await scenario(cluster, named, cluster.brokers[named].address)

    asyncio.run(main())


def test_every_api_in_every_version_responds_at_every_broker(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: BrokerCluster, named: int, address: str) -> None:
        rows = [row for row in cluster.brokers[named].dispatcher.table.values() if row.is_advertised]
        asked = 0
        for node_id in cluster.brokers:
            for row in rows:
                if row.api_key in HAS_A_CODEC_OF_ITS_OWN:
                    continue
                for version in range(row.min_version, row.max_version + 1):
                    response = await cluster.ask(node_id, request_type(row.api_key)(), version)
                    assert response is not None, (row.api_key.name, version)
                    asked += 1
        assert asked > 3 * 200

    run(tmp_path, monkeypatch, scenario)


def with_confluent(address: str) -> dict[str, Any]:
    admin = AdminClient({"bootstrap.servers": address})
    seen: dict[str, Any] = {}

    def done(futures: dict[Any, Any]) -> None:
        for future in futures.values():
            future.result(TIMEOUT)

    seen["controller"] = admin.describe_cluster().result(TIMEOUT).controller.id
    done(admin.create_topics([NewTopic("c", 2, 3)], validate_only=True))
    done(admin.create_topics([NewTopic("c", 2, 3)]))
    done(admin.create_partitions([NewPartitions("c", 4)]))
    entry = ConfigEntry("retention.ms", "12345", incremental_operation=AlterConfigOpType.SET)
    done(admin.incremental_alter_configs([ConfigResource(ResourceType.TOPIC, "c", incremental_configs=[entry])]))
    # Any broker describes a topic, and learns of the change a moment after the controller.
    eventually(lambda: _setting(admin, ConfigResource(ResourceType.TOPIC, "c"), "retention.ms") == "12345")
    eventually(lambda: len(admin.list_topics("c", TIMEOUT).topics["c"].partitions) == 4)
    for broker in (1, 2, 3):
        seen[f"broker {broker}"] = _setting(admin, ConfigResource(ResourceType.BROKER, str(broker)), "node.id")
    done(admin.delete_topics(["c"]))
    return seen


def _setting(admin: AdminClient, resource: ConfigResource, name: str) -> str:
    (described,) = admin.describe_configs([resource]).values()
    value: str = described.result(TIMEOUT)[name].value
    return value


def test_confluent_kafka(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: BrokerCluster, named: int, address: str) -> None:
        seen = await asyncio.to_thread(with_confluent, address)
        own = {f"broker {broker}": str(broker) for broker in (1, 2, 3)}
        assert seen == {"controller": named, **own}
        await cluster.until(lambda: all("c" not in each.cluster.image.topics for each in cluster.brokers.values()))

    run(tmp_path, monkeypatch, scenario)


def with_kafka_python(address: str) -> None:
    admin = KafkaAdminClient(bootstrap_servers=address)
    try:
        admin.create_topics([PythonNewTopic("p", 1, 3)])
        admin.create_partitions({"p": PythonNewPartitions(3)})
        eventually(lambda: len(admin.describe_topics(["p"])[0]["partitions"]) == 3)
        admin.delete_topics(["p"])
    finally:
        admin.close()


def test_kafka_python(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: BrokerCluster, named: int, address: str) -> None:
        await asyncio.to_thread(with_kafka_python, address)
        await cluster.until(lambda: all("p" not in each.cluster.image.topics for each in cluster.brokers.values()))

    run(tmp_path, monkeypatch, scenario)


def with_our_admin(address: str) -> None:
    with Admin(address) as admin:
        admin.create_topic("o", partitions=2, replication_factor=3)
        admin.delete_topics(["o"])


def test_our_own_admin(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(cluster: BrokerCluster, named: int, address: str) -> None:
        await asyncio.to_thread(with_our_admin, address)
        await cluster.until(lambda: all("o" not in each.cluster.image.topics for each in cluster.brokers.values()))

    run(tmp_path, monkeypatch, scenario)
