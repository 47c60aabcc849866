"""Reading partitions for a fetch: bounds, limits, errors; never a record.

The fetch handler calls it once for each request, and once more for each time a parked fetch is read again. A
partition that cannot be read gives its error code and does not hinder the others.
"""

import logging
from collections.abc import Callable, Iterable
from typing import NamedTuple

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.fetch_context import FetchPartition
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.replica_selection import NO_PREFERENCE, SelectReplica
from barnabas.server.replica_throttle import ReplicaThrottle
from barnabas.server.replicas import Replicas
from barnabas.storage.file_slice import FileSlice

logger = logging.getLogger(__name__)

READ_COMMITTED = 1
CONSUMER = -1
FIRST_ZSTD_VERSION = 10
FIRST_ANY_REPLICA_VERSION = 11


class FetchLimits(NamedTuple):
    """What one request specifies, beside its partitions."""

    version: int
    replica_id: int
    max_bytes: int
    isolation_level: int
    broker_epoch: int = -1
    """Of the follower, if it is one."""
    select_replica: SelectReplica | None = None
    """For a consumer that had better read elsewhere."""
    may_read: Callable[[str | bytes], bool] | None = None
    """Whether a consumer may read a topic; None if everybody may."""

    @property
    def from_consumer(self) -> bool:
        return self.replica_id == CONSUMER


class PartitionRead(NamedTuple):
    wanted: FetchPartition
    error: ErrorCode
    hosted: HostedPartition | None = None
    high_watermark: int = -1
    last_stable_offset: int = -1
    log_start_offset: int = -1
    records: FileSlice | None = None
    aborted: list[tuple[int, int]] | None = None
    diverging_epoch: tuple[int, int] | None = None
    preferred_replica: int = NO_PREFERENCE
    """Where a consumer had better read (KIP-392)."""
    throttle: ReplicaThrottle | None = None
    """Counts the records when they are sent (KIP-73)."""
    held_back: bool = False
    """There are records, but they have to wait for the throttle."""

    @property
    def redirects(self) -> bool:
        return self.diverging_epoch is not None or self.preferred_replica != NO_PREFERENCE

    @property
    def record_bytes(self) -> int:
        return 0 if self.records is None else self.records.length


def read_partitions(
    replicas: Replicas, wanted: Iterable[FetchPartition], limits: FetchLimits, total: int = 0, *, again: bool = False
) -> tuple[list[PartitionRead], int]:
    """Every partition's result, and how many bytes of records there are in all, with the `total` read before.

    A follower's progress is noted, unless this is the second read for the same request (`again`). The first partition
    with data may exceed every limit by one batch, or a consumer with small limits would be stuck.
    """
    reads: list[PartitionRead] = []
    for partition in wanted:
        read = _read(replicas, partition, limits, limits.max_bytes - total, min_one_message=total == 0, again=again)
        total += read.record_bytes
        reads.append(read)
    return reads, total


