"""What one client has subscribed to, and the readers that bring it: one task per partition that may have matches.

A reader begins at the end of the log when the client subscribes, and at the beginning of topics that come later. The
log is the queue: a client that reads slowly or acknowledges late lags behind, and costs no memory meanwhile. A session
that is resumed reads on where it was; what was on its way then goes out again with the packet ids that it had.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import Delivery, Place, Session, StoredSubscription
from barnabas.mqtt.codec import encode_ack, encode_publish
from barnabas.mqtt.mapping import topic_of_record
from barnabas.mqtt.packets import V5, Ack, PacketType, Publish, Subscribe, SubscriptionOptions
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.reason_codes import MqttError, ReasonCode
from barnabas.mqtt.record_headers import headers_to_properties
from barnabas.mqtt.topics import TopicFilter, fault_of_filter, split_shared
from barnabas.records import Record

if TYPE_CHECKING:
    from barnabas.mqtt.access import Access
    from barnabas.mqtt.connection import MqttConnection
    from barnabas.mqtt.gateway import Gateway
    from barnabas.mqtt.live_session import LiveSession
    from barnabas.mqtt.shared import SharedReader

logger = logging.getLogger(__name__)

RETRY_SECONDS = 0.2
MATCHES_KEPT = 10_000
PER_TURN = 200
QOS: Final = {b"0": 0, b"1": 1}
NEXT_ACK: Final = {1: PacketType.PUBACK, 2: PacketType.PUBREC}


class Subscription:
    __slots__ = ("filter", "identifier", "options")

    def __init__(self, text: str, options: SubscriptionOptions, identifier: int | None) -> None:
        self.filter = TopicFilter(text)
        self.options = options
        self.identifier = identifier


class InFlight(NamedTuple):
    expects: PacketType
    place: Place | None
    """None for a retained message."""
    offset: int
    reader: "SharedReader | None" = None
    """Of a shared subscription."""


class Egress:
    def __init__(
        self,
        gateway: "Gateway",
        connection: "MqttConnection",
        live: "LiveSession",
        access: "Access",
        window: int,
        max_bytes: int,
    ) -> None:
        self._gateway = gateway
        self._connection = connection
        self._live = live
        self._access = access
        self._window = window
        self._max_bytes = max_bytes
        self._subscriptions: dict[str, Subscription] = {}
        self._shared: dict[str, tuple[SharedReader, Subscription]] = {}
        self._positions: dict[Place, int] = {}
        """Behind the last record that was looked at."""
        self._readers: dict[Place, asyncio.Task[None]] = {}
        self._matches: dict[str, list[Subscription]] = {}
        self._in_flight: dict[int, InFlight] = {}
        self._acknowledged: dict[Place, set[int]] = {}
        """Offsets after one that is in flight."""
        self._again: dict[tuple[Place, int], Delivery] = {}
        """What the connection before had on its way."""
        self._live_from: dict[Place, int] = {}
        """Messages with QoS 0 from before the client came back are not for it."""
        self._next_id = 1
        self._room = asyncio.Event()
        live.fill = self.fill

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def client_id(self) -> str:
        return self._live.session.client_id

    # --- the session ---

    def fill(self, session: Session) -> None:
        """Subscriptions, positions and deliveries as they are now."""
        session.subscriptions = {
            text: StoredSubscription(*each.options, each.identifier)
            for text, each in [*self._subscriptions.items(), *((key, each[1]) for key, each in self._shared.items())]
        }
        positions = dict(self._positions)
        deliveries = list(self._again.values())
        for (place, offset), _ in self._again.items():
            positions[place] = min(offset, positions.get(place, offset))
        for packet_id, each in self._in_flight.items():
            if each.place is not None and each.reader is None:
                positions[each.place] = min(each.offset, positions.get(each.place, each.offset))
                deliveries.append(Delivery(packet_id, *each.place, each.offset, int(each.expects)))
        session.positions = positions
        session.deliveries = deliveries
        session.topic_ids = {topic: self._gateway.topic_id(topic) for topic, _ in positions}
        session.acknowledged = {}
        for place, offsets in list(self._acknowledged.items()):
            after = sorted(offset for offset in offsets if offset >= positions.get(place, 0))
            if after:
                session.acknowledged[place] = after
                self._acknowledged[place] = set(after)
            else:
                del self._acknowledged[place]

    async def restore(self) -> None:
        """What the session had before this connection. Raises KafkaError."""
        session = self._live.session
        for text, stored in session.subscriptions.items():
            subscription = Subscription(split_shared(text)[1], SubscriptionOptions(*stored[:4]), stored.identifier)
            if split_shared(text)[0] is None:
                self._subscriptions[text] = subscription
            else:
                self._join(text, subscription)
        for place, offset in session.positions.items():
            if self._gateway.is_known(place[0]):
                is_same = session.topic_ids.get(place[0]) == self._gateway.topic_id(place[0])
                self._positions[place] = offset if is_same else 0
        self._acknowledged = {place: set(offsets) for place, offsets in session.acknowledged.items()}
        for each in session.deliveries:
            place = each.topic, each.partition
            if place in self._positions:
                self._again[place, each.offset] = each
        for topic, count in self._gateway.topics():
            if self._wants(topic):
                for partition in range(count):
                    self._positions.setdefault((topic, partition), 0)
        for place in self._positions:
            try:
                self._live_from[place] = await self._gateway.partitions.end_offset(*place)
            except KafkaError as error:
                logger.info("%r: %s-%d: %s", self._connection, *place, error)

    def go_on(self) -> None:
        """CONNACK is out: what was released goes on, and the readers begin."""
        for (place, offset), each in list(self._again.items()):
            if each.expects == PacketType.PUBCOMP:
                del self._again[place, offset]
                self._in_flight[each.packet_id] = InFlight(PacketType.PUBCOMP, place, offset)
                self._acknowledge_later(place, offset)
                self._send_release(each.packet_id, ReasonCode.SUCCESS)
        self.begin()

    # --- subscriptions ---

    async def subscribe(self, packet: Subscribe) -> tuple[list[int], list[Subscription]]:
        """A code for each filter, and the subscriptions that get what is retained.

        The positions are those of this moment; `begin` starts reading.
        """
        retained: list[Subscription] = []
        identifiers = packet.properties.get(Property.SUBSCRIPTION_IDENTIFIER)
        identifier = identifiers[0] if identifiers else None
        codes: list[int] = []
        for text, options in packet.filters:
            share, inner = split_shared(text)
            fault = fault_of_filter(inner)
            if fault is not None or share == "":
                codes.append(ReasonCode.TOPIC_FILTER_INVALID)
            elif share is not None and options.no_local:
                raise MqttError(ReasonCode.PROTOCOL_ERROR, "a shared subscription cannot exclude what is its own")
            elif not self._may_subscribe(inner) or (share is not None and not self._access.may_join(text)):
                codes.append(ReasonCode.NOT_AUTHORIZED)
            elif share is not None:
                codes.append(await self._subscribe_shared(text, Subscription(inner, options, identifier)))
            elif await self._find_positions(text):
                subscription = Subscription(text, options, identifier)
                if options.retain_handling == 0 or (options.retain_handling == 1 and text not in self._subscriptions):
                    retained.append(subscription)
                self._subscriptions[text] = subscription
                codes.append(options.qos)
            else:
                codes.append(ReasonCode.UNSPECIFIED_ERROR)
        self._matches.clear()
        return codes, retained

    def _may_subscribe(self, text: str) -> bool:
        """One topic must be readable; of many, what is not readable is left out later."""
        if TopicFilter(text).has_wildcards:
            return self._access.may_read_any()
        try:
            return self._access.may_read(self._gateway.mapping.topic_for(text), log_denied=True)
        except MqttError:
            return self._access.may_read_any()

    async def _subscribe_shared(self, text: str, subscription: Subscription) -> int:
        try:
            await self._gateway.shared_reader(text).find_begin()
        except KafkaError as error:
            logger.info("%r: %s: %s", self._connection, text, error)
            return ReasonCode.UNSPECIFIED_ERROR
        self._join(text, subscription)
        return subscription.options.qos

    def _join(self, text: str, subscription: Subscription) -> None:
        reader = self._gateway.shared_reader(text)
        self._shared[text] = reader, subscription
        reader.add(self)

    async def deliver_retained(self, subscriptions: list[Subscription]) -> None:
        for subscription in subscriptions:
            for record in await self._gateway.retained.matching(subscription.filter):
                if self._connection.closed:
                    return
                name = (record.key or b"").decode()
                if self._may_have(name):
                    await self._send(record, name, [subscription], None, retain=True)

    def _may_have(self, name: str) -> bool:
        try:
            return self._access.may_read(self._gateway.mapping.topic_for(name))
        except MqttError:
            return False

    def unsubscribe(self, filters: list[str]) -> list[ReasonCode]:
        codes = []
        for text in filters:
            shared = self._shared.pop(text, None)
            if shared is not None:
                shared[0].remove(self)
            found = shared is not None or self._subscriptions.pop(text, None) is not None
            codes.append(ReasonCode.SUCCESS if found else ReasonCode.NO_SUBSCRIPTION_EXISTED)
        self._matches.clear()
        for place in list(self._positions):
            if not self._wants(place[0]):
                self._forget(place)
        return codes

    def _forget(self, place: Place) -> None:
        self._positions.pop(place, None)
        self._acknowledged.pop(place, None)
        reader = self._readers.pop(place, None)
        if reader is not None:
            reader.cancel()

    def begin(self) -> None:
        for place in self._positions:
            if place not in self._readers:
                self._readers[place] = self._gateway.run(self._follow(place))

    def on_topics(self, topics: dict[str, int]) -> None:
        """Topics that are new, or have more partitions: all of what is in them came after the subscription."""
        for topic, count in topics.items():
            if self._wants(topic):
                for partition in range(count):
                    self._positions.setdefault((topic, partition), 0)
        self.begin()

    # --- acknowledgements ---

    def on_ack(self, packet: Ack) -> None:
        """PUBACK, PUBREC or PUBCOMP. What was not expected is ignored, but that PUBREC always gets its PUBREL."""
        packet_id, known = packet.packet_id, self._in_flight.get(packet.packet_id)
        if packet.type is PacketType.PUBREC and packet.code < ReasonCode.UNSPECIFIED_ERROR:
            if known is None or known.expects is PacketType.PUBACK:
                self._send_release(packet_id, ReasonCode.PACKET_IDENTIFIER_NOT_FOUND)
                return
            self._in_flight[packet_id] = known._replace(expects=PacketType.PUBCOMP)
            if self._live.is_durable and known.place is not None and known.reader is None:
                self._gateway.run(self._release(packet_id))
            else:
                self._send_release(packet_id, ReasonCode.SUCCESS)
        elif known is not None and (packet.type is known.expects or packet.type is PacketType.PUBREC):
            del self._in_flight[packet_id]
            if known.reader is not None and known.place is not None:
                known.reader.on_done(self, known.place, known.offset)
            elif known.place is not None:
                self._acknowledge_later(known.place, known.offset)
                self._live.save_soon()
            self._room.set()

    async def _release(self, packet_id: int) -> None:
        """The client forgets the packet id with PUBREL: that it came this far must be known after any crash."""
        await self._save()
        self._send_release(packet_id, ReasonCode.SUCCESS)

    def _send_release(self, packet_id: int, code: ReasonCode) -> None:
        self._connection.send(encode_ack(PacketType.PUBREL, packet_id, code, {}, self._connection.version))

    def _acknowledge_later(self, place: Place, offset: int) -> None:
        if self._live.is_durable:
            self._acknowledged.setdefault(place, set()).add(offset)

    def wake(self) -> None:
        self._room.set()

    def close(self) -> None:
        for task in self._readers.values():
            task.cancel()
        self._readers.clear()
        for reader, _ in self._shared.values():
            reader.remove(self)
        self._room.set()

    # --- reading ---

    def _wants(self, topic: str) -> bool:
        if not self._access.may_read(topic):
            return False
        return any(self._gateway.mapping.may_hold(topic, text) for text in self._subscriptions)

    async def _find_positions(self, text: str) -> bool:
        for topic, count in self._gateway.topics():
            if not self._gateway.mapping.may_hold(topic, text):
                continue
            for partition in range(count):
                if (topic, partition) not in self._positions:
                    try:
                        offset = await self._gateway.partitions.end_offset(topic, partition)
                    except KafkaError as error:
                        logger.info("%r: %s-%d: %s", self._connection, topic, partition, error)
                        return False
                    self._positions.setdefault((topic, partition), offset)
        return True

    async def _follow(self, place: Place) -> None:
        topic, partition = place
        while True:
            try:
                result = await self._gateway.partitions.read(topic, partition, self._positions[place])
            except KafkaError as error:
                if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                    self._positions.pop(place, None)
                    self._readers.pop(place, None)
                    return
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._positions[place] = await self._gateway.start_offset(topic, partition)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for index, record in enumerate(result.records):
                if self._access.may_read(topic):
                    await self._deliver(place, record)
                self._positions[place] = record.offset + 1
                if index % PER_TURN == PER_TURN - 1:
                    await asyncio.sleep(0)
            self._positions[place] = result.next_offset
            self._live.save_soon()

    def _matching(self, name: str) -> list[Subscription]:
        found = self._matches.get(name)
        if found is None:
            if len(self._matches) >= MATCHES_KEPT:
                self._matches.clear()
            found = [each for each in self._subscriptions.values() if each.filter.matches(name)]
            self._matches[name] = found
        return found

    async def _deliver(self, place: Place, record: Record) -> None:
        if record.offset in self._acknowledged.get(place, ()):
            return
        headers = dict(record.headers)
        name = topic_of_record(place[0], record.key, headers.get("mqtt.topic"), self._gateway.mapping)
        matching = self._matching(name)
        publisher = headers.get("mqtt.client_id")
        if publisher is not None and publisher == self.client_id.encode():
            matching = [each for each in matching if not each.options.no_local]
        if matching:
            as_published = any(each.options.retain_as_published for each in matching)
            retain = as_published and headers.get("mqtt.retain") == b"1"
            await self._send(record, name, matching, place, retain=retain)

    async def _send(
        self, record: Record, name: str, matching: list[Subscription], place: Place | None, *, retain: bool
    ) -> None:
        qos = self._qos(record, matching)
        if place is not None and not qos and record.offset < self._live_from.get(place, 0):
            return
        packet = self._packet(record, name, matching, qos, retain)
        if packet is None:
            return
        await self._wait_for_room(qos)
        again = None if place is None else self._again.pop((place, record.offset), None)
        if qos:
            packet.packet_id = self._new_id() if again is None else again.packet_id
            packet.dup = again is not None
            self._in_flight[packet.packet_id] = InFlight(NEXT_ACK[qos], place, record.offset)
            if qos == 2 and place is not None and self._live.is_durable:
                await self._save()
        await self._transmit(packet)

    async def _save(self) -> None:
        try:
            await self._live.save()
        except KafkaError as error:
            logger.info("%r: the session could not be stored: %s: closing", self._connection, error)
            self._connection.disconnect(ReasonCode.IMPLEMENTATION_SPECIFIC_ERROR)

    def _qos(self, record: Record, matching: list[Subscription]) -> int:
        published_qos = QOS.get(dict(record.headers).get("mqtt.qos") or b"", 2)
        return min(max(each.options.qos for each in matching), published_qos)

    def _packet(
        self, record: Record, name: str, matching: list[Subscription], qos: int, retain: bool
    ) -> Publish | None:
        """None if the message has expired, or is larger than the client takes: as if it had been delivered."""
        properties: Properties = {}
        timed = headers_to_properties(record, self._gateway.now_ms())
        if timed.get(Property.MESSAGE_EXPIRY_INTERVAL) == 0:
            return None
        if self._connection.version == V5:
            properties = timed
            identifiers = [each.identifier for each in matching if each.identifier is not None]
            if identifiers:
                properties[Property.SUBSCRIPTION_IDENTIFIER] = identifiers
        packet = Publish(topic=name, payload=record.value or b"", qos=qos, retain=retain, properties=properties)
        if len(packet.payload) + len(name) + 1000 > self._max_bytes:
            packet.packet_id = 1 if qos else 0
            if len(encode_publish(packet, self._connection.version)) > self._max_bytes:
                return None
        return packet

    async def _transmit(self, packet: Publish) -> None:
        self._gateway.delivery_count += 1
        throttle_ms = self._access.charge_delivery(len(packet.payload) + len(packet.topic))
        self._connection.deliver(packet)
        if throttle_ms:
            await asyncio.sleep(throttle_ms / 1000)

    async def _wait_for_room(self, qos: int) -> None:
        while not self._connection.closed and not self.has_room(qos):
            self._room.clear()
            await self._room.wait()

    def has_room(self, qos: int) -> bool:
        return not self._connection.is_congested and not (qos and len(self._in_flight) >= self._window)

    def _new_id(self) -> int:
        used = {each.packet_id for each in self._again.values()} if self._again else ()
        while self._next_id in self._in_flight or self._next_id in used:
            self._next_id = self._next_id % 65535 + 1
        packet_id = self._next_id
        self._next_id = packet_id % 65535 + 1
        return packet_id

    # --- shared subscriptions ---

    def may_read(self, topic: str) -> bool:
        return self._access.may_read(topic)

    def offer(self, reader: "SharedReader", text: str, place: Place, record: Record) -> bool:
        """A message of a shared subscription that the client may read; False if it has no room for it now."""
        subscription = self._shared[text][1]
        qos = self._qos(record, [subscription])
        if self._connection.closed or not self.has_room(1):
            return False
        name = topic_of_record(place[0], record.key, dict(record.headers).get("mqtt.topic"), self._gateway.mapping)
        retain = subscription.options.retain_as_published and dict(record.headers).get("mqtt.retain") == b"1"
        packet = self._packet(record, name, [subscription], qos, retain)
        if packet is None:
            reader.on_done(self, place, record.offset)
            return True
        if qos:
            packet.packet_id = self._new_id()
            self._in_flight[packet.packet_id] = InFlight(NEXT_ACK[qos], place, record.offset, reader)
        self._gateway.delivery_count += 1
        self._access.charge_delivery(len(packet.payload))
        self._connection.deliver(packet)
        if not qos:
            reader.on_done(self, place, record.offset)
        return True
