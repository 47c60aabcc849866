"""Appends to and reads from any partition of the cluster: here if this broker leads it, else at its leader.

The one way from MQTT to the logs. Locally it is what the handlers of Produce and Fetch use; another leader is sent a
Produce or Fetch request over a link of the broker's own.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

from barnabas.errors import ErrorCode, KafkaError, StorageError
from barnabas.machines.fetch_context import FetchPartition
from barnabas.mqtt.remote_reads import READ_BYTES, RemoteReads
from barnabas.net.deferred import Deferred
from barnabas.net.link import LinkError
from barnabas.protocol.messages.list_offsets import ListOffsetsPartition, ListOffsetsRequest, ListOffsetsTopic
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records import Record, iter_headers, iter_records
from barnabas.records.conversion import TakesLongerError
from barnabas.server.broker_links import LinkUse
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.purgatory import DelayedFetch
from barnabas.server.reading import READ_COMMITTED, FetchLimits, read_partitions
from barnabas.storage.append_checks import prepare

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

APPEND_TIMEOUT_MS = 30_000
LOCAL_WAIT_MS = 60_000
RETRY_MS = 100
LATEST = -1
EARLIEST = -2
PRODUCE_VERSION = 12
FETCH_VERSION = 12
LIST_OFFSETS_VERSION = 9
CODES = {int(error): error for error in ErrorCode}

OnAppended = Callable[[ErrorCode], None]


class ReadResult(NamedTuple):
    records: list[Record]
    next_offset: int


class Partitions:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self._remote = RemoteReads(broker.links)
        self._tasks: set[asyncio.Task[None]] = set()

    def append(self, topic: str, partition: int, batch: bytearray, acks: int, on_appended: OnAppended) -> None:
        """Calls back once the batch is committed (acks -1) or written, or with why it was not."""
        hosted = self._broker.replicas.find_ready(topic, partition)
        if hosted is None or not hosted.state.is_leader:
            self._append_remotely(topic, partition, batch, acks, on_appended)
            return
        try:
            info = hosted.append(memoryview(batch), acks, self._broker.clock.now_ms())
        except TakesLongerError:
            task = asyncio.get_running_loop().create_task(self._append_prepared(hosted, batch, acks, on_appended))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        except KafkaError as error:
            on_appended(error.code)
        except StorageError:
            on_appended(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            self._wait(hosted, info[1], acks, on_appended)

    async def append_and_wait(self, topic: str, partition: int, batch: bytes) -> ErrorCode:
        """Once it is committed, or could not be. The bytes stay as they are, so they can be appended again."""
        done: asyncio.Future[ErrorCode] = asyncio.get_running_loop().create_future()

        def on_appended(error: ErrorCode) -> None:
            if not done.done():
                done.set_result(error)

        self.append(topic, partition, bytearray(batch), -1, on_appended)
        return await done

    async def _append_prepared(
        self, hosted: HostedPartition, batch: bytearray, acks: int, on_appended: OnAppended
    ) -> None:
        """Its topic wants other records than these (another compression): that work is a thread's."""
        now_ms = self._broker.clock.now_ms()
        try:
            prepared = await self._broker.record_work.run(prepare, memoryview(batch), hosted.log.config, now_ms)
            info = hosted.append(memoryview(batch), acks, now_ms, prepared=prepared)
        except KafkaError as error:
            on_appended(error.code)
        except StorageError:
            on_appended(ErrorCode.KAFKA_STORAGE_ERROR)
        else:
            self._wait(hosted, info[1], acks, on_appended)

    def _wait(self, hosted: HostedPartition, last_offset: int, acks: int, on_appended: OnAppended) -> None:
        if acks and hosted.must_wait(last_offset, acks):
            deadline_ms = self._broker.clock.monotonic_ms() + APPEND_TIMEOUT_MS
            hosted.when_committed(last_offset, acks, on_appended, deadline_ms)
        else:
            on_appended(ErrorCode.NONE)

    def _append_remotely(
        self, topic: str, partition: int, batch: bytearray, acks: int, on_appended: OnAppended
    ) -> None:
        request = ProduceRequest(
            acks=acks or 1,
            timeout_ms=APPEND_TIMEOUT_MS,
            topic_data=[
                TopicProduceData(
                    name=topic, partition_data=[PartitionProduceData(index=partition, records=bytes(batch))]
                )
            ],
        )

        def on_done(response: Deferred[ProduceResponse]) -> None:
            if response.completed:
                code = response.value.responses[0].partition_responses[0].error_code
                on_appended(CODES.get(code, ErrorCode.UNKNOWN_SERVER_ERROR))
            else:
                on_appended(ErrorCode.NETWORK_EXCEPTION)

        try:
            link = self._broker.links.to(self._leader(topic, partition), LinkUse.MQTT_WRITES)
        except KafkaError as error:
            on_appended(error.code)
            return
        link.request(request, PRODUCE_VERSION).when_done(on_done)

    def _leader(self, topic: str, partition: int) -> int:
        found = self._broker.cluster.image.partition(topic, partition)
        if found is None:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        if found.leader < 0 or found.leader == self._broker.node_id:
            raise KafkaError(ErrorCode.LEADER_NOT_AVAILABLE)
        return found.leader

    async def end_offset(self, topic: str, partition: int, *, earliest: bool = False) -> int:
        """Where a reader begins that wants only what comes from now on, or all there is. Raises KafkaError."""
        hosted = self._broker.replicas.find_ready(topic, partition)
        if hosted is not None and hosted.state.is_leader:
            return hosted.log.log_start_offset if earliest else hosted.log.high_watermark
        request = ListOffsetsRequest(
            replica_id=-1,
            topics=[
                ListOffsetsTopic(
                    name=topic,
                    partitions=[
                        ListOffsetsPartition(partition_index=partition, timestamp=EARLIEST if earliest else LATEST)
                    ],
                )
            ],
        )
        link = self._broker.links.to(self._leader(topic, partition), LinkUse.MQTT_WRITES)
        try:
            response = await link.request(request, LIST_OFFSETS_VERSION)
        except LinkError as error:
            raise KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)) from error
        found = response.topics[0].partitions[0]
        if found.error_code:
            raise KafkaError(CODES.get(found.error_code, ErrorCode.UNKNOWN_SERVER_ERROR))
        offset: int = found.offset
        return offset

    async def read(self, topic: str, partition: int, offset: int) -> ReadResult:
        """The committed records from the offset on, once there are some. Raises KafkaError."""
        while True:
            hosted = self._broker.replicas.find_ready(topic, partition)
            if hosted is not None and hosted.state.is_leader:
                result = self._read_here(hosted, offset)
                if result is None:
                    await self._wait_for_records(hosted)
            else:
                result = await self._read_there(topic, partition, offset)
            if result is not None:
                return result

    def _read_here(self, hosted: HostedPartition, offset: int) -> ReadResult | None:
        wanted = FetchPartition(hosted.topic, hosted.partition, offset, READ_BYTES)
        limits = FetchLimits(FETCH_VERSION, -1, READ_BYTES, READ_COMMITTED)
        (read,), _ = read_partitions(self._broker.replicas, [wanted], limits)
        if read.error is not ErrorCode.NONE:
            raise KafkaError(read.error)
        if read.records is None or not read.records.length:
            return None
        return _decode(read.records.read(), offset, read.aborted or [])

    async def _wait_for_records(self, hosted: HostedPartition) -> None:
        woken = asyncio.get_running_loop().create_future()

        def wake(last_chance: bool) -> int:
            if not woken.done():
                woken.set_result(None)
            return 0

        fetch = DelayedFetch([hosted], 1, wake)
        self._broker.fetch_purgatory.park(fetch, LOCAL_WAIT_MS)
        try:
            await woken
        finally:
            self._broker.fetch_purgatory.finish(fetch)

    async def _read_there(self, topic: str, partition: int, offset: int) -> ReadResult | None:
        data = await self._remote.read(self._leader(topic, partition), topic, partition, offset)
        if data is None:
            return None
        if data.error_code:
            raise KafkaError(CODES.get(data.error_code, ErrorCode.UNKNOWN_SERVER_ERROR))
        if not data.records:
            return None
        aborted = [(each.producer_id, each.first_offset) for each in data.aborted_transactions or ()]
        return _decode(bytes(data.records), offset, aborted)  # type: ignore[arg-type]


def _decode(data: bytes, offset: int, aborted: list[tuple[int, int]]) -> ReadResult:
    """Records of whole batches, without those of aborted transactions and without markers."""
    records: list[Record] = []
    next_offset = offset
    view = memoryview(data)
    pending = sorted(aborted, key=lambda each: each[1])
    dropped: set[int] = set()
    for position, header in iter_headers(data):
        end = position + header.size_in_bytes
        if end > len(data):
            break
        while pending and pending[0][1] <= header.last_offset:
            dropped.add(pending.pop(0)[0])
        next_offset = header.last_offset + 1
        if header.is_control:
            dropped.discard(header.producer_id)
        elif not (header.is_transactional and header.producer_id in dropped):
            records += [each for each in iter_records(view[position:end]) if each.offset >= offset]
    return ReadResult(records, max(next_offset, offset))
