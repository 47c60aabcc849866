"""What the users of a simulated cluster do all the time: write, copy in transactions, read as a group.

Two producers write numbered lines to `source`; the copier copies them to `target` in transactions, starting again after
every failure; a group of two reads `source` and commits. `finish` ends the input and waits until everybody is through.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections.abc import Awaitable

from barnabas import RecordMetadata
from barnabas.aio import Admin, Consumer, Producer
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition
from simulation.history import History, Place, Seen
from simulation.world import World

PARTITIONS = 2
QUICK = {
    "request_timeout_ms": 3000,
    "retry_backoff_ms": 50,
    "retry_backoff_max_ms": 500,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,
}
WRITERS = ("writer-0", "writer-1")
COPIER = "copier"
READERS = ("reader-0", "reader-1")
USERS = (*WRITERS, COPIER, *READERS)


class Workload:
    def __init__(self, world: World, bootstrap: str, chance: random.Random, *, replication_factor: int = 1) -> None:
        self._world = world
        self._bootstrap = bootstrap
        self._chance = chance
        self._replication_factor = replication_factor
        self.records_per_second = 10
        """Of each writer."""
        self.history = History()
        self._over = False
        """No more input: everybody finishes."""
        self._probes = 0
        self._tasks: list[asyncio.Task[None]] = []
        self._judge = world.node("judge")

    async def start(self) -> None:
        """Returns once the topics are there and everybody works."""
        world = self._world
        await world.start(self._judge, self._create_topics())
        self._tasks += [world.start(world.node(name), self._write(name)) for name in WRITERS]
        self._tasks.append(world.start(world.node(COPIER), self._copy()))
        self._tasks += [world.start(world.node(name), self._read(name)) for name in READERS]

    async def probe(self) -> None:
        """Returns once every partition has taken a write."""
        await self._world.start(self._judge, self._probe())

    async def finish(self) -> None:
        self._over = True
        await asyncio.gather(*self._tasks)

    def unfinished(self) -> list[str]:
        names = [*WRITERS, COPIER, *READERS]
        return [name for name, task in zip(names, self._tasks, strict=True) if not task.done()]

    async def check(self) -> tuple[list[str], int]:
        """Everything that is wrong, in words, and how many records were copied."""
        source = await self._world.start(self._judge, self._read_all("source"))
        target = await self._world.start(self._judge, self._read_all("target"))
        faults = self.history.check(source) + _copy_faults(source, target)
        return faults, sum(map(len, target.values()))

    async def _create_topics(self) -> None:
        async with Admin(self._bootstrap, **QUICK) as admin:
            for topic in ("source", "target"):
                await admin.create_topic(topic, partitions=PARTITIONS, replication_factor=self._replication_factor)

    async def _write(self, name: str) -> None:
        async with self._producer(name) as producer:
            number = 0
            sent: asyncio.Queue[tuple[bytes, Awaitable[RecordMetadata]] | None] = asyncio.Queue()
            noting = asyncio.ensure_future(self._note_acknowledged(sent))
            while not self._over:
                value = f"{name}/{number}".encode()
                number += 1
                partition = self._chance.randrange(PARTITIONS)
                self.history.on_send(f"{name}-{partition}", value)
                sent.put_nowait((value, await producer.send("source", value, partition=partition)))
                await asyncio.sleep(self._chance.expovariate(self.records_per_second))
            sent.put_nowait(None)
            await noting

    async def _note_acknowledged(self, sent: asyncio.Queue[tuple[bytes, Awaitable[RecordMetadata]] | None]) -> None:
        while (each := await sent.get()) is not None:
            value, delivery = each
            done = await delivery
            self.history.on_acknowledged(value, (done.topic, done.partition), done.offset)

    async def _probe(self) -> None:
        async with self._producer("probe") as producer:
            for partition in range(PARTITIONS):
                self._probes += 1
                value = f"probe/{self._probes}".encode()
                self.history.on_send("probe", value)
                done = await (await producer.send("source", value, partition=partition))
                self.history.on_acknowledged(value, (done.topic, done.partition), done.offset)

    def _producer(self, name: str) -> Producer:
        return Producer(
            self._bootstrap,
            acks="all",
            linger_ms=2,
            client_id=name,
            delivery_timeout_ms=3_600_000,
            max_block_ms=3_600_000,
            **QUICK,
        )

    async def _copy(self) -> None:
        """Until everything is copied, starting again after every failure, as a supervisor would have it."""
        while not (self._over and await self._caught_up("copier")):
            with contextlib.suppress(KafkaError):
                await self._copy_until_failure()
            await asyncio.sleep(0.5)

    async def _copy_until_failure(self) -> None:
        async with (
            Producer(
                self._bootstrap, transactional_id="copier", client_id="copier", max_block_ms=20_000, **QUICK
            ) as producer,
            Consumer(
                self._bootstrap,
                group_id="copier",
                isolation_level="read_committed",
                enable_auto_commit=False,
                auto_offset_reset="earliest",
                client_id="copier",
                session_timeout_ms=6000,
                heartbeat_interval_ms=1000,
                **QUICK,
            ) as consumer,
        ):
            consumer.subscribe(["source"])
            idle = 0
            while idle < 20:
                records = await consumer.poll(0.2)
                idle = 0 if records else idle + 1
                if records:
                    async with producer.transaction():
                        for record in records:
                            await producer.send("target", record.value, partition=record.partition)
                        await producer.send_offsets(consumer)
                elif self._over and await self._caught_up("copier", consumer):
                    return

    async def _caught_up(self, group: str, consumer: Consumer | None = None) -> bool:
        try:
            async with Consumer(self._bootstrap, group_id=group, client_id="look", **QUICK) as look:
                partitions = [TopicPartition("source", n) for n in range(PARTITIONS)]
                ends = await look.end_offsets(partitions)
                committed = await look.committed(partitions)
        except KafkaError:
            return False
        return all((committed[each].offset if committed.get(each) else 0) >= ends[each] for each in partitions)

    async def _read(self, name: str) -> None:
        timing = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
        protocol = {"group_protocol": "consumer"} if self._world.seed % 2 else timing
        async with Consumer(
            self._bootstrap,
            group_id="readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            client_id=name,
            **protocol,
            **QUICK,
        ) as consumer:
            consumer.subscribe(["source"])
            while not (self._over and await self._caught_up("readers")):
                with contextlib.suppress(KafkaError):
                    records = await consumer.poll(0.5)
                    for record in records:
                        self.history.on_read((record.topic, record.partition), record.offset, record.value)
                    if records:
                        await consumer.commit()
                        await self._note_committed("readers", consumer)
                await asyncio.sleep(0.05)

    async def _note_committed(self, group: str, consumer: Consumer) -> None:
        partitions = [TopicPartition("source", n) for n in range(PARTITIONS)]
        known = {each: self.history.committed_offset(group, tuple(each)) for each in partitions}
        for each, offset in (await consumer.committed(partitions)).items():
            if offset is not None:
                self.history.on_committed_offset(group, tuple(each), offset.offset, known[each])

    async def _read_all(self, topic: str) -> dict[Place, list[Seen]]:
        rows: dict[Place, list[Seen]] = {(topic, n): [] for n in range(PARTITIONS)}
        async with Consumer(self._bootstrap, isolation_level="read_committed", client_id="judge", **QUICK) as consumer:
            partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for record in await consumer.poll(0.5):
                    rows[record.topic, record.partition].append(Seen(record.offset, record.value))
        return rows


def _copy_faults(source: dict[Place, list[Seen]], target: dict[Place, list[Seen]]) -> list[str]:
    """Each partition of the copy has the same values in the same order."""
    faults = []
    for number in range(PARTITIONS):
        expected = [row.value for row in source["source", number]]
        copied = [row.value for row in target["target", number]]
        if copied != expected:
            faults.append(
                f"partition {number}: {len(expected)} records were copied to {len(copied)}, or in another order"
            )
    return faults
