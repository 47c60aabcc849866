"""The one driver of both coordinators: a machine for each partition of a coordinator's topic that this broker leads.

`submit` takes a command to the shard that its key (group id, transactional id) belongs to. `on_delta` makes shards as
leadership comes, loads them one after the other in the background, and closes them as it goes. What a shard does with a
command is in coordinator_shard.py; what the machines do is none of this module's business.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import Executor
from functools import partial
from typing import Any

from barnabas.clock import Clock
from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.coordinator import CoordinatorMachine
from barnabas.metadata.image import ClusterImage, Delta, PartitionImage, ResourceType
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.records import CompressionType
from barnabas.server.coordinator_codec import CoordinatorCodec
from barnabas.server.coordinator_loader import LoadStoppedError, Replay
from barnabas.server.coordinator_shard import CoordinatorShard, Fail, Response, ShardState
from barnabas.server.hosted_partition import ACKS_ALL
from barnabas.server.java_hash import partition_for
from barnabas.server.replicas import Replicas
from barnabas.types import NO_LEADER, LeaderEpoch, NodeId

logger = logging.getLogger(__name__)

MakeMachine = Callable[[int, LeaderEpoch], CoordinatorMachine]
"""(partition, leader epoch) -> a machine that knows nothing yet."""
CarryOut = Callable[[int, Any], None]
"""(partition of the coordinator, a request of its machine)"""
KEYS_REMEMBERED = 10_000
LONGEST_KEY = 32_767
"""Bytes of a string in the key of a record."""
RELOAD_BACKOFF_MS = 10
RELOAD_BACKOFF_MAX_MS = 5000


class CoordinatorRuntime:
    def __init__(
        self,
        topic: str,
        codec: CoordinatorCodec,
        make_machine: MakeMachine,
        *,
        node_id: NodeId,
        replicas: Replicas,
        clock: Clock,
        timers: Timers,
        executor: Executor,
        partition_count: int,
        carry_out: CarryOut,
        too_long: ErrorCode,
        load_buffer_bytes: int = 5_242_880,
        commit_timeout_ms: int = 5000,
        compression: CompressionType = CompressionType.NONE,
    ) -> None:
        """`partition_count` is that of the settings; once the topic exists, its own counts.

        `too_long` is what a key gets that does not fit into a record.
        """
        self.topic = topic
        self.partition_count = partition_count
        self._codec = codec
        self._make_machine = make_machine
        self.node_id = node_id
        self._replicas = replicas
        self._clock = clock
        self._timers = timers
        self._executor = executor
        self._carry_out = carry_out
        self._too_long = too_long
        self._load_buffer_bytes = load_buffer_bytes
        self._commit_timeout_ms = commit_timeout_ms
        self._compression = compression
        self._loop = asyncio.get_running_loop()
        self._image = ClusterImage()
        self._shards: dict[int, CoordinatorShard] = {}
        self._partitions: dict[str, int] = {}
        self._to_load: deque[CoordinatorShard] = deque()
        self._loading: asyncio.Task[None] | None = None

    # ---- requests

    def partition_for(self, key: str) -> int:
        partition = self._partitions.get(key)
        if partition is None:
            if len(self._partitions) >= KEYS_REMEMBERED:
                self._partitions.clear()
            partition = self._partitions[key] = partition_for(key, self.partition_count)
        return partition

    def leader_for(self, key: str) -> int:
        """The broker that coordinates the key, as far as is known here; NO_LEADER if there is none."""
        partition = self._image.partition(self.topic, self.partition_for(key))
        return NO_LEADER if partition is None else partition.leader

    def submit(self, key: str, command: object, fail: Fail[Response]) -> Response | Deferred[Response]:
        """The response of the key's machine; `fail` makes it for a code when there is no coordinator here."""
        partition = self._partitions.get(key)
        if partition is None:
            if len(key) > LONGEST_KEY // 4 and len(key.encode()) > LONGEST_KEY:
                return fail(self._too_long)  # the record's key could not hold it
            partition = self.partition_for(key)
        shard = self._shards.get(partition)
        if shard is None:
            return fail(ErrorCode.NOT_COORDINATOR)
        return shard.submit(command, fail)

    def submit_to_all(
        self, command: object, fail: Fail[Response]
    ) -> Generator[None, None, list[Response | Deferred[Response]]]:
        """One shard after the other, yielding in between: each may have thousands of rows."""
        responses: list[Response | Deferred[Response]] = []
        for shard in list(self._shards.values()):
            responses.append(shard.submit(command, fail))
            yield
        return responses

    def notify(self, partition: int, command: object) -> None:
        shard = self._shards.get(partition)
        if shard is not None:
            shard.notify(command)

    def shard_of(self, key: str) -> CoordinatorShard | None:
        """If the key's partition is led here and the key has been here before."""
        partition = self._partitions.get(key)
        return None if partition is None else self._shards.get(partition)

    def shard(self, partition: int) -> CoordinatorShard | None:
        return self._shards.get(partition)

    def __iter__(self) -> Iterator[CoordinatorShard]:
        return iter(self._shards.values())

    # ---- leadership

    def on_delta(self, delta: Delta) -> None:
        """Called after the replicas have taken the delta in, so that a partition led here has its log."""
        self._image = delta.image
        for topic in delta.topics_deleted:
            if topic.name == self.topic:
                self._close_all(ErrorCode.NOT_COORDINATOR)
        changed = [partition for topic, partition in delta.partitions if topic.name == self.topic]
        if changed:
            self._count_partitions(len(delta.image.topics[self.topic].partitions))
        for partition in changed:
            self._on_partition(partition)
        if delta.partitions or delta.topics_deleted or _touches_groups(delta):
            for shard in list(self._shards.values()):
                shard.on_image(delta.image)

    async def stop(self) -> None:
        """Fails all waiting requests: clients find the new coordinator."""
        self._close_all(ErrorCode.NOT_COORDINATOR)
        if self._loading is not None:
            self._loading.cancel()
            await asyncio.gather(self._loading, return_exceptions=True)

    def _count_partitions(self, count: int) -> None:
        if count != self.partition_count:
            self.partition_count = count
            self._partitions.clear()

    def _close_all(self, error: ErrorCode) -> None:
        shards, self._shards = self._shards, {}
        for shard in shards.values():
            shard.close(error)

    def _on_partition(self, partition: PartitionImage) -> None:
        shard = self._shards.get(partition.partition)
        leads = partition.leader == self.node_id
        if shard is not None and leads and shard.leader_epoch == partition.leader_epoch:
            return
        if shard is not None:
            del self._shards[partition.partition]
            shard.close()
        if leads:
            self._open(partition.partition)

    def _open(self, partition: int) -> None:
        try:
            hosted = self._replicas.find(self.topic, partition)
        except KafkaError as error:
            logger.error("%s-%d is led here but has no log: %s", self.topic, partition, error)
            return
        shard = CoordinatorShard(
            hosted,
            self._codec,
            self._loop,
            self._clock,
            self._timers,
            compression=self._compression,
            commit_timeout_ms=self._commit_timeout_ms,
            carry_out=lambda request: self._carry_out(partition, request),
            on_failed=self._load_again,
        )
        self._shards[partition] = shard
        if hosted.log.log_start_offset == hosted.log.log_end_offset:
            shard.machine = self._make_machine(partition, LeaderEpoch(shard.leader_epoch))
            shard.activate(self._image)
        else:
            self._load_soon(shard)

    # ---- loading

    def _load_again(self, shard: CoordinatorShard) -> None:
        """After a failed step. One that fails again each time (the disk is full) must not keep the loop busy."""
        delay_ms = min(RELOAD_BACKOFF_MS << min(shard.failures_in_a_row - 1, 10), RELOAD_BACKOFF_MAX_MS)
        self._timers.call_after(delay_ms, lambda: self._load_soon(shard))

    def _load_soon(self, shard: CoordinatorShard) -> None:
        self._to_load.append(shard)
        if self._loading is None or self._loading.done():
            self._loading = self._loop.create_task(self._load_all(), name=f"load {self.topic}")

    async def _load_all(self) -> None:
        while self._to_load:
            shard = self._to_load.popleft()
            if shard.state is ShardState.LOADING:
                await self._load(shard)

    async def _load(self, shard: CoordinatorShard) -> None:
        partition = shard.hosted.partition
        started_ms = self._clock.monotonic_ms()
        machine = self._make_machine(partition, LeaderEpoch(shard.leader_epoch))
        replay = Replay(
            shard.hosted.log,
            self._codec,
            machine,
            self._executor,
            self._clock,
            lambda: shard.state is ShardState.LOADING,
        )
        try:
            await replay.run(self._load_buffer_bytes)
        except LoadStoppedError:
            return
        except (KafkaError, StorageError) as error:
            logger.error("%s-%d could not be loaded: %s", self.topic, partition, error)
        except Exception:
            logger.exception("%s-%d could not be loaded", self.topic, partition)
        else:
            if shard.state is ShardState.LOADING:
                taken_ms = self._clock.monotonic_ms() - started_ms
                logger.debug("%s-%d: %d records loaded in %d ms", self.topic, partition, replay.record_count, taken_ms)
                shard.machine = machine
                self._activate_when_committed(shard, replay.end_offset)
            return
        if shard.state is ShardState.LOADING:
            shard.state = ShardState.FAILED

    def _activate_when_committed(self, shard: CoordinatorShard, end_offset: int) -> None:
        """What is not on all in-sync replicas may be lost yet: nobody may see it, or act on it, before."""
        hosted = shard.hosted
        if hosted.log.high_watermark >= end_offset:
            shard.activate(self._image)
        else:
            on_committed = partial(self._on_committed, shard, end_offset)
            hosted.when_committed(end_offset - 1, ACKS_ALL, on_committed)

    def _on_committed(self, shard: CoordinatorShard, end_offset: int, error: ErrorCode) -> None:
        if error is ErrorCode.NONE or error is ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND:
            # Comes out of an append or a change of the image, which activation must not get into.
            self._loop.call_soon(self._on_maybe_committed, shard, end_offset)
        elif shard.state is ShardState.LOADING and error is not ErrorCode.NOT_LEADER_OR_FOLLOWER:
            logger.error("%s: not loaded: %s", shard.hosted.log.topic_partition, error.text)
            shard.state = ShardState.FAILED

    def _on_maybe_committed(self, shard: CoordinatorShard, end_offset: int) -> None:
        if shard.state is ShardState.LOADING:
            self._activate_when_committed(shard, end_offset)


def _touches_groups(delta: Delta) -> bool:
    return any(resource.type is ResourceType.GROUP for resource in delta.configs_changed)
