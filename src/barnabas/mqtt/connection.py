"""One MQTT connection: packets in, packets out, keep-alive.

Made by the gateway for each connection that is accepted on an MQTT listener. `establishing` says who the client is and
which session it has; from then on `publishing` takes its messages and `egress` brings what it has subscribed to. While
the topic of a message is being created, or a session is being stored, nothing further is read from its client.
"""

import logging
from typing import TYPE_CHECKING

from barnabas.errors import KafkaError
from barnabas.mqtt.codec import decode, encode, encode_publish
from barnabas.mqtt.egress import Egress
from barnabas.mqtt.establishing import Established, establish, message_of, stored_will
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
from barnabas.mqtt.publishing import Publishing
from barnabas.mqtt.reason_codes import CONNACK_311, MqttError, ReasonCode, UnsupportedVersionError, malformed, reason_of
from barnabas.mqtt.routes import QOS_0, QOS_1
from barnabas.net.context import ConnectionContext
from barnabas.net.settings import Listener
from barnabas.server.request import ANONYMOUS, Principal
from barnabas.transport.channel import Channel
from barnabas.transport.stream import FIRST_FREE_REASON, Stream

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_MS = 10_000
PACKETS_PER_TURN = 256
PLAIN_PER_TURN = 1024
FIRST_PACKET_BYTES = 64 * 1024
"""Until a client is known."""
UNREAD_BYTES = 1024 * 1024
STOPPING = FIRST_FREE_REASON << 2
SUBSCRIBING = FIRST_FREE_REASON << 3
CONNECTING = FIRST_FREE_REASON << 4
PINGRESP = b"\xd0\x00"


