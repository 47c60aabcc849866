"""The coordinators' topics on two brokers: as many replicas as there are brokers, where the settings say more."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest
from broker_cluster import BrokerCluster
from handler_calls import HandlerCalls
from raw_client import RawClient, batch, code

from barnabas.errors import ErrorCode
from barnabas.metadata.image import Delta
from barnabas.metadata.stores.memory import MemoryStore, MemoryTree
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.testing import Broker

GROUP, TRANSACTION = 0, 1


def run(directory: Path, scenario: Callable[[HandlerCalls], Awaitable[None]]) -> None:
    """With the controller of two brokers."""

    async def main() -> None:
        tree = MemoryTree()
        settings = {"offsets_topic_replication_factor": "3", "transaction_state_log_replication_factor": "3"}
        both_there = asyncio.Event()

        def on_delta(delta: Delta) -> None:
            if len(delta.image.brokers) == 2:
                both_there.set()

        async with HandlerCalls(directory / "1", store=MemoryStore(tree), **settings) as first:
            first.broker.cluster.listeners.append(on_delta)
            async with HandlerCalls(directory / "2", store=MemoryStore(tree), node_id="2"):
                await both_there.wait()
                await scenario(first)

    asyncio.run(main())


@pytest.mark.parametrize(("key_type", "topic"), [(GROUP, "__consumer_offsets"), (TRANSACTION, "__transaction_state")])
def test_the_coordinators_topics_have_a_replica_on_each_broker(
    tmp_path: Path, key_type: int, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(calls: HandlerCalls) -> None:
        with caplog.at_level(logging.INFO):
            answer = await calls.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=["k"]))
        assert [each.error_code for each in answer.coordinators] == [ErrorCode.NONE]
        image = calls.broker.cluster.image.topics[topic]
        assert {len(each.replicas) for each in image.partitions} == {2}
        assert f"{topic} is created with replication factor 2 instead of 3" in caplog.text

    run(tmp_path, scenario)


def test_one_replica_takes_acks_all_whatever_min_insync_replicas_is(barnabas_broker: Broker) -> None:
    with RawClient(barnabas_broker.bootstrap) as client:
        client.create_topic("t", min_insync_replicas="2")
        assert code(client.produce("t", batch(b"value"), acks=-1)) == "NONE"


def test_brokers_that_are_away_are_waited_for(tmp_path: Path) -> None:
    async def main() -> None:
        factor = {"offsets.topic.replication.factor": "3"}
        async with BrokerCluster(tmp_path, 3, factor) as cluster:
            await cluster.stop(3)
            await cluster.until(lambda: 3 not in cluster.brokers[1].cluster.image.brokers)
            request = FindCoordinatorRequest(key_type=GROUP, coordinator_keys=["k"])
            for node_id in (1, 2):
                (found,) = (await cluster.ask(node_id, request)).coordinators
                assert found.error_code == ErrorCode.COORDINATOR_NOT_AVAILABLE
            assert "__consumer_offsets" not in cluster.brokers[1].cluster.image.topics
            await cluster.start(3)
            await cluster.until(lambda: all(len(each.cluster.image.brokers) == 3 for each in cluster.brokers.values()))
            for node_id in (2, 1):
                await cluster.ask(node_id, request)
                await cluster.until(
                    lambda node_id=node_id: "__consumer_offsets" in cluster.brokers[node_id].cluster.image.topics
                )
            topic = cluster.brokers[1].cluster.image.topics["__consumer_offsets"]
            assert {len(each.replicas) for each in topic.partitions} == {3}

    asyncio.run(main())
