"""The short way of plain messages: PUBLISH with QoS 0 or 1, not retained, without properties.

The first message of an MQTT topic goes the long way, which finds its topic, checks rights and encodes the headers. What
came out is its route; messages that follow are cut out of the received bytes and queued as they will stand in the
record. A change of topics, rights or settings ends all routes.
"""

from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Final

from barnabas.errors import ErrorCode
from barnabas.mqtt.ingest import OVERHEAD_BYTES, Ingest, OnPublished, PartitionQueue, encoded_key
from barnabas.mqtt.packets import V5, PacketType, Publish
from barnabas.mqtt.record_headers import headers_of
from barnabas.records.builder import encode_headers

QOS_0: Final = PacketType.PUBLISH << 4
QOS_1: Final = QOS_0 | 2
FEWEST_BYTES: Final = 8
"""With this much left, the fields in front of a payload can be read without looking at the end each time."""


class Route:
    __slots__ = ("after_0", "after_1", "before", "max_payload", "partition", "topic")

    def __init__(self, name: str, client_id: str, key: bytes, topic: str, partition: int, max_bytes: int) -> None:
        """`name` is the MQTT topic."""
        self.topic = topic
        self.partition = partition
        self.before = encoded_key(key)
        self.after_0, self.after_1 = (
            encode_headers(headers_of(Publish(topic=name, payload=b"", qos=qos), client_id)) for qos in (0, 1)
        )
        self.max_payload = max_bytes - len(self.before) - len(self.after_1) - OVERHEAD_BYTES


def take_run(
    data: bytes,
    position: int,
    count: int,
    version: int,
    routes: dict[bytes, Route],
    ingest: Ingest,
    acks: deque[list[Any]],
    ack_limit: int,
    on_failed: OnPublished,
    on_published: Callable[[list[Any], ErrorCode], None],
) -> tuple[int, int]:
    """Queues at most `count` messages from the front; (where it stopped, how many).

    It stops at whatever is not plain, has no route yet, or is not there as a whole.
    """
    end, taken = len(data), 0
    touched: dict[Route, PartitionQueue] = {}
    while taken < count and end - position >= FEWEST_BYTES:
        first, size, start = data[position], data[position + 1], position + 2
        if first != QOS_0 and first != QOS_1:
            break
        if size >= 0x80:
            high = data[start]
            if high >= 0x80:
                break
            size = size & 0x7F | high << 7
            start += 1
        stop = start + size
        fields = start + 2 + (data[start] << 8 | data[start + 1])
        route = routes.get(data[start + 2 : fields]) if stop <= end and fields + 3 <= stop else None
        if route is None:
            break
        packet_id = 0
        if first == QOS_1:
            packet_id = data[fields] << 8 | data[fields + 1]
            fields += 2
            if not packet_id or len(acks) + 1 >= ack_limit:
                break
        if version == V5:
            if data[fields]:
                break
            fields += 1
        payload_size = stop - fields
        if payload_size > route.max_payload:
            break
        queue = touched.get(route)
        if queue is None:
            queue = touched[route] = ingest.queue(route.topic, route.partition)
        if packet_id:
            ack = [packet_id, None, PacketType.PUBACK, ""]
            acks.append(ack)
            size = payload_size + len(route.before) + len(route.after_1) + OVERHEAD_BYTES
            done: OnPublished = partial(on_published, ack)
            queue.messages.append((route.before, data[fields:stop], route.after_1, 1, size, done))
        else:
            size = payload_size + len(route.before) + len(route.after_0) + OVERHEAD_BYTES
            queue.messages.append((route.before, data[fields:stop], route.after_0, 0, size, on_failed))
        position = stop
        taken += 1
    for queue in touched.values():
        ingest.on_added(queue)
    return position, taken
