"""AlterPartitionReassignments and ListPartitionReassignments where there is something to move."""

import asyncio
from pathlib import Path
from unittest.mock import Mock

from broker_cluster import BrokerCluster
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.protocol.messages import alter_partition_reassignments as reassign
from barnabas.protocol.messages import create_topics as create
from barnabas.protocol.messages import list_partition_reassignments as reassigning
from barnabas.server.steps import MAX_CONTROLLER_ITEMS


def test_the_controller_is_not_asked_for_too_many_partitions_at_once(tmp_path: Path) -> None:
    """It decides in one step: what counts are the partitions, over all topics."""
    partitions = [reassign.ReassignablePartition(partition_index=n, replicas=[1]) for n in range(MAX_CONTROLLER_ITEMS)]
    one_more = reassign.ReassignableTopic(name="u", partitions=partitions[:1])
    request = reassign.AlterPartitionReassignmentsRequest(
        topics=[reassign.ReassignableTopic(name="t", partitions=partitions), one_more]
    )

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.cluster.submit = Mock(side_effect=AssertionError("the controller was asked"))
            response = await calls.call(request)
            assert (response.error_code, response.responses) == (ErrorCode.POLICY_VIOLATION, [])

    asyncio.run(scenario())


def test_a_reassignment_is_listed_until_it_is_done(tmp_path: Path) -> None:
    """Broker 2 does not copy the partition, so the reassignment stays where it is until it is cancelled."""

    async def scenario() -> None:
        async with BrokerCluster(tmp_path, 2) as cluster:
            await cluster.brokers[2].followers.stop()
            on_1 = [create.CreatableReplicaAssignment(partition_index=n, broker_ids=[1]) for n in range(2)]
            topic = create.CreatableTopic(name="t", num_partitions=-1, replication_factor=-1, assignments=on_1)
            created = await cluster.ask(1, create.CreateTopicsRequest(topics=[topic], timeout_ms=10_000))
            assert created.topics[0].error_code == ErrorCode.NONE
            assert await _alter(cluster, [2]) == ErrorCode.NONE

            moving = reassigning.OngoingPartitionReassignment(
                partition_index=1, replicas=[2, 1], adding_replicas=[2], removing_replicas=[1]
            )
            expected = [reassigning.OngoingTopicReassignment(name="t", partitions=[moving])]
            assert await _list(cluster, None) == expected
            wanted = [reassigning.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0, 1, 7])]
            assert await _list(cluster, wanted) == expected
            wanted = [reassigning.ListPartitionReassignmentsTopics(name="t", partition_indexes=[0])]
            assert await _list(cluster, wanted) == []

            assert await _alter(cluster, None) == ErrorCode.NONE
            assert await _list(cluster, None) == []

    asyncio.run(scenario())


async def _alter(cluster: BrokerCluster, replicas: list[int] | None) -> int:
    wanted = reassign.ReassignablePartition(partition_index=1, replicas=replicas)
    request = reassign.AlterPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=[reassign.ReassignableTopic(name="t", partitions=[wanted])]
    )
    response = await cluster.ask(1, request)
    assert response.error_code == ErrorCode.NONE
    return int(response.responses[0].partitions[0].error_code)


async def _list(
    cluster: BrokerCluster, topics: list[reassigning.ListPartitionReassignmentsTopics] | None
) -> list[reassigning.OngoingTopicReassignment]:
    request = reassigning.ListPartitionReassignmentsRequest(topics=topics, timeout_ms=10_000)
    response = await cluster.ask(1, request)
    assert response.error_code == ErrorCode.NONE
    listed: list[reassigning.OngoingTopicReassignment] = response.topics
    return listed
