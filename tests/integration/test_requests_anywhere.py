"""Three replicas on three brokers, asked in the wrong place: leader hints, reads from followers, deleted records."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

from broker_cluster import BrokerCluster
from confluent_kafka import Consumer, TopicPartition
from raw_client import RawClient, base_offsets, batch, fetch_request, produce_request

from barnabas import Admin, Producer
from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import NewTopic
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsTopic,
)
from barnabas.protocol.messages.describe_log_dirs import DescribeLogDirsRequest
from barnabas.server.hosted_partition import HostedPartition
from barnabas.testing import Cluster

RACK_AWARE = {"replica.selector.class": "org.apache.kafka.common.replica.RackAwareReplicaSelector"}


def run(
    directory: Path, scenario: Callable[[BrokerCluster], Awaitable[None]], settings: dict[str, str] | None = None
) -> None:
    async def main() -> None:
        async with BrokerCluster(directory, 3, settings) as cluster:
            await scenario(cluster)

    asyncio.run(main())


async def make_topic(cluster: BrokerCluster, name: str, *replicas: int) -> bytes:
    """One partition; the first replica leads. Gives the topic id."""
    controller = cluster.brokers[cluster.controller_id].controller
    (made,) = await controller.create_topics([NewTopic(name, assignments=((0, replicas),))])
    assert not made.error, made
    await cluster.until(lambda: all(name in each.cluster.image.topics for each in cluster.brokers.values()))
    return made.topic_id


def hosted(cluster: BrokerCluster, node_id: int, topic: str) -> HostedPartition:
    return cluster.brokers[node_id].replicas.find(topic, 0)


async def produce(cluster: BrokerCluster, node_id: int, topic: str | bytes, *values: bytes, version: int = 12) -> Any:
    request = produce_request(topic, batch(*values))
    return await cluster.ask(node_id, request, version)


def address(cluster: BrokerCluster, node_id: int) -> tuple[int, str, int, str]:
    host, _, port = cluster.brokers[node_id].address.rpartition(":")
    return node_id, host, int(port), f"r{node_id}"


def endpoints(answer: Any) -> list[tuple[int, str, int, str]]:
    return [(each.node_id, each.host, each.port, each.rack) for each in answer.node_endpoints]


def test_a_producer_at_the_wrong_broker_is_told_who_leads(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        topic_id = await make_topic(cluster, "t", 2, 3)
        for node_id in (1, 3):
            for version, topic in ((9, "t"), (10, "t"), (12, "t"), (13, topic_id)):
                answer = await produce(cluster, node_id, topic, b"x", version=version)
                (part,) = answer.responses[0].partition_responses
                assert part.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
                if version < 10:
                    assert not answer.node_endpoints
                else:
                    assert (part.current_leader.leader_id, part.current_leader.leader_epoch) == (2, 0)
                    assert endpoints(answer) == [address(cluster, 2)]
        answer = await produce(cluster, 2, "t", b"x")
        assert answer.responses[0].partition_responses[0].error_code == ErrorCode.NONE
        assert not answer.node_endpoints

    run(tmp_path, scenario)


def test_a_consumer_at_the_wrong_broker_is_told_who_leads(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        topic_id = await make_topic(cluster, "t", 2)
        for version in (15, 16, 18):
            answer = await cluster.ask(3, fetch_request(topic_id, 0), version)
            (data,) = answer.responses[0].partitions
            assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
            if version < 16:
                assert not answer.node_endpoints
            else:
                assert (data.current_leader.leader_id, data.current_leader.leader_epoch) == (2, 0)
                assert endpoints(answer) == [address(cluster, 2)]
        answer = await cluster.ask(2, fetch_request(topic_id, 0), 18)
        assert not answer.node_endpoints and answer.responses[0].partitions[0].error_code == ErrorCode.NONE

    run(tmp_path, scenario)


def test_a_consumer_reads_from_the_replica_in_its_rack(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        topic_id = await make_topic(cluster, "t", 1, 2, 3)
        for number in range(3):
            await produce(cluster, 1, "t", b"%d" % number)
        await cluster.until(lambda: all(hosted(cluster, node, "t").log.high_watermark == 3 for node in (1, 2, 3)))
        request = fetch_request(topic_id, 0, max_wait_ms=10_000, min_bytes=1_000_000)
        request.rack_id = "r3"
        (data,) = (await cluster.ask(1, request, 18)).responses[0].partitions
        assert (data.preferred_read_replica, data.high_watermark) == (3, 3), "at once, without waiting for records"
        assert not data.records
        (data,) = (await cluster.ask(3, fetch_request(topic_id, 0), 18)).responses[0].partitions
        assert (data.error_code, data.preferred_read_replica) == (ErrorCode.NONE, -1)
        assert base_offsets(data.records) == [0, 1, 2]
        request = fetch_request(topic_id, 0)
        request.rack_id = "r1"
        (data,) = (await cluster.ask(1, request, 18)).responses[0].partitions
        assert (data.preferred_read_replica, base_offsets(data.records)) == (-1, [0, 1, 2])
        old = fetch_request("t", 0)
        (data,) = (await cluster.ask(3, old, 10)).responses[0].partitions
        assert data.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER, "who does not know of it must ask the leader"
        stale = fetch_request(topic_id, 0, current_leader_epoch=7)
        (data,) = (await cluster.ask(3, stale, 18)).responses[0].partitions
        assert data.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH

    run(tmp_path, scenario, RACK_AWARE)


def test_a_follower_serves_what_is_committed_and_wakes_its_readers(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        topic_id = await make_topic(cluster, "t", 1, 2, 3)
        waiting = asyncio.create_task(cluster.ask(2, fetch_request(topic_id, 0, max_wait_ms=30_000, min_bytes=1), 18))
        await produce(cluster, 1, "t", b"news")
        (data,) = (await waiting).responses[0].partitions
        assert base_offsets(data.records) == [0]
        follower = hosted(cluster, 2, "t")
        assert follower.log.high_watermark == 1 == follower.log.log_end_offset

    run(tmp_path, scenario, RACK_AWARE)


def read_with_rack(bootstrap: str, rack: str, count: int) -> list[bytes]:
    consumer = Consumer({"bootstrap.servers": bootstrap, "group.id": "g", "client.rack": rack})
    try:
        consumer.assign([TopicPartition("t", 0, 0)])
        values: list[bytes] = []
        while len(values) < count:
            message = consumer.poll(30)
            assert message is not None and message.error() is None, message
            values.append(message.value())
        return values
    finally:
        consumer.close()


def test_librdkafka_reads_from_a_follower(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await make_topic(cluster, "t", 1, 2, 3)
        for number in range(5):
            await produce(cluster, 1, "t", b"%d" % number)
        follower = cluster.brokers[2].replicas
        with patch.object(follower, "find", wraps=follower.find) as served:
            values = await asyncio.to_thread(read_with_rack, cluster.brokers[1].address, "r2", 5)
        assert values == [b"%d" % number for number in range(5)]
        assert served.called, "nothing else looks for a partition at a broker that leads none"

    run(tmp_path, scenario, RACK_AWARE)


def deletion(offset: int, timeout_ms: int = 30_000) -> DeleteRecordsRequest:
    partition = DeleteRecordsPartition(partition_index=0, offset=offset)
    return DeleteRecordsRequest(topics=[DeleteRecordsTopic(name="t", partitions=[partition])], timeout_ms=timeout_ms)


def test_records_are_deleted_on_all_replicas_before_the_response(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await make_topic(cluster, "t", 1, 2, 3)
        for number in range(5):
            await produce(cluster, 1, "t", b"%d" % number)
        (result,) = (await cluster.ask(1, deletion(3))).topics[0].partitions
        assert (result.error_code, result.low_watermark) == (ErrorCode.NONE, 3)
        assert [hosted(cluster, node, "t").log.log_start_offset for node in (1, 2, 3)] == [3, 3, 3]
        (result,) = (await cluster.ask(2, deletion(4))).topics[0].partitions
        assert result.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        await cluster.brokers[3].followers.stop()
        (result,) = (await cluster.ask(1, deletion(4, timeout_ms=300))).topics[0].partitions
        assert (result.error_code, result.low_watermark) == (ErrorCode.REQUEST_TIMED_OUT, -1)
        assert hosted(cluster, 1, "t").log.log_start_offset == 4

    run(tmp_path, scenario)


def test_the_lag_of_a_follower(tmp_path: Path) -> None:
    async def scenario(cluster: BrokerCluster) -> None:
        await make_topic(cluster, "t", 1, 2)
        await produce(cluster, 1, "t", b"x")
        await cluster.brokers[2].followers.stop()
        hosted(cluster, 2, "t").state.leader_high_watermark = 6
        lags = []
        for node_id in (1, 2):
            (directory,) = (await cluster.ask(node_id, DescribeLogDirsRequest(topics=None))).results
            ((lag,),) = [[each.offset_lag for each in topic.partitions] for topic in directory.topics]
            lags.append(lag)
        assert lags == [0, 5]

    run(tmp_path, scenario)


def test_a_request_that_does_not_reach_the_controller_times_out_and_works_once_it_does(tmp_path: Path) -> None:
    topic = CreatableTopic(name="t", num_partitions=1, replication_factor=3)
    with Cluster(3, data_dir=tmp_path) as cluster:
        controller = cluster.controller
        other = (controller + 1) % 3
        with RawClient(cluster.brokers[other].bootstrap) as client:
            cluster.partition(controller, other)
            (refused,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=1500), 7).topics
            assert refused.error_code == ErrorCode.REQUEST_TIMED_OUT
            cluster.heal()
            (made,) = client.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7).topics
            assert made.error_code == ErrorCode.NONE


def test_a_follower_describes_the_producers_that_it_knows() -> None:
    with Cluster() as cluster, Producer(cluster.bootstrap) as producer, Admin(cluster.bootstrap) as admin:
        admin.create_topic("orders", partitions=1, replication_factor=3)
        producer.send("orders", b"x", partition=0).result()
        leader = admin.describe_topic("orders").partitions[0].leader
        follower = next(each for each in (1, 2, 3) if each != leader)
        (at_leader,) = admin.describe_producers([("orders", 0)], broker_id=leader).values()
        (at_follower,) = admin.describe_producers([("orders", 0)], broker_id=follower).values()
        assert [each.producer_id for each in at_follower] == [each.producer_id for each in at_leader] != []
