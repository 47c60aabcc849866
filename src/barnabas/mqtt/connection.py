"""One MQTT connection: packets in, packets out, keep-alive, and what this client has subscribed to.

Made by the gateway for each connection that is accepted on an MQTT listener. A session lives as long as its connection.
Messages of a client are acknowledged in the order in which they came. While the topic of a message is being created,
nothing further is read from its client.
"""

import logging
from collections import deque
from typing import TYPE_CHECKING, Any

from barnabas.errors import ErrorCode, KafkaError
from barnabas.mqtt.codec import decode, encode, encode_ack, encode_publish
from barnabas.mqtt.egress import Egress
from barnabas.mqtt.packet_reader import PacketReader, packet_bytes
from barnabas.mqtt.packets import (
    V5,
    V311,
    Ack,
    Connack,
    Connect,
    Disconnect,
    Packet,
    PacketType,
    Ping,
    Publish,
    Subscribe,
    SubscriptionAck,
    Unsubscribe,
)
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.reason_codes import CONNACK_311, MqttError, ReasonCode, malformed, reason_of
from barnabas.net.context import ConnectionContext
from barnabas.net.settings import Listener
from barnabas.transport.channel import Channel
from barnabas.transport.stream import FIRST_FREE_REASON, Stream

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 10_000
PACKETS_PER_TURN = 256
FIRST_PACKET_BYTES = 64 * 1024
"""Until a client is known."""
UNREAD_BYTES = 1024 * 1024
UNACKNOWLEDGED = FIRST_FREE_REASON
TOPIC_IN_CREATION = FIRST_FREE_REASON << 1
STOPPING = FIRST_FREE_REASON << 2
SUBSCRIBING = FIRST_FREE_REASON << 3
PINGRESP = b"\xd0\x00"


