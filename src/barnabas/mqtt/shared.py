"""A shared subscription on this broker: `$share/NAME/FILTER` is the consumer group of just that name.

This broker is one member of the group, whatever number of its clients share: the group spreads partitions over
brokers, and each message goes to the next client that has room. What a client that goes away has not acknowledged goes
to another one. Offsets are committed up to the first message that is not acknowledged.
"""

import asyncio
import logging
from collections import deque
from typing import TYPE_CHECKING, Final

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import Place
from barnabas.mqtt.mapping import topic_of_record
from barnabas.mqtt.share_group import ShareGroup
from barnabas.mqtt.topics import TopicFilter, split_shared
from barnabas.records import Record

if TYPE_CHECKING:
    from barnabas.mqtt.egress import Egress
    from barnabas.mqtt.gateway import Gateway

logger = logging.getLogger(__name__)

RETRY_SECONDS: Final = 0.2
COMMIT_SECONDS: Final = 1.0
SETTLING_SECONDS: Final = 0.1
"""Between heartbeats while the assignment is not what it should be."""
STARTING_AGAIN: Final = (ErrorCode.FENCED_MEMBER_EPOCH, ErrorCode.UNKNOWN_MEMBER_ID, ErrorCode.STALE_MEMBER_EPOCH)
NO_COORDINATOR: Final = (ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_NOT_AVAILABLE)


