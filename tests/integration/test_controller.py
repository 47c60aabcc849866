"""The controller on three brokers: leaders handed over at a stop, partitions moved, brokers forgotten."""

import time
from collections.abc import Callable, Iterator

import pytest
from raw_client import RawClient

from barnabas import Producer
from barnabas.errors import ErrorCode
from barnabas.metadata.image import ClusterImage, PartitionImage
from barnabas.protocol.messages import alter_partition_reassignments as reassign
from barnabas.protocol.messages import list_partition_reassignments as reassigning
from barnabas.protocol.messages.describe_cluster import DescribeClusterRequest
from barnabas.protocol.messages.unregister_broker import UnregisterBrokerRequest
from barnabas.server.controlled_shutdown import TIMEOUT_MS
from barnabas.testing import Cluster


@pytest.fixture
def cluster() -> Iterator[Cluster]:
    with Cluster() as cluster:
        yield cluster


def wait_for(cluster: Cluster, broker: int, condition: Callable[[PartitionImage], bool]) -> None:
    def holds(image: ClusterImage) -> bool:
        return condition(image.topics["t"].partitions[0])

    cluster.brokers[broker].when_image(holds).result(30)


def other_than(*brokers: int) -> int:
    return next(each for each in range(3) if each not in brokers)


def test_a_broker_that_stops_hands_its_leaders_over_first(cluster: Cluster) -> None:
    cluster.create_topic("t")
    leader = cluster.leader("t", 0)
    seen: list[PartitionImage] = []

    def watch(image: ClusterImage) -> bool:
        seen.append(image.topics["t"].partitions[0])
        return leader not in image.brokers

    gone = cluster.brokers[other_than(leader)].when_image(watch)
    cluster.brokers[leader].stop()
    gone.result(30)
    elected = [each for each in seen if each.leader_epoch > 0]
    assert elected and all(each.leader not in (leader, -1) for each in elected), "there is a leader at any time"
    assert seen[-1].leader_epoch == 1, "and only one election"


def test_a_partition_is_moved_and_keeps_its_records(cluster: Cluster) -> None:
    cluster.create_topic("t", replication_factor=1)
    first = cluster.leader("t", 0)
    target = other_than(first)
    with Producer(cluster.bootstrap) as producer:
        producer.send("t", b"kept").result()
    wanted = reassign.ReassignablePartition(partition_index=0, replicas=[target])
    request = reassign.AlterPartitionReassignmentsRequest(
        topics=[reassign.ReassignableTopic(name="t", partitions=[wanted])]
    )
    with RawClient(cluster.brokers[other_than(cluster.controller)].bootstrap) as client:
        response = client.ask(request, 1)
        assert response.responses[0].partitions[0].error_code == ErrorCode.NONE
        wait_for(cluster, target, lambda partition: partition.replicas == (target,))
        listed = client.ask(reassigning.ListPartitionReassignmentsRequest(topics=None), 0)
        assert listed.topics == []
    assert cluster.leader("t", 0) == target
    assert [record.value for record in cluster.records("t")] == [b"kept"]


def test_a_broker_that_is_away_is_known_until_it_is_forgotten(cluster: Cluster) -> None:
    gone = other_than(cluster.controller)
    cluster.brokers[gone].stop()
    cluster.brokers[cluster.controller].when_image(lambda image: gone in image.fenced_brokers).result(30)
    with RawClient(cluster.brokers[cluster.controller].bootstrap) as client:
        request = DescribeClusterRequest(include_fenced_brokers=True)
        assert {each.broker_id for each in client.ask(request, 2).brokers if each.is_fenced} == {gone}
        assert client.ask(UnregisterBrokerRequest(broker_id=gone), 0).error_code == ErrorCode.NONE
        assert [each for each in client.ask(request, 2).brokers if each.is_fenced] == []
        again = client.ask(UnregisterBrokerRequest(broker_id=gone), 0)
        assert again.error_code == ErrorCode.BROKER_ID_NOT_REGISTERED


def test_brokers_that_stop_one_after_another_do_not_wait_for_a_controller(cluster: Cluster) -> None:
    cluster.create_topic("t")
    begun = time.monotonic()
    first = cluster.controller
    cluster.brokers[first].stop()
    second = cluster.controller
    cluster.brokers[second].stop()
    cluster.brokers[other_than(first, second)].stop()
    assert time.monotonic() - begun < TIMEOUT_MS / 1000
