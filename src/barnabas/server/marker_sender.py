"""Sends the markers that end a transaction to the leaders of its partitions, here and on other brokers.

The transaction coordinator asks for them: every partition gets its marker, again and again until it has it or is gone,
and the coordinator is notified. Leaders elsewhere get a WriteTxnMarkers request each. On a lone broker all of that is
over before `send` returns.
"""

import logging
from collections.abc import Callable
from functools import partial

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.commands import MarkersWritten, SendMarkers
from barnabas.metadata.image import ClusterImage
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.protocol.messages.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.server.txn_markers import Marker, MarkerWriter, OnWritten
from barnabas.types import NO_LEADER, NodeId, TopicPartition

logger = logging.getLogger(__name__)

FIRST_RETRY_MS = 20
LONGEST_RETRY_MS = 1000
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
CODES = {int(error): error for error in ErrorCode}

Partitions = tuple[TopicPartition, ...]


class MarkerSender:
    def __init__(
        self,
        node_id: NodeId,
        writer: MarkerWriter,
        runtime: CoordinatorRuntime,
        links: BrokerLinks,
        timers: Timers,
        image: Callable[[], ClusterImage],
    ) -> None:
        """`runtime` is that of the transaction coordinator."""
        self._node_id = node_id
        self._writer = writer
        self._runtime = runtime
        self._links = links
        self._timers = timers
        self._image = image

    def send(self, coordinator_partition: int, request: SendMarkers) -> None:
        self._attempt(coordinator_partition, request, request.partitions, FIRST_RETRY_MS)

    def _attempt(self, coordinator_partition: int, request: SendMarkers, partitions: Partitions, retry_ms: int) -> None:
        shard = self._runtime.shard(coordinator_partition)
        if shard is None or shard.leader_epoch != request.coordinator_epoch:
            return  # the next coordinator finds the transaction in the log and sends the markers itself
        outcomes: dict[TopicPartition, ErrorCode] = {}

        def on_written(partition: TopicPartition, error: ErrorCode) -> None:
            outcomes[partition] = error
            if len(outcomes) == len(partitions):
                self._on_all_done(coordinator_partition, request, outcomes, retry_ms)

        producer = ProducerIdAndEpoch(request.producer_id, request.producer_epoch)
        marker = Marker(producer, request.committed, request.coordinator_epoch)
        by_leader, gone = self._by_leader(partitions)
        here = by_leader.pop(self._node_id, [])
        unled = by_leader.pop(NO_LEADER, [])
        for leader, led in by_leader.items():
            self._send_to(leader, marker, led, on_written)
        for each in gone:
            on_written(each, ErrorCode.NONE)  # deleted meanwhile: nobody will miss its marker
        for each in unled:
            on_written(each, ErrorCode.LEADER_NOT_AVAILABLE)
        self._writer.write(marker, here, on_written)

    def _by_leader(self, partitions: Partitions) -> tuple[dict[int, list[TopicPartition]], list[TopicPartition]]:
        """The partitions of each leader, and those that no longer exist."""
        image = self._image()
        by_leader: dict[int, list[TopicPartition]] = {}
        gone: list[TopicPartition] = []
        for each in partitions:
            partition = image.partition(*each)
            if partition is None:
                gone.append(each)
            else:
                by_leader.setdefault(partition.leader, []).append(each)
        return by_leader, gone

    def _send_to(self, leader: int, marker: Marker, partitions: list[TopicPartition], on_written: OnWritten) -> None:
        def on_done(response: Deferred[WriteTxnMarkersResponse]) -> None:
            results = {} if response.failed else _results(response.value)
            if response.failed:
                logger.info("markers could not be sent to broker %d: %s", leader, response.error)
            for each in partitions:
                on_written(each, results.get(each, ErrorCode.NETWORK_EXCEPTION))

        self._links.to(leader, LinkUse.MARKERS).request(_request(marker, partitions)).when_done(on_done)

    def _on_all_done(
        self, coordinator_partition: int, request: SendMarkers, outcomes: dict[TopicPartition, ErrorCode], retry_ms: int
    ) -> None:
        if any(error in FENCED for error in outcomes.values()):
            logger.warning("%s: markers are refused, another coordinator has taken over", request.transactional_id)
            return
        written = tuple(partition for partition, error in outcomes.items() if error is ErrorCode.NONE)
        if written:
            self._runtime.notify(coordinator_partition, MarkersWritten(request, written))
        left = tuple(partition for partition, error in outcomes.items() if error is not ErrorCode.NONE)
        if left:
            logger.info(
                "%s: %d markers are tried again: %s", request.transactional_id, len(left), outcomes[left[0]].name
            )
            next_retry_ms = min(2 * retry_ms, LONGEST_RETRY_MS)
            self._timers.call_after(
                retry_ms, partial(self._attempt, coordinator_partition, request, left, next_retry_ms)
            )


def _request(marker: Marker, partitions: list[TopicPartition]) -> WriteTxnMarkersRequest:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=marker.producer.producer_id,
                producer_epoch=marker.producer.producer_epoch,
                transaction_result=marker.committed,
                coordinator_epoch=marker.coordinator_epoch,
                topics=[
                    WritableTxnMarkerTopic(name=name, partition_indexes=indexes) for name, indexes in topics.items()
                ],
            )
        ]
    )


def _results(response: WriteTxnMarkersResponse) -> dict[TopicPartition, ErrorCode]:
    return {
        TopicPartition(topic.name, each.partition_index): CODES.get(each.error_code, ErrorCode.UNKNOWN_SERVER_ERROR)
        for marker in response.markers
        for topic in marker.topics
        for each in topic.partitions
    }
