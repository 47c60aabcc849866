"""Retained messages: the last message of each MQTT topic that was published with the retain flag.

They are records of a compacted topic, with the MQTT topic as their key; an empty message deletes its topic's. Every
broker with MQTT clients follows that topic in memory. Who subscribes gets all that was retained before: the table
first catches up with the end of the log.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import ClusterImage
from barnabas.mqtt.partitions import Partitions
from barnabas.mqtt.topics import TopicFilter, name_of
from barnabas.records import Record

RETAINED: Final = "__mqtt_retained"
RETRY_SECONDS: Final = 0.2
PER_TURN: Final = 2000

Run = Callable[[Coroutine[Any, Any, None]], "asyncio.Task[None]"]


class Retained:
    def __init__(self, partitions: Partitions, is_known: Callable[[str], bool], run: Run) -> None:
        self._partitions = partitions
        self._is_known = is_known
        self._run = run
        self._messages: dict[str, Record] = {}
        self._position = 0
        self._moved = asyncio.Event()
        self._follower: asyncio.Task[None] | None = None

    async def matching(self, wanted: TopicFilter) -> list[Record]:
        """In the order of their topics' first messages. None of a topic that cannot be read just now."""
        if not self._is_known(RETAINED):
            return []
        if self._follower is None or self._follower.done():
            self._follower = self._run(self._follow())
        await self._catch_up()
        if not wanted.has_wildcards:
            found = self._messages.get(wanted.text)
            return [] if found is None else [found]
        matches: list[Record] = []
        for index, (name, record) in enumerate(list(self._messages.items())):
            if wanted.matches(name):
                matches.append(record)
            if index % PER_TURN == PER_TURN - 1:
                await asyncio.sleep(0)
        return matches

    async def _catch_up(self) -> None:
        while True:
            try:
                end = await self._partitions.end_offset(RETAINED, 0)
                break
            except KafkaError as error:
                if not error.code.retriable:
                    return
            await asyncio.sleep(RETRY_SECONDS)
        while self._position < end:
            self._moved.clear()
            await self._moved.wait()

    async def _follow(self) -> None:
        while True:
            try:
                result = await self._partitions.read(RETAINED, 0, self._position)
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE or not self._is_known(RETAINED):
                    # Another topic of that name, or a log that was cut: what is known may be wrong.
                    self._messages.clear()
                    self._position = 0
                await asyncio.sleep(RETRY_SECONDS)
                continue
            for record in result.records:
                self._apply(record)
            self._position = result.next_offset
            self._moved.set()

    def _apply(self, record: Record) -> None:
        name = name_of(record.key or b"")
        if name is None:
            return
        if record.value is None:
            self._messages.pop(name, None)
        else:
            self._messages[name] = record


def retained_topic(config: BrokerConfig, image: ClusterImage) -> NewTopic:
    """With as many replicas as the coordinators' topics have, if there are so many brokers."""
    known_count = len(image.brokers) + len(image.fenced_brokers)
    factor = min(config.offsets_topic_replication_factor, known_count)
    return NewTopic(RETAINED, 1, factor, configs=(("cleanup.policy", "compact"),))
