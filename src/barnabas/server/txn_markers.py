"""The end of a transaction in the partitions it wrote to: markers written here, and sent wherever they belong.

`MarkerWriter` appends markers to partitions that this broker leads; WriteTxnMarkers and the sender use it. A partition
of `__consumer_offsets` takes its marker through its shard, so that the offsets count from the same moment on.
`MarkerSender` carries out what the transaction coordinator asks for: every partition gets its marker, again and again
until it has it or is gone, and the coordinator is notified. On a lone broker all of that is over before it returns.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.machines.txn.commands import MarkersWritten, SendMarkers
from barnabas.metadata.image import ClusterImage
from barnabas.net.timers import Timers
from barnabas.records import ControlType, EndTxnMarker, build_end_marker
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC
from barnabas.server.hosted_partition import ACKS_ALL, HostedPartition
from barnabas.server.replicas import Replicas
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.storage.log import AppendOrigin
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

FIRST_RETRY_MS = 20
LONGEST_RETRY_MS = 1000
NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
FENCED = (ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.TRANSACTION_COORDINATOR_FENCED)
OnWritten = Callable[[TopicPartition, ErrorCode], None]


class Marker(NamedTuple):
    producer: ProducerIdAndEpoch
    committed: bool
    coordinator_epoch: int


class MarkerWriter:
    def __init__(
        self,
        replicas: Replicas,
        groups: CoordinatorRuntime,
        clock: Clock,
        on_transaction_ended: Callable[[HostedPartition, int], None],
    ) -> None:
        """`on_transaction_ended` is called with the partition and the producer id, before the marker is written."""
        self._replicas = replicas
        self._groups = groups
        self._clock = clock
        self._on_transaction_ended = on_transaction_ended
        self._loop = asyncio.get_running_loop()

    def write(self, marker: Marker, partitions: Iterable[TopicPartition], on_written: OnWritten) -> None:
        """Calls back for each partition: at once, or when its marker is committed."""
        for topic_partition in partitions:
            try:
                hosted, offset = self._append(marker, topic_partition)
            except KafkaError as error:
                on_written(topic_partition, ErrorCode.NOT_LEADER_OR_FOLLOWER if error.code in NOT_READY else error.code)
            except StorageError as error:
                logger.error("no marker could be written to %s: %s", topic_partition, error)
                on_written(topic_partition, ErrorCode.KAFKA_STORAGE_ERROR)
            else:
                if hosted.must_wait(offset, ACKS_ALL):
                    hosted.when_committed(offset, ACKS_ALL, partial(self._on_committed, on_written, topic_partition))
                else:
                    on_written(topic_partition, ErrorCode.NONE)

    def _append(self, marker: Marker, topic_partition: TopicPartition) -> tuple[HostedPartition, int]:
        hosted = self._replicas.find(*topic_partition)
        hosted.state.check_leader()
        self._on_transaction_ended(hosted, marker.producer.producer_id)
        now_ms = self._clock.now_ms()
        control_type = ControlType.COMMIT if marker.committed else ControlType.ABORT
        batch = build_end_marker(EndTxnMarker(control_type, marker.coordinator_epoch), *marker.producer, now_ms)
        if topic_partition.topic != GROUP_METADATA_TOPIC:
            info = hosted.append(memoryview(batch), ACKS_ALL, now_ms, AppendOrigin.COORDINATOR)
            return hosted, info.last_offset
        shard = self._groups.shard(topic_partition.partition)
        if shard is None:
            raise KafkaError(ErrorCode.NOT_COORDINATOR)
        return hosted, shard.append_marker(batch, marker.producer, marker.committed)

    def _on_committed(self, on_written: OnWritten, topic_partition: TopicPartition, error: ErrorCode) -> None:
        # Comes out of another append, perhaps of a coordinator's shard: what it sets off must not get into that step.
        self._loop.call_soon(on_written, topic_partition, error)


class MarkerSender:
    def __init__(
        self, writer: MarkerWriter, runtime: CoordinatorRuntime, timers: Timers, image: Callable[[], ClusterImage]
    ) -> None:
        """`runtime` is that of the transaction coordinator."""
        self._writer = writer
        self._runtime = runtime
        self._timers = timers
        self._image = image

    def send(self, coordinator_partition: int, request: SendMarkers) -> None:
        self._attempt(coordinator_partition, request, request.partitions, FIRST_RETRY_MS)

    def _attempt(
        self, coordinator_partition: int, request: SendMarkers, partitions: tuple[TopicPartition, ...], retry_ms: int
    ) -> None:
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
        here: list[TopicPartition] = []
        for each in partitions:
            partition = self._image().partition(*each)
            if partition is None:
                on_written(each, ErrorCode.NONE)  # deleted meanwhile: nobody will miss its marker
            else:
                here.append(each)
        self._writer.write(marker, here, on_written)

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
