"""The log of sessions: a compacted topic that every broker with MQTT clients follows, and appends to.

Whoever takes a session waits until its own record has come back: the log has decided then. The leader of a partition
sees to what nobody is connected for: wills, sessions that are over, sessions whose broker is gone.
"""

import asyncio
import logging
import time
import zlib
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic
from barnabas.machines.mqtt.session import Intent, Session, encode_session, session_key
from barnabas.machines.mqtt.table import Applied, SessionTable
from barnabas.metadata.image import ClusterImage
from barnabas.mqtt.ingest import Message

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

SESSIONS: Final = "__mqtt_sessions"
RETRY_SECONDS: Final = 0.2
SLICE_SECONDS: Final = 0.004

Record = tuple[bytes, bytes | None]


class SessionPartition:
    """One partition, followed."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.table = SessionTable()
        self.position = 0
        self.moved = asyncio.Event()
        self.follower: asyncio.Task[None] | None = None


class SessionStore:
    def __init__(self, gateway: "Gateway", on_taken: Callable[[Session], None]) -> None:
        """`on_taken`: a session has another owner, which may be on this broker or elsewhere."""
        self._gateway = gateway
        self._on_taken = on_taken
        self._partitions: dict[int, SessionPartition] = {}
        self._topic_id: bytes | None = None

    @property
    def partitions(self) -> list[SessionPartition]:
        return list(self._partitions.values())

    def follow(self, image: ClusterImage) -> None:
        """Called when the cluster has changed: the topic may be there now, or be another one."""
        topic = image.topics.get(SESSIONS)
        if topic is None:
            return
        if self._topic_id not in (None, topic.topic_id):
            for each in self.partitions:
                if each.follower is not None:
                    each.follower.cancel()
            self._partitions.clear()
        self._topic_id = topic.topic_id
        for number in range(len(topic.partitions)):
            if number not in self._partitions:
                partition = self._partitions[number] = SessionPartition(number)
                partition.follower = self._gateway.run(self._follow(partition))

    def partition_of(self, client_id: str) -> SessionPartition | None:
        if not self._partitions:
            return None
        return self._partitions[zlib.crc32(client_id.encode()) % len(self._partitions)]

    async def current(self, client_id: str) -> SessionPartition:
        """The partition of the client, caught up with its log. Raises KafkaError."""
        if not self._gateway.is_known(SESSIONS):
            await self._gateway.create(SESSIONS)
        partition = self.partition_of(client_id)
        if partition is None:
            raise KafkaError(ErrorCode.COORDINATOR_NOT_AVAILABLE)
        await self.catch_up(partition)
        return partition

    async def catch_up(self, partition: SessionPartition) -> None:
        deadline_ms = self._gateway.monotonic_ms() + 10_000
        while True:
            try:
                end = await self._gateway.partitions.end_offset(SESSIONS, partition.number)
                break
            except KafkaError as error:
                if not error.code.retriable or self._gateway.monotonic_ms() > deadline_ms:
                    raise
            await asyncio.sleep(RETRY_SECONDS)
        while partition.position < end:
            partition.moved.clear()
            await partition.moved.wait()

    async def take(self, partition: SessionPartition, session: Session, forgotten: Sequence[Record] = ()) -> bool:
        """Whether the session belongs to that connection from here on. Raises KafkaError."""
        await self.write(partition, [*forgotten, (session_key(session.client_id), encode_session(session))])
        await self.catch_up(partition)
        known = partition.table.sessions.get(session.client_id)
        return known is not None and known.nonce == session.nonce

    async def write(self, partition: SessionPartition, records: Sequence[Record]) -> None:
        """Returns once all of them are committed. Raises KafkaError."""
        await asyncio.gather(*[self.append(partition, *record) for record in records])

    def append(self, partition: SessionPartition, key: bytes, value: bytes | None) -> "asyncio.Future[None]":
        """In the order of the calls. The caller need not wait."""
        written: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        written.add_done_callback(_seen)

        def on_published(error: ErrorCode) -> None:
            if written.done():
                return
            if error is ErrorCode.NONE:
                written.set_result(None)
            else:
                written.set_exception(KafkaError(error, "the session could not be stored"))

        self._gateway.append(SESSIONS, partition.number, Message(key, value, [], 1, on_published))
        return written

    async def accepted(self, partition: SessionPartition, client_id: str, intents: Sequence[Intent]) -> bool:
        """Whether the log took the intents, rather than another connection's claim before them. Raises KafkaError."""
        await self.catch_up(partition)
        return all(partition.table.has_intent(client_id, each) for each in intents)

    async def _follow(self, partition: SessionPartition) -> None:
        while True:
            try:
                result = await self._gateway.partitions.read(SESSIONS, partition.number, partition.position)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    partition.table.clear()
                    partition.position = await self._first_offset(partition)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            ends = time.monotonic() + SLICE_SECONDS
            for record in result.records:
                self._apply(partition, record.key or b"", record.value)
                partition.position = record.offset + 1
                if time.monotonic() > ends:
                    await asyncio.sleep(0)
                    ends = time.monotonic() + SLICE_SECONDS
            partition.position = result.next_offset
            partition.moved.set()

    async def _first_offset(self, partition: SessionPartition) -> int:
        try:
            return await self._gateway.start_offset(SESSIONS, partition.number)
        except KafkaError:
            return 0

    def _apply(self, partition: SessionPartition, key: bytes, value: bytes | None) -> None:
        try:
            applied, client_id = partition.table.apply(key, value)
        except ValueError as fault:
            logger.warning("a record of %s-%d cannot be read: %s", SESSIONS, partition.number, fault)
            return
        session = partition.table.sessions.get(client_id)
        if applied is Applied.TAKEN and session is not None:
            self._on_taken(session)
        elif applied is Applied.IGNORED and session is not None and self._gateway.leads(SESSIONS, partition.number):
            # Compaction keeps the last record of a key, so that must not be one that does not count.
            self.append(partition, session_key(client_id), encode_session(session))


def sessions_topic(config: BrokerConfig, image: ClusterImage) -> NewTopic:
    """With as many replicas as the coordinators' topics have, if there are so many brokers."""
    known_count = len(image.brokers) + len(image.fenced_brokers)
    factor = min(config.offsets_topic_replication_factor, known_count)
    configs = (("cleanup.policy", "compact"), ("segment.bytes", str(config.offsets_topic_segment_bytes)))
    return NewTopic(SESSIONS, config.mqtt.mqtt_session_topic_num_partitions, factor, configs=configs)


def _seen(written: "asyncio.Future[None]") -> None:
    """Nobody has to look at the outcome."""
    if not written.cancelled():
        written.exception()
