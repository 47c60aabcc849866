"""What one client has subscribed to, and the readers that bring it: one task per partition that may have matches.

A reader begins at the end of the log when the client subscribes, and at the beginning of topics that come later. The
log is the queue: a client that reads slowly or acknowledges late lags behind, and costs no memory meanwhile.
"""

import asyncio
import logging
from typing import TYPE_CHECKING, Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.mqtt.codec import encode_ack
from barnabas.mqtt.mapping import topic_of_record
from barnabas.mqtt.packets import V5, Ack, PacketType, Publish, Subscribe, SubscriptionOptions
from barnabas.mqtt.properties import Properties, Property
from barnabas.mqtt.reason_codes import ReasonCode
from barnabas.mqtt.record_headers import headers_to_properties
from barnabas.mqtt.topics import TopicFilter, fault_of_filter, split_shared
from barnabas.records import Record

if TYPE_CHECKING:
    from barnabas.mqtt.connection import MqttConnection
    from barnabas.mqtt.gateway import Gateway

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


class Egress:
    def __init__(self, gateway: "Gateway", connection: "MqttConnection", window: int, max_bytes: int) -> None:
        self._gateway = gateway
        self._connection = connection
        self._window = window
        self._max_bytes = max_bytes
        self._subscriptions: dict[str, Subscription] = {}
        self._positions: dict[tuple[str, int], int] = {}
        self._readers: dict[tuple[str, int], asyncio.Task[None]] = {}
        self._matches: dict[str, list[Subscription]] = {}
        self._in_flight: dict[int, PacketType] = {}
        """Packet id -> what the client has to answer next."""
        self._next_id = 1
        self._room = asyncio.Event()

    async def subscribe(self, packet: Subscribe) -> tuple[list[int], list[Subscription]]:
        """A code for each filter, and the subscriptions that get what is retained.

        The positions are those of this moment; `begin` starts reading.
        """
        retained: list[Subscription] = []
        identifiers = packet.properties.get(Property.SUBSCRIPTION_IDENTIFIER)
        codes: list[int] = []
        for text, options in packet.filters:
            share, _ = split_shared(text)
            if share is not None:
                codes.append(ReasonCode.SHARED_SUBSCRIPTIONS_NOT_SUPPORTED)
                continue
            if fault_of_filter(text) is not None:
                codes.append(ReasonCode.TOPIC_FILTER_INVALID)
                continue
            if await self._find_positions(text):
                if options.retain_handling == 0 or (options.retain_handling == 1 and text not in self._subscriptions):
                    retained.append(Subscription(text, options, identifiers[0] if identifiers else None))
                self._subscriptions[text] = Subscription(text, options, identifiers[0] if identifiers else None)
                codes.append(options.qos)
            else:
                codes.append(ReasonCode.UNSPECIFIED_ERROR)
        self._matches.clear()
        return codes, retained

    async def deliver_retained(self, subscriptions: list[Subscription]) -> None:
        for subscription in subscriptions:
            for record in await self._gateway.retained.matching(subscription.filter):
                if self._connection.closed:
                    return
                await self._send(record, (record.key or b"").decode(), [subscription], retain=True)

    def unsubscribe(self, filters: list[str]) -> list[ReasonCode]:
        codes = [
            ReasonCode.SUCCESS if self._subscriptions.pop(text, None) else ReasonCode.NO_SUBSCRIPTION_EXISTED
            for text in filters
        ]
        self._matches.clear()
        for key in list(self._readers):
            if not self._wants(key[0]):
                self._readers.pop(key).cancel()
                self._positions.pop(key, None)
        return codes

    def begin(self) -> None:
        for key in self._positions:
            if key not in self._readers:
                self._readers[key] = self._gateway.run(self._follow(key))

    def on_topics(self, topics: dict[str, int]) -> None:
        """Topics that are new, or have more partitions: all of what is in them came after the subscription."""
        for topic, count in topics.items():
            if self._wants(topic):
                for partition in range(count):
                    self._positions.setdefault((topic, partition), 0)
        self.begin()

    def on_ack(self, packet: Ack) -> None:
        """PUBACK, PUBREC or PUBCOMP. What was not expected is ignored, but that PUBREC always gets its PUBREL."""
        packet_id, expected = packet.packet_id, self._in_flight.get(packet.packet_id)
        if packet.type is PacketType.PUBREC and packet.code < ReasonCode.UNSPECIFIED_ERROR:
            is_known = expected in (PacketType.PUBREC, PacketType.PUBCOMP)
            if is_known:
                self._in_flight[packet_id] = PacketType.PUBCOMP
            code = ReasonCode.SUCCESS if is_known else ReasonCode.PACKET_IDENTIFIER_NOT_FOUND
            self._connection.send(encode_ack(PacketType.PUBREL, packet_id, code, {}, self._connection.version))
        elif packet.type is expected:
            del self._in_flight[packet_id]
            self._room.set()

    def wake(self) -> None:
        self._room.set()

    def close(self) -> None:
        for task in self._readers.values():
            task.cancel()
        self._readers.clear()
        self._room.set()

    def _wants(self, topic: str) -> bool:
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

    async def _follow(self, key: tuple[str, int]) -> None:
        topic, partition = key
        while True:
            try:
                result = await self._gateway.partitions.read(topic, partition, self._positions[key])
            except KafkaError as error:
                if error.code in (ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID):
                    del self._positions[key], self._readers[key]
                    return
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._positions[key] = await self._gateway.start_offset(topic, partition)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for index, record in enumerate(result.records):
                await self._deliver(topic, record)
                if index % PER_TURN == PER_TURN - 1:
                    await asyncio.sleep(0)
            self._positions[key] = result.next_offset

    def _matching(self, name: str) -> list[Subscription]:
        found = self._matches.get(name)
        if found is None:
            if len(self._matches) >= MATCHES_KEPT:
                self._matches.clear()
            found = [each for each in self._subscriptions.values() if each.filter.matches(name)]
            self._matches[name] = found
        return found

    async def _deliver(self, topic: str, record: Record) -> None:
        headers = dict(record.headers)
        name = topic_of_record(topic, record.key, headers.get("mqtt.topic"), self._gateway.mapping)
        matching = self._matching(name)
        publisher = headers.get("mqtt.client_id")
        if publisher is not None and publisher == (self._connection.client_id or "").encode():
            matching = [each for each in matching if not each.options.no_local]
        if matching:
            as_published = any(each.options.retain_as_published for each in matching)
            await self._send(record, name, matching, retain=as_published and headers.get("mqtt.retain") == b"1")

    async def _send(self, record: Record, name: str, matching: list[Subscription], *, retain: bool) -> None:
        published_qos = QOS.get(dict(record.headers).get("mqtt.qos") or b"", 2)
        qos = min(max(each.options.qos for each in matching), published_qos)
        properties: Properties = {}
        if self._connection.version == V5:
            properties = headers_to_properties(record, self._gateway.now_ms())
            if properties.get(Property.MESSAGE_EXPIRY_INTERVAL) == 0:
                return
            identifiers = [each.identifier for each in matching if each.identifier is not None]
            if identifiers:
                properties[Property.SUBSCRIPTION_IDENTIFIER] = identifiers
        packet = Publish(topic=name, payload=record.value or b"", qos=qos, retain=retain, properties=properties)
        if len(packet.payload) + len(name) + 16 > self._max_bytes:
            return  # as if it had been delivered: the client has said that it takes none of this size
        await self._wait_for_room(qos)
        if qos:
            packet.packet_id = self._new_id(NEXT_ACK[qos])
        self._connection.deliver(packet)

    async def _wait_for_room(self, qos: int) -> None:
        while not self._connection.closed and (
            self._connection.is_congested or (qos and len(self._in_flight) >= self._window)
        ):
            self._room.clear()
            await self._room.wait()

    def _new_id(self, expected: PacketType) -> int:
        while self._next_id in self._in_flight:
            self._next_id = self._next_id % 65535 + 1
        packet_id = self._next_id
        self._in_flight[packet_id] = expected
        self._next_id = packet_id % 65535 + 1
        return packet_id
