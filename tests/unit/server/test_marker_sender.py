"""Markers to the leaders of a transaction's partitions: one request per leader, repeated until they have them."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from barnabas.errors import ErrorCode
from barnabas.machines.txn.commands import MarkersWritten, SendMarkers
from barnabas.metadata.image import ClusterImage, PartitionImage, TopicImage
from barnabas.net.deferred import Deferred
from barnabas.net.link import LinkError
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarkerPartitionResult,
    WritableTxnMarkerResult,
    WritableTxnMarkerTopicResult,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.marker_sender import MarkerSender
from barnabas.types import NodeId, TopicPartition

HERE, NOBODY = 1, -1


class World:
    """Five partitions of a topic: two led here, one by broker 2, one by broker 3, one by nobody; a sixth is gone."""

    def __init__(self) -> None:
        self.leaders = [HERE, 2, 3, HERE, NOBODY]
        self.sent: list[tuple[int, WriteTxnMarkersRequest, Deferred[Any]]] = []
        self.written_here: list[TopicPartition] = []
        self.notified: list[MarkersWritten] = []
        self.timers: list[tuple[int, Callable[[], None]]] = []
        self.coordinator_epoch = 4
        self.sender = MarkerSender(
            NodeId(HERE),
            cast(Any, SimpleNamespace(write=self._write)),
            cast(Any, SimpleNamespace(shard=self._shard, notify=lambda _, command: self.notified.append(command))),
            cast(Any, SimpleNamespace(to=self._link)),
            cast(Any, SimpleNamespace(call_after=lambda delay, call: self.timers.append((delay, call)))),
            self._image,
        )

    def _write(self, marker: Any, partitions: list[TopicPartition], on_written: Any) -> None:
        self.written_here += partitions
        for each in partitions:
            on_written(each, ErrorCode.NONE)

    def _shard(self, partition: int) -> Any:
        return SimpleNamespace(leader_epoch=self.coordinator_epoch)

    def _link(self, node_id: int, use: object) -> Any:
        def request(message: WriteTxnMarkersRequest) -> Deferred[Any]:
            self.sent.append((node_id, message, Deferred()))
            return self.sent[-1][2]

        return SimpleNamespace(request=request)

    def _image(self) -> ClusterImage:
        partitions = tuple(
            PartitionImage(index, (1, 2, 3), (1, 2, 3), leader, 0, 0) for index, leader in enumerate(self.leaders)
        )
        return ClusterImage(topics={"t": TopicImage("t", b"x" * 16, partitions)})

    def answer(self, index: int, **errors: ErrorCode) -> None:
        """For partitions p1, p2, ..."""
        rows = [
            WritableTxnMarkerPartitionResult(partition_index=int(name[1:]), error_code=error)
            for name, error in errors.items()
        ]
        topic = WritableTxnMarkerTopicResult(name="t", partitions=rows)
        self.sent[index][2].complete(
            WriteTxnMarkersResponse(markers=[WritableTxnMarkerResult(producer_id=9, topics=[topic])])
        )

    def written(self) -> list[int]:
        return [each.partition for command in self.notified for each in command.partitions]


def markers(*partitions: int) -> SendMarkers:
    wanted = tuple(TopicPartition("t", each) for each in partitions)
    return SendMarkers("tx", 9, 3, committed=True, partitions=wanted, coordinator_epoch=4)


def test_each_leader_gets_one_request() -> None:
    world = World()
    world.leaders = [HERE, 2, 3, HERE, 2]
    world.sender.send(0, markers(0, 1, 2, 3, 4, 5))
    assert [each.partition for each in world.written_here] == [0, 3]
    assert [node_id for node_id, _, _ in world.sent] == [2, 3]
    (marker,) = world.sent[0][1].markers
    assert (marker.producer_id, marker.producer_epoch, marker.transaction_result) == (9, 3, True)
    assert marker.coordinator_epoch == 4
    assert [(topic.name, topic.partition_indexes) for topic in marker.topics] == [("t", [1, 4])]
    assert not world.notified
    world.answer(0, p1=ErrorCode.NONE, p4=ErrorCode.NONE)
    world.answer(1, p2=ErrorCode.NONE)
    assert sorted(world.written()) == [0, 1, 2, 3, 4, 5]
    assert not world.timers


def test_what_is_left_is_sent_again_to_whoever_leads_then() -> None:
    world = World()
    world.sender.send(0, markers(1, 2, 4))
    world.answer(0, p1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.sent[1][2].fail(LinkError("gone"))
    assert not world.notified
    world.leaders = [3, 3, 3, 3, 2]
    ((delay_ms, again),) = world.timers
    again()
    assert delay_ms == 20
    sent = [(node, message.markers[0].topics[0].partition_indexes) for node, message, _ in world.sent[2:]]
    assert sorted(sent) == [(2, [4]), (3, [1, 2])]
    for index in (2, 3):
        wanted = world.sent[index][1].markers[0].topics[0].partition_indexes
        world.answer(index, **{f"p{each}": ErrorCode.NONE for each in wanted})
    assert sorted(world.written()) == [1, 2, 4]


def test_a_coordinator_that_was_replaced_sends_nothing_more() -> None:
    world = World()
    world.sender.send(0, markers(1))
    world.answer(0, p1=ErrorCode.NOT_LEADER_OR_FOLLOWER)
    world.coordinator_epoch = 5
    world.timers[0][1]()
    assert len(world.sent) == 1
    world = World()
    world.sender.send(0, markers(1))
    world.answer(0, p1=ErrorCode.TRANSACTION_COORDINATOR_FENCED)
    assert not world.timers and not world.notified