def _read(
    replicas: Replicas,
    wanted: FetchPartition,
    limits: FetchLimits,
    bytes_left: int,
    *,
    min_one_message: bool,
    again: bool,
) -> PartitionRead:
    hosted: HostedPartition | None = None
    if limits.may_read is not None and not limits.may_read(wanted.topic):
        return PartitionRead(wanted, ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    try:
        hosted = replicas.find(wanted.topic, wanted.partition)
        if not again:
            hosted.traffic.fetches += 1
        if limits.replica_id >= 0:
            hosted.check_leader_epoch(wanted.current_leader_epoch)
            return _read_as_follower(replicas, hosted, wanted, limits, bytes_left, min_one_message, again)
        if not hosted.state.is_leader and limits.version >= FIRST_ANY_REPLICA_VERSION:
            hosted.state.check_replica_epoch(wanted.current_leader_epoch)
        else:
            hosted.check_leader_epoch(wanted.current_leader_epoch)
        if limits.select_replica is not None:
            preferred = limits.select_replica(hosted, wanted.fetch_offset)
            if preferred != NO_PREFERENCE:
                return _redirected(hosted, wanted, preferred)
        if limits.version < FIRST_ZSTD_VERSION and hosted.log.config.compression_type == "zstd":
            return PartitionRead(wanted, ErrorCode.UNSUPPORTED_COMPRESSION_TYPE)
        return _read_log(hosted, wanted, limits, bytes_left, min_one_message)
    except KafkaError as error:
        if error.code is ErrorCode.OFFSET_OUT_OF_RANGE and hosted is not None and limits.replica_id >= 0:
            # A follower that is too far behind finds out where to begin.
            return PartitionRead(wanted, error.code, log_start_offset=hosted.log.log_start_offset)
        return PartitionRead(wanted, error.code)
    except StorageError as error:
        logger.error("reading %s-%d failed: %s", wanted.topic, wanted.partition, error)
        return PartitionRead(wanted, ErrorCode.KAFKA_STORAGE_ERROR)
    except Exception:
        logger.exception("reading %s-%d failed", wanted.topic, wanted.partition)
        replicas.traffic.of(wanted.topic).failed_fetches += 1
        return PartitionRead(wanted, ErrorCode.KAFKA_STORAGE_ERROR)


def _redirected(hosted: HostedPartition, wanted: FetchPartition, preferred_replica: int) -> PartitionRead:
    log = hosted.log
    return PartitionRead(
        wanted,
        ErrorCode.NONE,
        hosted,
        log.high_watermark,
        log.last_stable_offset,
        log.log_start_offset,
        preferred_replica=preferred_replica,
    )


def _read_as_follower(
    replicas: Replicas,
    hosted: HostedPartition,
    wanted: FetchPartition,
    limits: FetchLimits,
    bytes_left: int,
    min_one_message: bool,
    again: bool,
) -> PartitionRead:
    hosted.state.check_follower(limits.replica_id, wanted.current_leader_epoch, limits.broker_epoch)
    read = _read_log(hosted, wanted, limits, bytes_left, min_one_message)
    if not again and read.diverging_epoch is None:
        replicas.on_follower_fetch(hosted, limits.replica_id, limits.broker_epoch, wanted.fetch_offset)
        hosted.on_follower_log_start(limits.replica_id, wanted.fetcher_log_start_offset)
        read = read._replace(high_watermark=hosted.log.high_watermark)
    return _throttled(replicas.leader_throttle, hosted, limits, read) if hosted.leader_throttled else read


def _throttled(
    throttle: ReplicaThrottle, hosted: HostedPartition, limits: FetchLimits, read: PartitionRead
) -> PartitionRead:
    """Without its records, if the limit is exceeded and the replica is not in sync: in sync it must stay so."""
    if read.records is None:
        return read
    if limits.replica_id not in hosted.state.in_sync_replicas and throttle.is_exceeded():
        return read._replace(records=None, held_back=True)
    return read._replace(throttle=throttle)


def _read_log(
    hosted: HostedPartition, wanted: FetchPartition, limits: FetchLimits, bytes_left: int, min_one_message: bool
) -> PartitionRead:
    log = hosted.log
    high_watermark, last_stable_offset = log.high_watermark, log.last_stable_offset
    if not limits.from_consumer:
        bound = log.log_end_offset
    elif limits.isolation_level == READ_COMMITTED:
        bound = last_stable_offset
    else:
        bound = high_watermark
    if wanted.last_fetched_epoch >= 0:
        diverging = _diverging_epoch(hosted, wanted)
        if diverging is not None:
            return PartitionRead(
                wanted,
                ErrorCode.NONE,
                hosted,
                high_watermark,
                last_stable_offset,
                log.log_start_offset,
                diverging_epoch=diverging,
            )
    max_bytes = min(wanted.max_bytes, bytes_left)
    data = log.read(wanted.fetch_offset, max(0, max_bytes), bound, min_one_message)
    aborted: list[tuple[int, int]] | None = None
    if limits.isolation_level == READ_COMMITTED:
        aborted = []
        if data.slice is not None:
            found = log.aborted_transactions(wanted.fetch_offset, data.next_offset)
            aborted = [(each.producer_id, each.first_offset) for each in found]
    return PartitionRead(
        wanted,
        ErrorCode.NONE,
        hosted,
        high_watermark,
        last_stable_offset,
        log.log_start_offset,
        data.slice,
        aborted,
    )


def _diverging_epoch(hosted: HostedPartition, wanted: FetchPartition) -> tuple[int, int] | None:
    """Where the reader's log parts from ours, if it does (KIP-595)."""
    if wanted.fetch_offset < hosted.log.log_start_offset:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE)
    epoch, end_offset = hosted.end_offset_for_epoch(wanted.last_fetched_epoch)
    if epoch < 0 or end_offset < 0:
        raise KafkaError(ErrorCode.OFFSET_OUT_OF_RANGE, "nothing is known of the epoch last fetched")
    if epoch < wanted.last_fetched_epoch or end_offset < wanted.fetch_offset:
        return epoch, end_offset
    return None
