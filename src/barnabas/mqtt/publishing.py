"""What one client publishes: topic aliases, rights, quotas, and acknowledgements in the order of the messages.

QoS 2: a packet id stands for one message until PUBREL. In a session that outlives its connection that holds over
restarts (`exactly_once`), else as long as the connection.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.mqtt.codec import encode_ack
from barnabas.mqtt.exactly_once import ExactlyOnce
from barnabas.mqtt.packets import V311, PacketType, Publish
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.reason_codes import MqttError, ReasonCode, reason_of
from barnabas.mqtt.routes import Route, take_run
from barnabas.transport.stream import FIRST_FREE_REASON

if TYPE_CHECKING:
    from barnabas.mqtt.access import Access
    from barnabas.mqtt.connection import MqttConnection
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

ROUTES_KEPT: Final = 1000
SUCCESS: Final = {kind: bytes((kind << 4, 2)) for kind in (PacketType.PUBACK, PacketType.PUBREC)}
UNACKNOWLEDGED: Final = FIRST_FREE_REASON
TOPIC_IN_CREATION: Final = FIRST_FREE_REASON << 1
THROTTLED: Final = FIRST_FREE_REASON << 5


class Publishing:
    def __init__(
        self, gateway: "Gateway", connection: "MqttConnection", access: "Access", exactly_once: ExactlyOnce | None
    ) -> None:
        self._gateway = gateway
        self._connection = connection
        self._access = access
        self._exactly_once = exactly_once
        self._limit = gateway.config.mqtt_receive_maximum
        self._routes: dict[bytes, Route] = {}
        self._token: tuple[object, int] = (None, 0)
        self._will_acknowledge = False
        self._aliases: dict[int, str] = {}
        self._acks: deque[list[Any]] = deque()
        """[packet id, outcome or None, PUBACK or PUBREC, why], in the order of the messages."""
        self._received: set[int] = set() if exactly_once is None else exactly_once.packet_ids
        """Packet ids of messages with QoS 2 until they are released: one that comes again is the same message."""
        self._known: set[int] = set() if exactly_once is None else set(exactly_once.stored)
        """Those of them that were stored before this connection, or are under way: nothing is to be appended."""

    @property
    def unacknowledged(self) -> int:
        return len(self._acks)

    def on_publish(self, packet: Publish) -> bool:
        """Whether the packet has to wait until its topic is created, and comes again."""
        if packet.qos == 2 and packet.packet_id in self._known:
            self._on_repeated(packet.packet_id)
            return False
        self._resolve_alias(packet)
        ack: list[Any] = [packet.packet_id, None, PacketType.PUBREC if packet.qos == 2 else PacketType.PUBACK, ""]
        gateway = self._gateway
        try:
            topic = gateway.mapping.topic_for(packet.topic)
            if not self._access.may_write(topic):
                raise MqttError(ReasonCode.NOT_AUTHORIZED, f"not allowed to publish to {packet.topic!r}")
            missing = gateway.missing_topic(topic, packet)
            if missing is not None and missing == topic and not self._access.may_create(topic):
                raise MqttError(ReasonCode.NOT_AUTHORIZED, f"not allowed to create the topic {topic}")
        except MqttError as error:
            self._on_refused(packet, ack, error)
            return False
        if missing is not None:
            self._connection.pause(TOPIC_IN_CREATION)
            gateway.run(self._create(missing))
            return True
        gateway.publish_count += 1
        throttle_ms = self._access.charge_publish(len(packet.payload) + len(packet.topic))
        if throttle_ms:
            self._connection.pause(THROTTLED)
            gateway.call_after(throttle_ms, lambda: self._connection.resume(THROTTLED))
        if packet.qos:
            self._expect_ack(ack, packet.qos)
        client_id, qos = self._connection.session_client_id, packet.qos

        def on_published(error: ErrorCode) -> None:
            self._on_published(ack, qos, error)

        if qos < 2 and not packet.retain and not packet.properties:
            self._learn(topic, client_id, packet.topic)
        if qos == 2 and self._exactly_once is not None:
            gateway.publish_once(topic, client_id, packet, self._exactly_once, on_published)
        else:
            gateway.publish(topic, client_id, packet, on_published)
        return False

    def take_run(self, data: bytes, position: int, count: int) -> tuple[int, int]:
        """Plain messages at the front, on the short way; (where they end, how many)."""
        gateway = self._gateway
        token = gateway.route_token
        if token != self._token:
            self._token = token
            self._routes.clear()
        if not self._routes:
            return position, 0
        position, taken = take_run(
            data,
            position,
            count,
            self._connection.version,
            self._routes,
            gateway.ingest,
            self._acks,
            self._limit,
            self._on_failed,
            self._on_stored,
        )
        gateway.publish_count += taken
        return position, taken

    def _learn(self, topic: str, client_id: str, name: str) -> None:
        token = self._gateway.route_token
        if token != self._token or len(self._routes) >= ROUTES_KEPT:
            self._token = token
            self._routes.clear()
        route = self._gateway.route(topic, client_id, name)
        if route is not None:
            self._routes[name.encode()] = route

    def _on_failed(self, error: ErrorCode) -> None:
        self._on_published([], 0, error)

    def _on_stored(self, ack: list[Any], error: ErrorCode) -> None:
        if error is not ErrorCode.NONE:
            self._on_published(ack, 1, error)
            return
        ack[1] = 0
        if not self._will_acknowledge:
            self._will_acknowledge = True
            self._gateway.call_soon(self._send_acks)

    def on_release(self, packet_id: int) -> None:
        if self._exactly_once is not None and packet_id in self._received:
            self._gateway.run(self._release(self._exactly_once, packet_id))
            return
        code = ReasonCode.SUCCESS if packet_id in self._received else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        self._complete(packet_id, code)

    async def _release(self, exactly_once: ExactlyOnce, packet_id: int) -> None:
        try:
            await exactly_once.release(packet_id)
        except KafkaError as error:
            logger.info("%r: a message could not be released: %s: closing", self._connection, error)
            self._connection.disconnect(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)
        else:
            self._complete(packet_id, ReasonCode.SUCCESS)

    def _complete(self, packet_id: int, code: ReasonCode) -> None:
        self._received.discard(packet_id)
        self._known.discard(packet_id)
        connection = self._connection
        connection.send(encode_ack(PacketType.PUBCOMP, packet_id, code, {}, connection.version))

    def _expect_ack(self, ack: list[Any], qos: int) -> None:
        self._acks.append(ack)
        if qos == 2:
            self._received.add(ack[0])
            self._known.add(ack[0])
        if len(self._acks) > self._limit or len(self._received) > self._limit:
            raise MqttError(ReasonCode.RECEIVE_MAXIMUM_EXCEEDED, "too many messages are not acknowledged yet")
        if len(self._acks) == self._limit:
            self._connection.pause(UNACKNOWLEDGED)

    def _on_repeated(self, packet_id: int) -> None:
        """A message with QoS 2 that is known: it is not stored again. PUBREC is repeated, if it has gone out."""
        if all(ack[0] != packet_id or ack[2] is not PacketType.PUBREC for ack in self._acks):
            connection = self._connection
            connection.send(encode_ack(PacketType.PUBREC, packet_id, ReasonCode.SUCCESS, {}, connection.version))

    def _resolve_alias(self, packet: Publish) -> None:
        alias = packet.properties.pop(Property.TOPIC_ALIAS, None)
        if alias is None:
            return
        if alias > self._gateway.config.mqtt_topic_alias_maximum:
            raise MqttError(ReasonCode.TOPIC_ALIAS_INVALID, f"the topic alias {alias} is too large")
        if packet.topic:
            self._aliases[alias] = packet.topic
        elif alias in self._aliases:
            packet.topic = self._aliases[alias]
        else:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"the topic alias {alias} is not known")

    def _on_refused(self, packet: Publish, ack: list[Any], error: MqttError) -> None:
        """MQTT 5 has a reason for the one message; with 3.1.1, and without an acknowledgement, the connection ends."""
        if not packet.qos or self._connection.version == V311:
            raise error
        logger.info("%r: %s", self._connection, error)
        ack[1], ack[3] = error.code, str(error)
        self._acks.append(ack)
        self._send_acks()

    async def _create(self, topic: str) -> None:
        try:
            await self._gateway.create(topic)
        except KafkaError as error:
            logger.info("%r: topic %s: %s: closing", self._connection, topic, error)
            self._connection.disconnect(reason_of(error.code))
            return
        self._connection.resume(TOPIC_IN_CREATION)

    def _on_published(self, ack: list[Any], qos: int, error: ErrorCode) -> None:
        connection = self._connection
        if connection.closed or (not qos and error is ErrorCode.NONE):
            return
        if error is not ErrorCode.NONE and (not qos or connection.version == V311 or error.retriable):
            # A reason would make the client give up the message; after a reconnect it sends it again.
            logger.info("%r: a message was not stored: %s: closing", connection, error.name)
            connection.disconnect(ReasonCode.SERVER_BUSY if error.retriable else reason_of(error))
            return
        ack[1] = ReasonCode.SUCCESS if error is ErrorCode.NONE else reason_of(error)
        ack[3] = "" if error is ErrorCode.NONE else error.text
        self._send_acks()

    def _send_acks(self) -> None:
        acks, connection = self._acks, self._connection
        self._will_acknowledge = False
        plain: list[bytes] = []
        while acks and acks[0][1] is not None:
            packet_id, code, kind, why = acks.popleft()
            if not code:
                plain.append(SUCCESS[kind] + packet_id.to_bytes(2, "big"))
                continue
            if plain:
                connection.send(b"".join(plain))
                plain.clear()
            if code >= ReasonCode.UNSPECIFIED_ERROR and kind is PacketType.PUBREC:
                # The client gives up this message, and may use the id again.
                self._received.discard(packet_id)
                self._known.discard(packet_id)
            properties: Properties = {Property.REASON_STRING: why} if why and connection.wants_reasons else {}
            connection.send(encode_ack(kind, packet_id, code, properties, connection.version))
        if plain:
            connection.send(b"".join(plain))
        if len(acks) * 2 <= self._limit:
            connection.resume(UNACKNOWLEDGED)