class MqttConnection:
    def __init__(
        self,
        gateway: "Gateway",
        context: ConnectionContext,
        channel: Channel,
        peer: tuple[str, int],
        listener: Listener,
        principal: Principal = ANONYMOUS,
    ) -> None:
        """`principal` is who the TLS handshake says the client is."""
        self._gateway = gateway
        self._context = context
        self.peer_host, self.peer_port = peer
        self.listener = listener
        self.principal = principal
        self.closed = False
        self.version = V5
        self._connect: Connect | None = None
        self._established: Established | None = None
        self._publishing: Publishing | None = None
        self.egress: Egress | None = None
        self._last_received_ms = context.clock.monotonic_ms()
        self._keep_alive_ms = CONNECT_TIMEOUT_MS
        self._timer = context.timers.call_after(CONNECT_TIMEOUT_MS, self._on_keep_alive)
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
    def client_id(self) -> str | None:
        """Once it is connected."""
        return None if self._established is None else self._established.live.session.client_id

    @property
    def session_client_id(self) -> str:
        assert self._established is not None
        return self._established.live.session.client_id

    @property
    def established(self) -> "Established | None":
        return self._established

    @property
    def in_flight(self) -> int:
        """Messages that wait for an acknowledgement, in both directions."""
        inward = 0 if self._publishing is None else self._publishing.unacknowledged
        return inward + (0 if self.egress is None else self.egress.in_flight)

    @property
    def wants_reasons(self) -> bool:
        if self.version != V5 or self._connect is None:
            return False
        return bool(self._connect.properties.get(Property.REQUEST_PROBLEM_INFORMATION, 1))

    @property
    def last_active_ms(self) -> int:
        return self._last_received_ms

    def send(self, packet: bytes) -> None:
        if not self.closed:
            self._stream.output.add_bytes(packet)
            self._context.flush_soon(self)

    def deliver(self, packet: Publish) -> None:
        self.send(encode_publish(packet, self.version))

    @property
    def is_congested(self) -> bool:
        """The client does not read what it is sent."""
        return self._stream.output.queued_bytes > UNREAD_BYTES

    def pause(self, reason: int) -> None:
        self._stream.pause(reason)

    def resume(self, reason: int) -> None:
        if not self.closed:
            self._stream.resume(reason)

    def flush(self) -> None:
        if self._stream.output and not self._stream.writing and not self.closed:
            self._stream.write()
            self._wake_readers()

    def finish(self) -> None:
        """The broker stops: take leave, then close."""
        self._stream.pause(STOPPING)
        self.disconnect(ReasonCode.SERVER_SHUTTING_DOWN)

    def disconnect(self, code: ReasonCode, why: str = "") -> None:
        """Close with a reason, as far as the version has one."""
        if self.closed:
            return
        if self._established is not None and self.version == V5:
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
        self._context.on_closed(self)
        if self._established is not None:
            self._end_session(self._established)

    def _end_session(self, established: Established) -> None:
        live, will = established.live, None if self._connect is None else self._connect.will
        message = None if will is None else message_of(will)
        later = stored_will(will)
        if later is not None and later.delay_seconds and live.is_durable and not live.is_lost:
            message = None
        else:
            later = None
        live.end(later)
        if self.egress is not None:
            self.egress.close()
        self._gateway.on_closed(self)
        if message is not None:
            self._gateway.publish_will_soon(live.session.client_id, established.access, message)

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
        self._wake_readers()

    def _wake_readers(self) -> None:
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
        stream, publishing = self._stream, self._publishing
        if publishing is not None and end and view[0] in (QOS_0, QOS_1) and not stream.pauses:
            position, taken = publishing.take_run(bytes(view), 0, PLAIN_PER_TURN)
            if taken == PLAIN_PER_TURN:
                stream.give_way()
                return position
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
        if isinstance(error, UnsupportedVersionError):
            self.version = V311 if error.version < V5 else V5
        answers = self._connect is not None or isinstance(error, UnsupportedVersionError)
        if answers and self._established is None and not self.closed:
            code = CONNACK_311.get(error.code) if self.version == V311 else int(error.code)
            if code is not None:
                self._stream.output.add_bytes(encode(Connack(code=code), self.version))
        self.disconnect(error.code, str(error) if self.wants_reasons else "")

    # --- packets ---

    def _on_packet(self, packet: Packet) -> bool:
        publishing, egress = self._publishing, self.egress
        if publishing is None or egress is None:
            if self._connect is not None or not isinstance(packet, Connect):
                raise MqttError(ReasonCode.PROTOCOL_ERROR, "the first packet is no CONNECT")
            self._on_connect(packet)
            return False
        if isinstance(packet, Publish):
            return publishing.on_publish(packet)
        if isinstance(packet, Ack):
            if packet.type is PacketType.PUBREL:
                publishing.on_release(packet.packet_id)
            else:
                egress.on_ack(packet)
        elif isinstance(packet, Ping) and packet.type is PacketType.PINGREQ:
            self.send(PINGRESP)
        elif isinstance(packet, (Subscribe, Unsubscribe)):
            self._gateway.flush()
            self._stream.pause(SUBSCRIBING)
            if isinstance(packet, Subscribe):
                self._gateway.run(self._subscribe(egress, packet))
            else:
                self._gateway.run(self._unsubscribe(egress, packet))
        elif isinstance(packet, Disconnect):
            self._on_disconnect(packet)
        else:
            raise MqttError(ReasonCode.PROTOCOL_ERROR, f"{type(packet).__name__} does not belong here")
        return False

    def _on_connect(self, connect: Connect) -> None:
        self.version = connect.version
        self._connect = connect
        self._stream.pause(CONNECTING)
        self._gateway.run(self._establish(connect))

    async def _establish(self, connect: Connect) -> None:
        try:
            established = await establish(self._gateway, self, connect)
        except MqttError as error:
            self._refuse(error)
            return
        except KafkaError as error:
            self._refuse(MqttError(ReasonCode.SERVER_UNAVAILABLE, f"the session cannot be had: {error}"))
            return
        self._established = established
        if self.closed:  # it went away meanwhile
            connect.will = None
            self._end_session(established)
            return
        self._keep_alive_ms = established.keep_alive_seconds * 1500
        self._context.timers.cancel(self._timer)
        self._timer = self._context.timers.call_after(self._keep_alive_ms, self._on_keep_alive)
        self._stream.frames.max_bytes = self._gateway.config.mqtt_max_packet_bytes
        self._publishing = Publishing(self._gateway, self, established.access, established.exactly_once)
        self.egress = established.egress
        self._gateway.on_connected(self)
        properties = established.properties if connect.version == V5 else {}
        connack = Connack(session_present=established.session_present, properties=properties)
        self.send(encode(connack, connect.version))
        self.egress.go_on()
        self.resume(CONNECTING)

    def _on_disconnect(self, packet: Disconnect) -> None:
        assert self._connect is not None and self._established is not None
        session = self._established.live.session
        expiry = packet.properties.get(Property.SESSION_EXPIRY_INTERVAL)
        if expiry is not None and self._established.live.partition is not None:
            if expiry and not session.expiry_seconds:
                raise MqttError(
                    ReasonCode.PROTOCOL_ERROR, "a session without expiry interval cannot get one at its end"
                )
            session.expiry_seconds = min(expiry, self._gateway.config.mqtt_session_expiry_max_seconds)
        if packet.code != ReasonCode.DISCONNECT_WITH_WILL:
            self._connect.will = None
        self.close()

    async def _subscribe(self, egress: Egress, packet: Subscribe) -> None:
        try:
            codes, retained = await egress.subscribe(packet)
        except MqttError as error:
            self._refuse(error)
            return
        await self._acknowledge(PacketType.SUBACK, packet.packet_id, codes)
        if not self.closed:
            await egress.deliver_retained(retained)
        if not self.closed:  # it may have ended meanwhile, and with it the readers
            egress.begin()

    async def _unsubscribe(self, egress: Egress, packet: Unsubscribe) -> None:
        codes = [int(code) for code in egress.unsubscribe(packet.filters)]
        await self._acknowledge(PacketType.UNSUBACK, packet.packet_id, codes)

    async def _acknowledge(self, kind: PacketType, packet_id: int, codes: list[int]) -> None:
        """Once the session with its new subscriptions is stored."""
        assert self._established is not None
        try:
            await self._established.live.save()
        except KafkaError as error:
            self.disconnect(reason_of(error.code))
            return
        shown = [int(code) if self.version == V5 or code < 0x80 else 0x80 for code in codes]
        self.send(encode(SubscriptionAck(type=kind, packet_id=packet_id, codes=shown), self.version))
        self.resume(SUBSCRIBING)

    def _on_keep_alive(self) -> None:
        now_ms = self._context.clock.monotonic_ms()
        if self._established is None:
            logger.info("%r: not connected in time: closing", self)
            self.close()
            return
        silent_ms = now_ms - self._last_received_ms
        if silent_ms >= self._keep_alive_ms and not self._stream.pauses:
            logger.info("%r: silent for %d ms: closing", self, silent_ms)
            self.disconnect(ReasonCode.KEEP_ALIVE_TIMEOUT)
            return
        wait_ms = max(1000, self._keep_alive_ms - silent_ms)
        self._timer = self._context.timers.call_after(wait_ms, self._on_keep_alive)
