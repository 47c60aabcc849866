"""All MQTT clients of one broker: who is connected, and the way from their messages to topics and back.

The broker makes one if it has an MQTT listener (`server/listener_kinds`). In a cluster each broker has its own; which
of them has a client's session is decided in the log of sessions (`session_store`).
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from barnabas.config.mqtt import MqttConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import Session
from barnabas.metadata.image import Delta
from barnabas.mqtt.access import Access
from barnabas.mqtt.connection import MqttConnection
from barnabas.mqtt.exactly_once import ExactlyOnce, Waiting
from barnabas.mqtt.ingest import Ingest, Message, OnPublished
from barnabas.mqtt.login import Login
from barnabas.mqtt.mapping import Mapping, parse_rules
from barnabas.mqtt.packet_reader import PacketBuffers
from barnabas.mqtt.packets import Publish
from barnabas.mqtt.partitions import Partitions
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.record_headers import headers_of
from barnabas.mqtt.retained import RETAINED, Retained, retained_topic
from barnabas.mqtt.routes import Route
from barnabas.mqtt.session_keeper import SessionKeeper
from barnabas.mqtt.session_store import SESSIONS, SessionStore, sessions_topic
from barnabas.mqtt.shared import SharedReader
from barnabas.net.context import ConnectionContext, ServedConnection
from barnabas.net.settings import Listener
from barnabas.records.codec import partition_for_key
from barnabas.server.auto_topic_creation import topic_on_demand
from barnabas.server.listener_security import ListenerSecurity
from barnabas.server.request import ANONYMOUS, Principal
from barnabas.transport.channel import Channel

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)

CREATION_TIMEOUT_MS = 5_000


class Gateway:
    def __init__(self, broker: "Broker") -> None:
        self.broker = broker
        self.config: MqttConfig = broker.settings.static.mqtt
        self.buffers = PacketBuffers()
        self.mapping = Mapping(parse_rules(self.config.mqtt_topic_rules))
        self.partitions = Partitions(broker)
        self.ingest = self._ingest = Ingest(self.partitions, broker.timers, broker.clock, self._max_message_bytes)
        self.retained = Retained(self.partitions, self.is_known, self.run)
        self.store = SessionStore(self, self._on_session_taken)
        self._keeper = SessionKeeper(self, self.store)
        self._keeping: asyncio.Task[None] | None = None
        self._shared: dict[str, SharedReader] = {}
        self._logins: dict[str, Login] = {}
        self._clients: dict[str, MqttConnection] = {}
        self._ending: dict[str, asyncio.Future[None]] = {}
        """What clients that are gone have still to store."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopped = False
        self.publish_count = 0
        self.delivery_count = 0

    def connect(
        self, context: ConnectionContext, channel: Channel, peer: tuple[str, int], listener: Listener
    ) -> ServedConnection:
        security = listener.security
        session = security.session_of(channel) if isinstance(security, ListenerSecurity) else None
        principal = ANONYMOUS if session is None else session.principal
        connection = MqttConnection(self, context, channel, peer, listener, principal)
        if security is not None and session is None:
            logger.info("%r: no rule of ssl.principal.mapping.rules matches its certificate: closing", connection)
            context.loop.call_soon(connection.close)
        return connection

    def on_delta(self, delta: Delta) -> None:
        if self._keeping is None:
            self._keeping = self.run(self._keeper.run())
        self.store.follow(delta.image)
        topics = {topic.name: len(topic.partitions) for topic, _ in delta.partitions}
        if topics:
            for client in list(self._clients.values()):
                if client.egress is not None:
                    client.egress.on_topics(topics)

    async def stop(self) -> None:
        """The connections are closed by their server; here end the tasks."""
        self._stopped = True
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    # --- who is connected ---

    @property
    def connection_count(self) -> int:
        return len(self._clients)

    @property
    def in_flight_count(self) -> int:
        return sum(client.in_flight for client in self._clients.values())

    @property
    def session_count(self) -> int:
        """Sessions that are stored, of the whole cluster."""
        return sum(len(each.table.sessions) for each in self.store.partitions)

    def on_connected(self, connection: MqttConnection) -> None:
        self.take_over(connection.session_client_id)
        self._clients[connection.session_client_id] = connection

    def take_over(self, client_id: str) -> "asyncio.Future[None] | None":
        """Ends the connection that has the client id here. Done once that has stored its session."""
        before = self._clients.get(client_id)
        if before is not None:
            before.disconnect(ReasonCode.SESSION_TAKEN_OVER)
        return self._ending.get(client_id)

    def on_closed(self, connection: MqttConnection) -> None:
        if connection.client_id is not None and self._clients.get(connection.client_id) is connection:
            del self._clients[connection.client_id]

    def on_ending(self, client_id: str, written: "asyncio.Future[None]") -> None:
        self._ending[client_id] = written

        def forget(_: object) -> None:
            if self._ending.get(client_id) is written:
                del self._ending[client_id]

        written.add_done_callback(forget)

    def _on_session_taken(self, session: Session) -> None:
        """Perhaps by a connection to another broker."""
        client = self._clients.get(session.client_id)
        if client is None or client.established is None:
            return
        live = client.established.live
        if live.is_stored and live.session.nonce != session.nonce and live.session.generation < session.generation:
            live.is_lost = True
            client.disconnect(ReasonCode.SESSION_TAKEN_OVER)

    def shared_reader(self, text: str) -> SharedReader:
        """Of `$share/NAME/FILTER`, for all clients here that have it."""
        reader = self._shared.get(text)
        if reader is None:
            reader = self._shared[text] = SharedReader(self, text)
        return reader

    def forget_shared(self, text: str) -> None:
        self._shared.pop(text, None)

    def login_of(self, listener: Listener) -> Login:
        login = self._logins.get(listener.name)
        if login is None:
            broker = self.broker
            login = self._logins[listener.name] = Login(
                broker.settings.static, listener.name, listener.host, lambda: broker.cluster.image, broker.record_work
            )
        return login

    def new_client_id(self) -> str:
        return f"auto-{uuid4().hex}"

    # --- the broker and its cluster ---

    def now_ms(self) -> int:
        return self.broker.clock.now_ms()

    def monotonic_ms(self) -> int:
        return self.broker.clock.monotonic_ms()

    def call_soon(self, work: Callable[[], None]) -> None:
        asyncio.get_running_loop().call_soon(work)

    def call_after(self, delay_ms: int, work: Callable[[], None]) -> None:
        self.broker.timers.call_after(delay_ms, work)

    @property
    def identity(self) -> tuple[int, int]:
        """Node id and broker epoch: another one after each start."""
        return int(self.broker.node_id), int(self.broker.cluster.broker_epoch)

    @property
    def is_alone(self) -> bool:
        image = self.broker.cluster.image
        return len(image.brokers) + len(image.fenced_brokers) <= 1

    def live_brokers(self) -> dict[int, int]:
        return {int(number): int(each.epoch) for number, each in self.broker.cluster.image.brokers.items()}

    def leads(self, topic: str, partition: int) -> bool:
        hosted = self.broker.replicas.find_ready(topic, partition)
        return hosted is not None and hosted.state.is_leader

    def is_at_end(self, topic: str, partition: int, position: int) -> bool:
        """Whether this broker leads, nothing comes after the position, and nothing is on its way."""
        hosted = self.broker.replicas.find_ready(topic, partition)
        if hosted is None or not hosted.state.is_leader or self._ingest.is_busy(topic, partition):
            return False
        return hosted.log.log_end_offset == position

    async def next_producer_id(self) -> int:
        return int(await self.broker.producer_ids.next_id())

    def run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task of the MQTT listener failed", exc_info=task.exception())

    # --- topics ---

    def topics(self) -> Iterator[tuple[str, int]]:
        for topic in list(self.broker.cluster.image.topics.values()):
            yield topic.name, len(topic.partitions)

    def topic_id(self, topic: str) -> str:
        found = self.broker.cluster.image.topics.get(topic)
        return "" if found is None else bytes(found.topic_id).hex()

    def is_known(self, topic: str) -> bool:
        return topic in self.broker.cluster.image.topics

    def missing_topic(self, topic: str, packet: Publish) -> str | None:
        """The first topic that has to be created before the message can be stored."""
        if not self.is_known(topic):
            return topic
        return RETAINED if packet.retain and not self.is_known(RETAINED) else None

    async def create(self, topic: str) -> None:
        """Raises KafkaError if there is no such topic afterwards."""
        config, image = self.broker.settings.static, self.broker.cluster.image
        if topic == RETAINED:
            wanted = retained_topic(config, image)
        elif topic == SESSIONS:
            wanted = sessions_topic(config, image)
        elif self.config.mqtt_auto_create_topics_enable:
            wanted = topic_on_demand(topic, config, image)
        else:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topics are not created on demand")
        await self.broker.auto_topic_creation.create(wanted)
        deadline_ms = self.monotonic_ms() + CREATION_TIMEOUT_MS
        while not self._has_leaders(topic):
            # Another broker is the controller: what it has decided comes here a moment later.
            if self.monotonic_ms() > deadline_ms:
                raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic could not be created")
            await asyncio.sleep(0.01)

    def _has_leaders(self, topic: str) -> bool:
        found = self.broker.cluster.image.topics.get(topic)
        return found is not None and all(each.leader >= 0 for each in found.partitions)

    async def start_offset(self, topic: str, partition: int) -> int:
        """Where to go on after records that were deleted before they were read."""
        return await self.partitions.end_offset(topic, partition, earliest=True)

    # --- messages ---

    def flush(self) -> None:
        self._ingest.flush()

    def append(self, topic: str, partition: int, message: Message) -> None:
        self._ingest.publish(topic, partition, message)

    def publish(self, topic: str, client_id: str, packet: Publish, on_published: OnPublished) -> None:
        key, partition = self._place(topic, client_id, packet)
        headers = headers_of(packet, client_id)
        if packet.retain:
            # Of a message with QoS 0 only failures are reported.
            on_published = when_both(on_published) if packet.qos else on_published
            self._retain(packet, headers, on_published)
        self._ingest.publish(topic, partition, Message(key, packet.payload, headers, packet.qos, on_published))

    def publish_once(
        self, topic: str, client_id: str, packet: Publish, exactly_once: ExactlyOnce, on_published: OnPublished
    ) -> None:
        """A message with QoS 2 that is stored once, however often it comes."""
        key, partition = self._place(topic, client_id, packet)
        headers = headers_of(packet, client_id)
        if packet.retain:
            on_published = when_both(on_published)
            self._retain(packet, headers, on_published)
        exactly_once.publish(Waiting(packet.packet_id, topic, partition, key, packet.payload, headers, on_published))

    @property
    def route_token(self) -> tuple[object, int]:
        """While it is the same, so are topics, rights and settings of topics."""
        authorizer = self.broker.authorizer
        return self.broker.cluster.image, 0 if authorizer is None else authorizer.version

    def route(self, topic: str, client_id: str, name: str) -> Route | None:
        """For messages without properties to that MQTT topic; None if each of them has to be looked at."""
        if self.broker.client_quotas.enabled:
            return None
        key, partition = self._place(topic, client_id, Publish(topic=name, payload=b""))
        return Route(name, client_id, key, topic, partition, self._max_message_bytes(topic))

    def _place(self, topic: str, client_id: str, packet: Publish) -> tuple[bytes, int]:
        key = (packet.topic if self.config.mqtt_key == "topic" else client_id).encode()
        return key, partition_for_key(key, len(self.broker.cluster.image.topics[topic].partitions))

    def _retain(self, packet: Publish, headers: list[tuple[str, bytes | None]], on_published: OnPublished) -> None:
        # The key is the topic, whatever that of other records is: the last message of each topic is kept.
        kept = Message(packet.topic.encode(), packet.payload or None, headers, packet.qos, on_published)
        self._ingest.publish(RETAINED, 0, kept)

    def publish_will_soon(self, client_id: str, access: Access, packet: Publish) -> None:
        if not self._stopped:
            self.run(self._publish_will(client_id, access, packet))

    async def publish_will(self, session: Session, packet: Publish) -> None:
        """Returns once it is stored, or refused."""
        kind, _, name = session.user.partition(":")
        access = Access(self.broker, Principal(kind, name), session.host, session.client_id)
        await self._publish_will(session.client_id, access, packet)

    async def _publish_will(self, client_id: str, access: Access, packet: Publish) -> None:
        try:
            topic = self.mapping.topic_for(packet.topic)
            if not access.may_write(topic):
                raise MqttError(ReasonCode.NOT_AUTHORIZED, "it is not allowed to publish there")
            while (missing := self.missing_topic(topic, packet)) is not None:
                if missing == topic and not access.may_create(topic):
                    raise MqttError(ReasonCode.NOT_AUTHORIZED, "it is not allowed to create the topic")
                await self.create(missing)
        except (KafkaError, MqttError) as error:
            logger.info("the will of %s cannot be published: %s", client_id, error)
            return
        published: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self.publish(topic, client_id, packet, lambda error: None if published.done() else published.set_result(None))
        await published

    def _max_message_bytes(self, topic: str) -> int:
        return self.broker.settings.topic_config(self.broker.cluster.image, topic).max_message_bytes


def when_both(on_published: OnPublished) -> OnPublished:
    """For a message that is stored in two places: called back once, with the first error if there is one."""
    outcomes: list[ErrorCode] = []

    def on_one(error: ErrorCode) -> None:
        outcomes.append(error)
        if len(outcomes) == 2:
            on_published(next(filter(None, outcomes), ErrorCode.NONE))

    return on_one
