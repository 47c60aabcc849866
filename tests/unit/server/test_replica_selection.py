"""Which replica a consumer is sent to: in its rack, in sync, with the offset; the most caught up of several."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from barnabas.machines.partition.state import PartitionState
from barnabas.metadata.image import BrokerEndpoint, BrokerImage, ClusterImage, PartitionImage
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replica_selection import NO_PREFERENCE, select_by_rack

RACKS = {1: "a", 2: "b", 3: "b", 4: "c", 5: None}


def image(*without: int) -> ClusterImage:
    endpoint = (BrokerEndpoint("PLAINTEXT", "host", 9092),)
    return ClusterImage(
        brokers={node: BrokerImage(node, endpoint, rack) for node, rack in RACKS.items() if node not in without}
    )


def partition(leader: int = 1, in_sync: tuple[int, ...] = (1, 2, 3, 4, 5)) -> HostedPartition:
    state = PartitionState(1)
    state.apply(PartitionImage(0, (1, 2, 3, 4, 5), in_sync, leader, 0, 0), 100, 100)
    for follower in state.followers.values():
        follower.log_start_offset, follower.log_end_offset = 10, 100
    return cast(HostedPartition, SimpleNamespace(state=state))


def select(hosted: HostedPartition, rack: str, offset: int = 50, cluster: ClusterImage | None = None) -> Any:
    return select_by_rack(cluster or image(), rack, "PLAINTEXT", hosted, offset)


@pytest.mark.parametrize(("rack", "chosen"), [("a", NO_PREFERENCE), ("b", 2), ("c", 4), ("elsewhere", NO_PREFERENCE)])
def test_the_rack_of_the_consumer_decides(rack: str, chosen: int) -> None:
    assert select(partition(), rack) == chosen


def test_the_most_caught_up_of_a_rack() -> None:
    hosted = partition()
    hosted.state.followers[2].log_end_offset = 99
    assert select(hosted, "b") == 3
    hosted.state.followers[2].log_end_offset = 100
    hosted.state.followers[2].caught_up_ms = 5
    assert select(hosted, "b") == 2


def test_only_replicas_that_can_serve() -> None:
    assert select(partition(in_sync=(1, 2, 3)), "c") == NO_PREFERENCE, "not in sync"
    assert select(partition(), "c", offset=101) == NO_PREFERENCE, "behind"
    assert select(partition(), "c", offset=9) == NO_PREFERENCE, "its log begins later"
    assert select(partition(), "c", cluster=image(4)) == NO_PREFERENCE, "not there"
    assert select_by_rack(image(), "c", "INTERNAL", partition(), 50) == NO_PREFERENCE, "not on this listener"
    assert select(partition(leader=2), "c") == NO_PREFERENCE, "only the leader chooses"
