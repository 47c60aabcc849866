"""Reads of partitions that other brokers lead: one Fetch at a time per leader, for all that is wanted from it.

Responses come in the order of the requests, so a fetch per partition would make each wait for those before it. What
comes up while a fetch waits at the leader goes along with the next one, which is why none waits for long.
"""

import asyncio
from typing import Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.net.link import LinkError
from barnabas.protocol.messages.fetch import FetchPartition as WantedPartition
from barnabas.protocol.messages.fetch import FetchRequest, FetchResponse, FetchTopic, PartitionData
from barnabas.server.broker_links import BrokerLinks, LinkUse
from barnabas.server.reading import READ_COMMITTED

WAIT_MS: Final = 100
READ_BYTES: Final = 256 * 1024
MAX_BYTES: Final = 4 * 1024 * 1024
VERSION: Final = 12

Place = tuple[str, int]
Waiting = tuple[int, "asyncio.Future[PartitionData | None]"]


class RemoteReads:
    def __init__(self, links: BrokerLinks) -> None:
        self._links = links
        self._waiting: dict[int, dict[Place, list[Waiting]]] = {}
        self._loops: dict[int, asyncio.Task[None]] = {}

    async def read(self, leader: int, topic: str, partition: int, offset: int) -> PartitionData | None:
        """None if there is nothing new yet. Raises KafkaError."""
        found: asyncio.Future[PartitionData | None] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(leader, {}).setdefault((topic, partition), []).append((offset, found))
        if leader not in self._loops:
            self._loops[leader] = asyncio.get_running_loop().create_task(self._fetch_from(leader))
        return await found

    async def _fetch_from(self, leader: int) -> None:
        """As long as somebody waits."""
        while asked := self._next(leader):
            try:
                response = await self._links.to(leader, LinkUse.MQTT_READS).request(_request(asked), VERSION)
            except LinkError as error:
                for _, readers in asked.values():
                    for found in readers:
                        if not found.done():
                            found.set_exception(KafkaError(ErrorCode.NETWORK_EXCEPTION, str(error)))
                continue
            _hand_out(response, asked)
            await asyncio.sleep(0)  # those who want more say so now
        del self._loops[leader]

    def _next(self, leader: int) -> "dict[Place, tuple[int, list[asyncio.Future[PartitionData | None]]]]":
        """Of each partition one offset, with all who wait for that; the others have their turn next."""
        asked: dict[Place, tuple[int, list[asyncio.Future[PartitionData | None]]]] = {}
        left: dict[Place, list[Waiting]] = {}
        for place, readers in self._waiting.pop(leader, {}).items():
            present = [each for each in readers if not each[1].done()]
            if present:
                offset = present[0][0]
                asked[place] = offset, [found for wanted, found in present if wanted == offset]
                others = [each for each in present if each[0] != offset]
                if others:
                    left[place] = others
        if left:
            self._waiting[leader] = left
        return asked


def _request(asked: "dict[Place, tuple[int, list[asyncio.Future[PartitionData | None]]]]") -> FetchRequest:
    topics: dict[str, list[WantedPartition]] = {}
    for (topic, partition), (offset, _) in asked.items():
        topics.setdefault(topic, []).append(
            WantedPartition(partition=partition, fetch_offset=offset, partition_max_bytes=READ_BYTES)
        )
    return FetchRequest(
        replica_id=-1,
        max_wait_ms=WAIT_MS,
        min_bytes=1,
        max_bytes=MAX_BYTES,
        isolation_level=READ_COMMITTED,
        topics=[FetchTopic(topic=topic, partitions=partitions) for topic, partitions in topics.items()],
    )


def _hand_out(
    response: FetchResponse, asked: "dict[Place, tuple[int, list[asyncio.Future[PartitionData | None]]]]"
) -> None:
    given = {(topic.topic, each.partition_index): each for topic in response.responses for each in topic.partitions}
    for place, (_, readers) in asked.items():
        for found in readers:
            if not found.done():
                found.set_result(given.get(place))
