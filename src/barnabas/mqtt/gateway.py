"""All MQTT clients of one broker: who is connected, and the way from their messages to topics and back.

The broker makes one if it has an MQTT listener (`server/listener_kinds`). In a cluster each broker has its own; a
client that connects with an id which is taken on the same broker takes it over.
"""

import asyncio
import logging
from collections.abc import Coroutine, Iterator
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from barnabas.config.mqtt import MqttConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.metadata.image import Delta
from barnabas.mqtt.connection import MqttConnection
from barnabas.mqtt.ingest import Ingest, Message, OnPublished
from barnabas.mqtt.mapping import Mapping, parse_rules
from barnabas.mqtt.packet_reader import PacketBuffers
from barnabas.mqtt.packets import Publish
from barnabas.mqtt.partitions import Partitions
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.record_headers import headers_of
from barnabas.mqtt.retained import RETAINED, Retained, retained_topic
from barnabas.net.context import ConnectionContext
from barnabas.net.settings import Listener
from barnabas.records.codec import partition_for_key
from barnabas.server.auto_topic_creation import topic_on_demand
from barnabas.transport.channel import Channel

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)


class Gateway:
    def __init__(self, broker: "Broker") -> None:
        self._broker = broker
        self.config: MqttConfig = broker.settings.static.mqtt
        self.buffers = PacketBuffers()
        self.mapping = Mapping(parse_rules(self.config.mqtt_topic_rules))
        self.partitions = Partitions(broker)
        self._ingest = Ingest(self.partitions, broker.timers, broker.clock, self._max_message_bytes)
        self.retained = Retained(self.partitions, self.is_known, self.run)
        self._clients: dict[str, MqttConnection] = {}
        self._tasks: set[asyncio.Task[Any]] = set()
        self._stopped = False

    def connect(
        self, context: ConnectionContext, channel: Channel, peer: tuple[str, int], listener: Listener
    ) -> MqttConnection:
        return MqttConnection(self, context, channel, peer, listener)

    def on_delta(self, delta: Delta) -> None:
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

    # --- for the connections ---

    def on_connected(self, connection: MqttConnection) -> None:
        assert connection.client_id is not None
        before = self._clients.get(connection.client_id)
        if before is not None:
            before.disconnect(ReasonCode.SESSION_TAKEN_OVER)
        self._clients[connection.client_id] = connection

    def on_closed(self, connection: MqttConnection) -> None:
        if connection.client_id is not None and self._clients.get(connection.client_id) is connection:
            del self._clients[connection.client_id]

    def new_client_id(self) -> str:
        return f"auto-{uuid4().hex}"

    def now_ms(self) -> int:
        return self._broker.clock.now_ms()

    def run(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._on_task_done)
        return task

    def _on_task_done(self, task: "asyncio.Task[None]") -> None:
        self._tasks.discard(task)
        if not task.cancelled() and task.exception() is not None:
            logger.error("a task of the MQTT listener failed", exc_info=task.exception())

    def topics(self) -> Iterator[tuple[str, int]]:
        for topic in list(self._broker.cluster.image.topics.values()):
            yield topic.name, len(topic.partitions)

    def is_known(self, topic: str) -> bool:
        return topic in self._broker.cluster.image.topics

    def missing_topic(self, topic: str, packet: Publish) -> str | None:
        """The first topic that has to be created before the message can be stored."""
        if not self.is_known(topic):
            return topic
        return RETAINED if packet.retain and not self.is_known(RETAINED) else None

    async def create(self, topic: str) -> None:
        """Raises KafkaError if there is no such topic afterwards."""
        config, image = self._broker.config, self._broker.cluster.image
        if topic == RETAINED:
            wanted = retained_topic(config, image)
        elif self.config.mqtt_auto_create_topics_enable:
            wanted = topic_on_demand(topic, config, image)
        else:
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "topics are not created on demand")
        await self._broker.auto_topic_creation.create(wanted)
        if not self.is_known(topic):
            raise KafkaError(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, "the topic could not be created")

    async def start_offset(self, topic: str, partition: int) -> int:
        """Where to go on after records that were deleted before they were read."""
        return await self.partitions.end_offset(topic, partition, earliest=True)

    def flush(self) -> None:
        self._ingest.flush()

    def publish(self, topic: str, client_id: str, packet: Publish, on_published: OnPublished) -> None:
        key = (packet.topic if self.config.mqtt_key == "topic" else client_id).encode()
        count = len(self._broker.cluster.image.topics[topic].partitions)
        headers = headers_of(packet, client_id)
        if packet.retain:
            on_published = when_both(on_published)
            # The key is the topic, whatever that of other records is: the last message of each topic is kept.
            kept = Message(packet.topic.encode(), packet.payload or None, headers, packet.qos, on_published)
            self._ingest.publish(RETAINED, 0, kept)
        message = Message(key, packet.payload, headers, packet.qos, on_published)
        self._ingest.publish(topic, partition_for_key(key, count), message)

    def publish_will(self, client_id: str, packet: Publish) -> None:
        if not self._stopped:
            self.run(self._publish_will(client_id, packet))

    async def _publish_will(self, client_id: str, packet: Publish) -> None:
        try:
            topic = self.mapping.topic_for(packet.topic)
            while (missing := self.missing_topic(topic, packet)) is not None:
                await self.create(missing)
        except (KafkaError, MqttError) as error:
            logger.info("the will of %s cannot be published: %s", client_id, error)
            return
        self.publish(topic, client_id, packet, lambda error: None)

    def _max_message_bytes(self, topic: str) -> int:
        return self._broker.settings.topic_config(self._broker.cluster.image, topic).max_message_bytes


def when_both(on_published: OnPublished) -> OnPublished:
    """For a message that is stored in two places: called back once, with the first error if there is one."""
    outcomes: list[ErrorCode] = []

    def on_one(error: ErrorCode) -> None:
        outcomes.append(error)
        if len(outcomes) == 2:
            on_published(next(filter(None, outcomes), ErrorCode.NONE))

    return on_one
