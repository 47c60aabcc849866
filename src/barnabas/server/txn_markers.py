"""The end of a transaction in the partitions it wrote to: markers for partitions that this broker leads.

WriteTxnMarkers and `marker_sender.py` use it. A partition of `__consumer_offsets` takes its marker through its shard,
so that the offsets count from the same moment on.
"""

import asyncio
import logging
from collections.abc import Callable, Iterable
from functools import partial
from typing import NamedTuple

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.coordinator import ProducerIdAndEpoch
from barnabas.records import ControlType, EndTxnMarker, build_end_marker
from barnabas.server.auto_topic_creation import GROUP_METADATA_TOPIC
from barnabas.server.commit_waiters import NO_DEADLINE
from barnabas.server.hosted_partition import ACKS_ALL, HostedPartition
from barnabas.server.replicas import Replicas
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.storage.log import AppendOrigin
from barnabas.types import TopicPartition

logger = logging.getLogger(__name__)

NOT_READY = (
    ErrorCode.COORDINATOR_LOAD_IN_PROGRESS,
    ErrorCode.COORDINATOR_NOT_AVAILABLE,
    ErrorCode.NOT_COORDINATOR,
)
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

    def write(
        self,
        marker: Marker,
        partitions: Iterable[TopicPartition],
        on_written: OnWritten,
        deadline_ms: int = NO_DEADLINE,
    ) -> None:
        """Calls back for each partition: at once, when its marker is committed, or at the deadline."""
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
                    on_committed = partial(self._on_committed, on_written, topic_partition)
                    hosted.when_committed(offset, ACKS_ALL, on_committed, deadline_ms)
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