class MqttConnection:
    def __init__(
        self,
        gateway: "Gateway",
        context: ConnectionContext,
        channel: Channel,
        peer: tuple[str, int],
        listener: Listener,
    ) -> None:
        self._gateway = gateway
        self._context = context
        self.peer_host, self.peer_port = peer
        self.listener = listener
        self.closed = False
        self.version = V5
        self.client_id: str | None = None
        self._connect: Connect | None = None
        self._aliases: dict[int, str] = {}
        self._acks: deque[list[Any]] = deque()
        """[packet id, outcome or None, PUBACK or PUBREC], in the order of the messages."""
        self._received: set[int] = set()
        """Packet ids of messages with QoS 2 until they are released: one that comes again is the same message."""
        self._last_received_ms = context.clock.monotonic_ms()
        self._keep_alive_ms = CONNECT_TIMEOUT_MS
        self._timer = context.timers.call_after(CONNECT_TIMEOUT_MS, self._on_keep_alive)
        self.egress: Egress | None = None
        self._stream = Stream(
            context.loop,
            channel,
            self,
            gateway.buffers,
            context.budget,
            max_frame_bytes=min(FIRST_PACKET_BYTES, gateway.config.mqtt_max_packet_bytes),
            reader=PacketReader,
        )
        assert isinstance(self._stream.frames, PacketReader)
        self._reader = self._stream.frames
        self._reader.on_packets = self._on_packets

    def __repr__(self) -> str:
        return f"MqttConnection({self.client_id or '?'} {self.peer_host}:{self.peer_port} on {self.listener.name})"

    # --- for the server and the gateway ---

    @property
    def last_active_ms(self) -> int:
        return self._last_received_ms

    def send(self, packet: bytes) -> None:
        if not self.closed:
            self._stream.output.add_bytes(packet)
            self._context.flush_soon(self)

    @property
    def is_congested(self) -> bool:
        """The client does not read what it is sent."""
        return self._stream.output.queued_bytes > UNREAD_BYTES

    def flush(self) -> None:
        if self._stream.output and not self._stream.writing and not self.closed:
            self._stream.write()

    def finish(self) -> None:
        """The broker stops: take leave, then close."""
        self._stream.pause(STOPPING)
        self.disconnect(ReasonCode.SERVER_SHUTTING_DOWN)

    def disconnect(self, code: ReasonCode, why: str = "") -> None:
        """Close with a reason, as far as the version has one."""
        if self.closed:
            return
        if self._connect is not None and self.version == V5:
            properties: Properties = {Property.REASON_STRING: why} if why else {}
            self._stream.output.add_bytes(encode(Disconnect(code=code, properties=properties), V5))
        self._stream.write()
        self.close()

    def close(self) -> None:
        if self.closed:
            return
        self.closed = True
        self._stream.close()
        self._context.timers.cancel(self._timer)
        if self.egress is not None:
            self.egress.close()
        will = self._connect.will if self._connect is not None else None
        self._context.on_closed(self)
        self._gateway.on_closed(self)
        if will is not None and self.client_id is not None:
            message = Publish(
                topic=will.topic, payload=will.payload, qos=will.qos, retain=will.retain, properties=will.properties
            )
            self._gateway.publish_will(self.client_id, message)

    # --- called by the stream ---

    def on_frame(self, frame: memoryview) -> None:
        """One large packet. While its topic is being created it is kept as received."""
        if self._handle(frame):
            self._reader.keep_whole(frame)

    def on_bad_size(self, size: int) -> None:
        limit = self._stream.frames.max_bytes
        logger.info("%r: a packet of %d bytes, at most %d are taken: closing", self, size, limit)
        self.disconnect(ReasonCode.PACKET_TOO_LARGE)

    def on_progress(self) -> None:
        self._last_received_ms = self._context.clock.monotonic_ms()

    def on_received(self) -> None:
        self.flush()

    def on_writable(self) -> None:
        self._stream.write()
        if self.egress is not None and not self.is_congested:
            self.egress.wake()

    def on_end_of_input(self) -> None:
        self.close()

    def on_lost(self, error: OSError) -> None:
        logger.debug("%r: %s", self, error)
        self.close()

    def _on_packets(self, view: memoryview) -> int:
        """Whole packets at the front, up to a turn's worth; where it stopped."""
        position, end, left = 0, len(view), PACKETS_PER_TURN
        stream = self._stream
        while end - position >= 2 and not stream.pauses:
            size = packet_bytes(view[position : position + 5])
            if not size:
                if end - position >= 5:
                    self._refuse(malformed("a length has more than four bytes"))
                return position
            if size > stream.frames.max_bytes:
                self.on_bad_size(size)
                return position
            if position + size > end:
                return position
            if not left:
                stream.give_way()
                return position
            left -= 1
            if self._handle(view[position : position + size]):
                return position
            if self.closed:
                return end
            position += size
        return position

    def _handle(self, packet: memoryview) -> bool:
        """Whether the packet has to wait, and comes again."""
        try:
            return self._on_packet(decode(packet, self.version))
        except MqttError as error:
            self._refuse(error)
        except Exception:
            logger.exception("%r: a packet could not be handled: closing", self)
            self.disconnect(ReasonCode.UNSPECIFIED_ERROR)
        return False

    def _refuse(self, error: MqttError) -> None:
        logger.info("%r: %s: closing", self, error)
        if self._connect is None and not self.closed:
            code = CONNACK_311.get(error.code) if self.version == V311 else int(error.code)
            if code is not None:
                self._stream.output.add_bytes(encode(Connack(code=code), self.version))
        self.disconnect(error.code)

    # --- packets ---

    def _on_packet(self, packet: Packet) -> bool:
        if self._connect is None:
            if not isinstance(packet, Connect):
                raise MqttError(ReasonCode.PROTOCOL_ERROR, "the first packet is no CONNECT")
            self._on_connect(packet)
            return False
        if isinstance(packet, Publish):
            return self._on_publish(packet)
        if isinstance(packet, Ack) and self.egress is not None:
            if packet.type is PacketType.PUBREL:
                self._on_release(packet.packet_id)
            else:
                self.egress.on_ack(packet)
        elif isinstance(packet, Ping) and packet.type is PacketType.PINGREQ:
            self.send(PINGRESP)
        elif isinstance(packet, Subscribe) and self.egress is not None:
            self._gateway.flush()
            self._stream.pause(SUBSCRIBING)
            self._gateway.run(self._subscribe(self.egress, packet))
        elif isinstance(packet, Unsubscribe) and self.egress is not None:
            codes = [int(code) for code in self.egress.unsubscribe(packet.filters)]
            ack = SubscriptionAck(type=PacketType.UNSUBACK, packet_id=packet.packet_id, codes=codes)
            self.send(encode(ack, self.version))
        elif isinstance(packet, Disconnect):
            if packet.code != ReasonCode.DISCONNECT_WITH_WILL:
                self._connect.will = None
            self.close()
        else:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"{type(packet).__name__} does not belong here")
        return False

    def _on_connect(self, connect: Connect) -> None:
        self.version = connect.version
        config = self._gateway.config
        self._check_supported(connect)
        properties: Properties = {
            Property.SHARED_SUBSCRIPTION_AVAILABLE: 0,
            Property.RECEIVE_MAXIMUM: config.mqtt_receive_maximum,
            Property.MAXIMUM_PACKET_SIZE: config.mqtt_max_packet_bytes,
            Property.TOPIC_ALIAS_MAXIMUM: config.mqtt_topic_alias_maximum,
        }
        if connect.properties.get(Property.SESSION_EXPIRY_INTERVAL):
            properties[Property.SESSION_EXPIRY_INTERVAL] = 0
        if not connect.client_id:
            connect.client_id = self._gateway.new_client_id()
            properties[Property.ASSIGNED_CLIENT_IDENTIFIER] = connect.client_id
        keep_alive = min(connect.keep_alive or config.mqtt_keep_alive_max_seconds, config.mqtt_keep_alive_max_seconds)
        if keep_alive != connect.keep_alive:
            properties[Property.SERVER_KEEP_ALIVE] = keep_alive
        self._keep_alive_ms = keep_alive * 1500
        self._context.timers.cancel(self._timer)
        self._timer = self._context.timers.call_after(self._keep_alive_ms, self._on_keep_alive)
        self._connect = connect
        self.client_id = connect.client_id
        self._stream.frames.max_bytes = config.mqtt_max_packet_bytes
        receive_maximum = connect.properties.get(Property.RECEIVE_MAXIMUM, config.mqtt_receive_maximum)
        max_bytes = connect.properties.get(Property.MAXIMUM_PACKET_SIZE, 1 << 30)
        self.egress = Egress(self._gateway, self, min(receive_maximum, config.mqtt_receive_maximum), max_bytes)
        self._gateway.on_connected(self)
        self.send(encode(Connack(properties=properties if connect.version == V5 else {}), connect.version))

    def _check_supported(self, connect: Connect) -> None:
        if Property.AUTHENTICATION_METHOD in connect.properties:
            raise MqttError(ReasonCode.BAD_AUTHENTICATION_METHOD, "no authentication method is supported")
        if connect.username is not None or connect.password is not None:
            raise MqttError(ReasonCode.BAD_USER_NAME_OR_PASSWORD, "this listener knows no users")
        if connect.version == V311 and not connect.clean_start:
            code = ReasonCode.CLIENT_IDENTIFIER_NOT_VALID if not connect.client_id else ReasonCode.SERVER_UNAVAILABLE
            raise MqttError(code, "sessions are not kept after the end of their connection: use a clean session")

    def _on_publish(self, packet: Publish) -> bool:
        if packet.qos == 2 and packet.packet_id in self._received:
            self._on_repeated(packet.packet_id)
            return False
        self._resolve_alias(packet)
        assert self.client_id is not None
        gateway = self._gateway
        ack: list[Any] = [packet.packet_id, None, PacketType.PUBREC if packet.qos == 2 else PacketType.PUBACK]
        try:
            topic = gateway.mapping.topic_for(packet.topic)
        except MqttError as error:
            self._on_unmapped(packet, ack, error)
            return False
        missing = gateway.missing_topic(topic, packet)
        if missing is not None:
            self._stream.pause(TOPIC_IN_CREATION)
            gateway.run(self._create(missing))
            return True
        if packet.qos:
            self._expect_ack(ack, packet.qos)
        gateway.publish(topic, self.client_id, packet, lambda error: self._on_published(ack, packet.qos, error))
        return False

    def _expect_ack(self, ack: list[Any], qos: int) -> None:
        limit = self._gateway.config.mqtt_receive_maximum
        self._acks.append(ack)
        if qos == 2:
            self._received.add(ack[0])
        if len(self._acks) > limit or len(self._received) > limit:
            raise MqttError(ReasonCode.RECEIVE_MAXIMUM_EXCEEDED, "too many messages are not acknowledged yet")
        if len(self._acks) == limit:
            self._stream.pause(UNACKNOWLEDGED)

    def _on_repeated(self, packet_id: int) -> None:
        """A message with QoS 2 that is known: it is not stored again. PUBREC is repeated, if it has gone out."""
        if all(ack[0] != packet_id or ack[2] is not PacketType.PUBREC for ack in self._acks):
            self.send(encode_ack(PacketType.PUBREC, packet_id, ReasonCode.SUCCESS, {}, self.version))

    def _on_release(self, packet_id: int) -> None:
        code = ReasonCode.SUCCESS if packet_id in self._received else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
        self._received.discard(packet_id)
        self.send(encode_ack(PacketType.PUBCOMP, packet_id, code, {}, self.version))

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

    def _on_unmapped(self, packet: Publish, ack: list[Any], error: MqttError) -> None:
        """MQTT 5 has a reason for the one message; with 3.1.1, and without an acknowledgement, the connection ends."""
        if not packet.qos or self.version == V311:
            raise error
        logger.info("%r: %s", self, error)
        ack[1] = error.code
        self._acks.append(ack)
        self._send_acks()

    async def _create(self, topic: str) -> None:
        try:
            await self._gateway.create(topic)
        except KafkaError as error:
            logger.info("%r: topic %s: %s: closing", self, topic, error)
            self.disconnect(reason_of(error.code))
            return
        if not self.closed:
            self._stream.resume(TOPIC_IN_CREATION)

    def _on_published(self, ack: list[Any], qos: int, error: ErrorCode) -> None:
        if self.closed or (not qos and error is ErrorCode.NONE):
            return
        if error is not ErrorCode.NONE and (not qos or self.version == V311):
            logger.info("%r: a message was not stored: %s: closing", self, error.name)
            self.disconnect(reason_of(error))
            return
        ack[1] = ReasonCode.SUCCESS if error is ErrorCode.NONE else reason_of(error)
        self._send_acks()

    def _send_acks(self) -> None:
        acks = self._acks
        while acks and acks[0][1] is not None:
            packet_id, code, kind = acks.popleft()
            if code >= ReasonCode.UNSPECIFIED_ERROR and kind is PacketType.PUBREC:
                self._received.discard(packet_id)  # the client gives up this message, and may use the id again
            self.send(encode_ack(kind, packet_id, code, {}, self.version))
        if self._stream.pauses & UNACKNOWLEDGED and len(acks) * 2 <= self._gateway.config.mqtt_receive_maximum:
            self._stream.resume(UNACKNOWLEDGED)

    async def _subscribe(self, egress: Egress, packet: Subscribe) -> None:
        codes, retained = await egress.subscribe(packet)
        ack = SubscriptionAck(
            type=PacketType.SUBACK,
            packet_id=packet.packet_id,
            codes=[int(code) if self.version == V5 or code < 0x80 else 0x80 for code in codes],
        )
        if not self.closed:
            self.send(encode(ack, self.version))
            self._stream.resume(SUBSCRIBING)
            await egress.deliver_retained(retained)
        if not self.closed:  # it may have ended meanwhile, and with it the readers
            egress.begin()

    def deliver(self, packet: Publish) -> None:
        self.send(encode_publish(packet, self.version))

    def _on_keep_alive(self) -> None:
        now_ms = self._context.clock.monotonic_ms()
        if self._connect is None:
            logger.info("%r: no CONNECT came: closing", self)
            self.close()
            return
        silent_ms = now_ms - self._last_received_ms
        if silent_ms >= self._keep_alive_ms and not self._stream.pauses:
            logger.info("%r: silent for %d ms: closing", self, silent_ms)
            self.disconnect(ReasonCode.KEEP_ALIVE_TIMEOUT)
            return
        wait_ms = max(1000, self._keep_alive_ms - silent_ms)
        self._timer = self._context.timers.call_after(wait_ms, self._on_keep_alive)
