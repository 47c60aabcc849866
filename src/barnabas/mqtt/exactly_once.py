"""Messages with QoS 2 of a session that outlives its connection: appended once, whatever is killed in between.

A message gets a producer id and a sequence, and both are stored with its packet id, as an intent, before the message is
appended with them. A client that finds no PUBREC sends the message again, perhaps to another broker: it is appended
with the same id and sequence, and the log drops it if it has it. PUBREL removes the intent.

A log knows the last five batches of a producer. So messages go in groups of five, and the intents of a group are
stored when the group before is in the log. Each connection has a producer id of its own.
"""

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.mqtt.session import Intent, encode_intent, intent_key
from barnabas.mqtt.ingest import Headers
from barnabas.records.builder import BatchBuilder

if TYPE_CHECKING:
    from barnabas.mqtt.gateway import Gateway
    from barnabas.mqtt.live_session import LiveSession

logger = logging.getLogger(__name__)

GROUP: Final = 5
RETRY_SECONDS: Final = 0.1
GIVE_UP_MS: Final = 30_000

OnStored = Callable[[ErrorCode], None]


class Waiting(NamedTuple):
    packet_id: int
    topic: str
    partition: int
    key: bytes
    payload: bytes
    headers: Headers
    on_stored: OnStored


class ExactlyOnce:
    """`stored` are the packet ids whose messages are in the log, until they are released."""

    def __init__(self, gateway: "Gateway", live: "LiveSession") -> None:
        assert live.partition is not None
        self._gateway = gateway
        self._live = live
        self._partition = live.partition
        client_id = live.session.client_id
        self.stored, self._open = live.partition.table.intents(client_id)
        self._client_id = client_id
        self._producer_id = -1
        self._sequences: dict[tuple[str, int], int] = {}
        self._group = 0
        self._waiting: deque[Waiting] = deque()
        self._worker: asyncio.Task[None] | None = None

    @property
    def packet_ids(self) -> set[int]:
        """All that were published and not released."""
        return self.stored | self._open.keys()

    def publish(self, message: Waiting) -> None:
        self._waiting.append(message)
        if self._worker is None or self._worker.done():
            self._worker = self._gateway.run(self._work())

    async def release(self, packet_id: int) -> None:
        """The client knows that the message is stored. Raises KafkaError."""
        await self._gateway.store.append(self._partition, intent_key(self._client_id, packet_id), None)
        self.stored.discard(packet_id)
        self._open.pop(packet_id, None)

    async def _work(self) -> None:
        while self._waiting and not self._live.is_lost:
            group = [self._waiting.popleft() for _ in range(min(GROUP, len(self._waiting)))]
            try:
                outcomes = await self._store(group)
            except KafkaError as error:
                outcomes = [error.code] * len(group)
            for message, outcome in zip(group, outcomes, strict=True):
                if outcome is ErrorCode.NONE:
                    self.stored.add(message.packet_id)
                message.on_stored(outcome)

    async def _store(self, group: list[Waiting]) -> list[ErrorCode]:
        repeated = [each for each in group if each.packet_id in self._open]
        for message in repeated:
            # What the connection before began, in its order.
            code = await self._append(message, self._open[message.packet_id])
            if code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER:
                continue  # one before it never came to the log, so neither did this one
            if code is not ErrorCode.NONE:
                return [code] * len(group)
            self._open.pop(message.packet_id)
            self.stored.add(message.packet_id)
        new = [each for each in group if each.packet_id not in self.stored]
        intents = await self._intend(new)
        codes = dict.fromkeys([each.packet_id for each in group], ErrorCode.NONE)
        for message, intent in zip(new, intents, strict=True):
            codes[message.packet_id] = code = await self._append(message, intent)
            if code is ErrorCode.NONE:
                self._open.pop(message.packet_id, None)
            else:
                # The sequence has a gap now.
                self._producer_id = -1
                if not code.retriable:
                    key = intent_key(self._client_id, message.packet_id)
                    await self._gateway.store.append(self._partition, key, None)
                # Else it may be in the log: the client is disconnected, and sends it again with the same intent.
        return [codes[each.packet_id] for each in group]

    async def _intend(self, messages: list[Waiting]) -> list[Intent]:
        """Stores which producer and sequence each has. Raises KafkaError."""
        if not messages:
            return []
        if self._producer_id < 0:
            self._producer_id = await self._new_producer_id()
            self._sequences.clear()
        self._group += 1
        intents: list[Intent] = []
        for message in messages:
            place = message.topic, message.partition
            sequence = self._sequences.get(place, 0)
            self._sequences[place] = sequence + 1
            generation = self._live.session.generation
            intents.append(Intent(message.packet_id, generation, self._producer_id, sequence, *place, self._group))
        store = self._gateway.store
        await store.write(
            self._partition, [(intent_key(self._client_id, each.packet_id), encode_intent(each)) for each in intents]
        )
        if not await store.accepted(self._partition, self._client_id, intents):
            self._live.is_lost = True
            raise KafkaError(ErrorCode.FENCED_INSTANCE_ID, "another connection has the session")
        return intents

    async def _new_producer_id(self) -> int:
        """From the controller, which may just be another one. Raises KafkaError."""
        deadline_ms = self._gateway.monotonic_ms() + GIVE_UP_MS
        while True:
            try:
                return await self._gateway.next_producer_id()
            except KafkaError as error:
                if not error.code.retriable or self._gateway.monotonic_ms() >= deadline_ms:
                    raise
            await asyncio.sleep(RETRY_SECONDS)

    async def _append(self, message: Waiting, intent: Intent) -> ErrorCode:
        builder = BatchBuilder()
        builder.producer_id, builder.producer_epoch, builder.base_sequence = intent.producer_id, 0, intent.sequence
        builder.append(self._gateway.now_ms(), message.key, message.payload, message.headers)
        batch = bytes(builder.build())
        deadline_ms = self._gateway.monotonic_ms() + GIVE_UP_MS
        while True:
            code = await self._gateway.partitions.append_and_wait(intent.topic, intent.partition, batch)
            if code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
                return ErrorCode.NONE
            if not code.retriable or self._live.is_lost or self._gateway.monotonic_ms() >= deadline_ms:
                return code
            await asyncio.sleep(RETRY_SECONDS)