class SharedReader:
    def __init__(self, gateway: "Gateway", text: str) -> None:
        self._gateway = gateway
        self._text = text
        self._filter_text = split_shared(text)[1]
        self._filter = TopicFilter(self._filter_text)
        self._group = ShareGroup(gateway.broker, text)
        self._members: deque[Egress] = deque()
        self._begin: dict[Place, int] = {}
        """Ends of the partitions when the first client subscribed: there a group without offsets begins."""
        self._known_begin = False
        self._readers: dict[Place, asyncio.Task[None]] = {}
        self._positions: dict[Place, int] = {}
        self._committed: dict[Place, int] = {}
        self._out: dict[tuple[Place, int], tuple[Egress, Record]] = {}
        """What clients have not acknowledged."""
        self._again: deque[tuple[Place, Record]] = deque()
        self._room = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    def add(self, client: "Egress") -> None:
        if client not in self._members:
            self._members.append(client)
        self._room.set()
        if self._task is None or self._task.done():
            self._task = self._gateway.run(self._run())

    def remove(self, client: "Egress") -> None:
        if client in self._members:
            self._members.remove(client)
        for (place, offset), (owner, record) in list(self._out.items()):
            if owner is client:
                del self._out[place, offset]
                self._again.append((place, record))
        self._room.set()

    def on_done(self, client: "Egress", place: Place, offset: int) -> None:
        """Acknowledged, or nothing to acknowledge."""
        known = self._out.get((place, offset))
        if known is not None and known[0] is client:
            del self._out[place, offset]
        self._room.set()

    async def find_begin(self) -> None:
        """Called while the first client subscribes. Raises KafkaError."""
        if self._known_begin:
            return
        for topic, count in self._gateway.topics():
            if self._gateway.mapping.may_hold(topic, self._filter_text):
                for partition in range(count):
                    self._begin[topic, partition] = await self._gateway.partitions.end_offset(topic, partition)
        self._known_begin = True

    async def _run(self) -> None:
        """While there are clients here."""
        commits = self._gateway.run(self._keep_committing())
        again = self._gateway.run(self._repeat())
        try:
            while True:
                pause = await self._beat()
                if not self._members:
                    break
                await asyncio.sleep(pause)
        finally:
            commits.cancel()
            again.cancel()
            for place in list(self._readers):
                self._readers.pop(place).cancel()
        await self._commit(self._positions)
        self._positions.clear()
        self._out.clear()
        self._again.clear()
        await self._group.leave()
        if self._members:  # one came meanwhile
            self._task = self._gateway.run(self._run())
        else:
            self._gateway.forget_shared(self._text)

    async def _beat(self) -> float:
        """Seconds to the next heartbeat."""
        topics = sorted(
            topic for topic, _ in self._gateway.topics() if self._gateway.mapping.may_hold(topic, self._filter_text)
        )
        if not topics:
            return SETTLING_SECONDS
        try:
            assigned, interval_ms = await self._group.beat(topics, list(self._readers))
            if assigned is None:
                return min(interval_ms / 1000, COMMIT_SECONDS)
            gone = {place: offset for place, offset in self._positions.items() if place not in assigned}
            for place in gone:
                self._readers.pop(place).cancel()
            await self._commit(gone)
            for place in gone:
                self._drop(place)
            for place in assigned - self._readers.keys():
                self._positions[place] = self._committed[place] = await self._first(place)
                self._readers[place] = self._gateway.run(self._follow(place))
        except KafkaError as error:
            logger.info("%s: %s", self._text, error)
            if error.code in NO_COORDINATOR:
                self._group.lose_coordinator()
            elif error.code in STARTING_AGAIN:
                self._group.start_again()
                for place in list(self._readers):
                    self._readers.pop(place).cancel()
                    self._drop(place)
            return RETRY_SECONDS
        return SETTLING_SECONDS

    def _drop(self, place: Place) -> None:
        """Another broker has the partition: what is not acknowledged is delivered there again."""
        self._positions.pop(place, None)
        self._committed.pop(place, None)
        for key in [key for key in self._out if key[0] == place]:
            del self._out[key]
        self._again = deque(each for each in self._again if each[0] != place)

    async def _first(self, place: Place) -> int:
        offset = await self._group.committed(place)
        return offset if offset >= 0 else self._begin.get(place, 0)

    async def _keep_committing(self) -> None:
        while True:
            await asyncio.sleep(COMMIT_SECONDS)
            await self._commit(self._positions)

    async def _commit(self, positions: dict[Place, int]) -> None:
        offsets = dict(positions)
        for place, offset in [*self._out, *((place, record.offset) for place, record in self._again)]:
            if place in offsets:
                offsets[place] = min(offsets[place], offset)
        moved = {place: offset for place, offset in offsets.items() if offset != self._committed.get(place)}
        if not moved:
            return
        try:
            await self._group.commit(moved)
        except KafkaError as error:
            logger.info("%s: offsets could not be committed: %s", self._text, error)
        else:
            self._committed.update(moved)

    async def _follow(self, place: Place) -> None:
        while True:
            try:
                result = await self._gateway.partitions.read(*place, self._positions[place])
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    self._positions[place] = await self._gateway.start_offset(*place)
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for record in result.records:
                name = topic_of_record(
                    place[0], record.key, dict(record.headers).get("mqtt.topic"), self._gateway.mapping
                )
                if self._filter.matches(name):
                    await self._give(place, record)
                self._positions[place] = record.offset + 1
            self._positions[place] = result.next_offset

    async def _repeat(self) -> None:
        while True:
            while self._again:
                place, record = self._again[0]
                await self._give(place, record)
                if self._again and self._again[0] == (place, record):
                    self._again.popleft()
            self._room.clear()
            await self._room.wait()

    async def _give(self, place: Place, record: Record) -> None:
        """To the next client that may read it and has room, as soon as there is one. Nobody's if none may."""
        while True:
            readers = {client for client in self._members if client.may_read(place[0])}
            if self._members and not readers:
                return
            for _ in range(len(self._members)):
                client = self._members[0]
                self._members.rotate(-1)
                if client not in readers:
                    continue
                self._out[place, record.offset] = client, record
                if client.offer(self, self._text, place, record):
                    return
                del self._out[place, record.offset]
            try:
                await asyncio.wait_for(self._room.wait(), RETRY_SECONDS)
            except TimeoutError:
                pass
            self._room.clear()
