"""The first scenario: one broker, two producers, a transactional copier and a group of two, under kills.

The producers write numbered lines to `source`; the copier copies them to `target` in transactions; the group reads
`source` and commits. The broker is killed between any two events or in the middle of a write, or loses its power; its
disk is full or fails; it is frozen; connections are reset and directions cut. Then everything heals, and what both
topics hold is checked.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import random
from dataclasses import dataclass, field

from barnabas.aio import Admin, Consumer, Producer
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition
from simulation.history import History, Place, Seen
from simulation.world import SimulatedBroker, World

PARTITIONS = 2
CHAOS_S = 25.0
FAULTS = (
    "kill",
    "kill in a write",
    "kill at an event",
    "broken disk",
    "full disk",
    "reset",
    "cut",
    "freeze",
)
QUICK = {
    "request_timeout_ms": 3000,
    "retry_backoff_ms": 50,
    "retry_backoff_max_ms": 500,
    "reconnect_backoff_ms": 50,
    "reconnect_backoff_max_ms": 500,
}


@dataclass
class Outcome:
    digest: str = ""
    faults: list[str] = field(default_factory=list)
    acknowledged: int = 0
    copied: int = 0


class Scenario:
    def __init__(self, world: World) -> None:
        self.world = world
        self.chance = random.Random(world.chance.getrandbits(64))
        self.history = History()
        self.flushes = world.seed % 3 == 2
        """Every record is flushed before it is acknowledged, and so survives a power loss."""
        self.broker = SimulatedBroker(world, settings={"log.flush.interval.messages": "1"} if self.flushes else None)
        self.over = False
        """No more input: everybody finishes."""
        self.copied: dict[Place, list[Seen]] = {}

    async def run(self) -> Outcome:
        world = self.world
        await self.broker.start()
        user = world.node("admin")
        await world.start(user, self._create_topics())
        writers = [world.start(world.node(f"writer-{n}"), self._write(f"writer-{n}")) for n in range(2)]
        copying = world.start(world.node("copier"), self._copy())
        readers = [world.start(world.node(f"reader-{n}"), self._read(f"reader-{n}")) for n in range(2)]
        await self._make_trouble()
        self.over = True
        await asyncio.gather(*writers)
        await copying
        await asyncio.gather(*readers)
        source = await world.start(user, self._read_all("source"))
        target = await world.start(user, self._read_all("target"))
        faults = self.history.check(source)
        faults += _copy_faults(source, target)
        copied = sum(map(len, target.values()))
        return Outcome(world.digest, faults, self.history.acknowledged_count, copied)

    async def _create_topics(self) -> None:
        async with Admin(self.broker.address, **QUICK) as admin:
            await admin.create_topic("source", partitions=PARTITIONS)
            await admin.create_topic("target", partitions=PARTITIONS)

    async def _write(self, name: str) -> None:
        async with Producer(
            self.broker.address,
            acks="all",
            linger_ms=2,
            client_id=name,
            delivery_timeout_ms=3_600_000,
            max_block_ms=3_600_000,
            **QUICK,
        ) as producer:
            number = 0
            waiting = []
            while not self.over:
                value = f"{name}/{number}".encode()
                number += 1
                partition = self.chance.randrange(PARTITIONS)
                self.history.on_send(f"{name}-{partition}", value)
                waiting.append((value, await producer.send("source", value, partition=partition)))
                await asyncio.sleep(self.chance.expovariate(10))
            for value, delivery in waiting:
                done = await delivery
                self.history.on_acknowledged(value, (done.topic, done.partition), done.offset)

    async def _copy(self) -> None:
        """Until everything is copied, starting again after every failure, as a supervisor would have it."""
        while not (self.over and await self._caught_up("copier")):
            with contextlib.suppress(KafkaError):
                await self._copy_until_failure()
            await asyncio.sleep(0.5)

    async def _copy_until_failure(self) -> None:
        async with (
            Producer(
                self.broker.address, transactional_id="copier", client_id="copier", max_block_ms=20_000, **QUICK
            ) as producer,
            Consumer(
                self.broker.address,
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
                elif self.over and await self._caught_up("copier", consumer):
                    return

    async def _caught_up(self, group: str, consumer: Consumer | None = None) -> bool:
        try:
            async with Consumer(self.broker.address, group_id=group, client_id="look", **QUICK) as look:
                partitions = [TopicPartition("source", n) for n in range(PARTITIONS)]
                ends = await look.end_offsets(partitions)
                committed = await look.committed(partitions)
        except KafkaError:
            return False
        return all((committed[each].offset if committed.get(each) else 0) >= ends[each] for each in partitions)

    async def _read(self, name: str) -> None:
        timing = {"session_timeout_ms": 6000, "heartbeat_interval_ms": 1000}
        protocol = {"group_protocol": "consumer"} if self.world.seed % 2 else timing
        async with Consumer(
            self.broker.address,
            group_id="readers",
            auto_offset_reset="earliest",
            enable_auto_commit=False,
            client_id=name,
            **protocol,
            **QUICK,
        ) as consumer:
            consumer.subscribe(["source"])
            while not (self.over and await self._caught_up("readers")):
                with contextlib.suppress(KafkaError):
                    if await consumer.poll(0.5):
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
        async with Consumer(
            self.broker.address, isolation_level="read_committed", client_id="judge", **QUICK
        ) as consumer:
            partitions = [TopicPartition(topic, n) for n in range(PARTITIONS)]
            consumer.assign(partitions)
            consumer.seek_to_beginning()
            ends = await consumer.end_offsets(partitions)
            while any([await consumer.position(each) < ends[each] for each in partitions]):
                for record in await consumer.poll(0.5):
                    rows[record.topic, record.partition].append(Seen(record.offset, record.value))
        return rows

    async def _make_trouble(self) -> None:
        world, chance = self.world, self.chance
        ends = world.loop.time() + CHAOS_S
        while world.loop.time() < ends:
            await asyncio.sleep(chance.uniform(0.2, 4))
            fault = chance.choice(FAULTS)
            if fault == "reset":
                world.network.reset(self.broker.node)
            elif fault == "cut":
                await self._cut(chance.uniform(0.5, 5))
            elif fault == "full disk":
                await self._fill_disk(chance.uniform(0.2, 2))
            elif fault == "freeze":
                await self._freeze(chance.uniform(0.5, 8))
            else:
                await self._kill(fault)
        world.network.heal()

    async def _cut(self, seconds: float) -> None:
        name = self.chance.choice(("writer-0", "writer-1", "copier", "reader-0", "reader-1"))
        route = (name, self.broker.name) if self.chance.random() < 0.5 else (self.broker.name, name)
        self.world.network.cut(*route)
        await asyncio.sleep(seconds)
        self.world.network.heal(*route)

    async def _fill_disk(self, seconds: float) -> None:
        """Writes fail in the middle, until there is room again."""
        disk = self.broker.disk
        disk.keep_fraction = self.chance.random()
        disk.error = ("write", ".log", errno.ENOSPC)
        await asyncio.sleep(seconds)
        disk.error = None

    async def _freeze(self, seconds: float) -> None:
        """SIGSTOP and SIGCONT."""
        node = self.broker.node
        node.freeze()
        await asyncio.sleep(seconds)
        node.thaw(self.world.loop)

    async def _fail_disk(self) -> None:
        """A write or a flush fails: the log directory goes offline, until the broker is started on another disk."""
        disk = self.broker.disk
        disk.error = (self.chance.choice(("write", "fsync")), ".log", errno.EIO)
        await asyncio.sleep(self.chance.uniform(0.1, 1))
        disk.error = None

    async def _kill(self, fault: str) -> None:
        broker, loop = self.broker, self.world.loop
        if fault == "broken disk":
            await self._fail_disk()
        if fault == "kill in a write":
            broker.disk.crash_at = broker.disk.steps + self.chance.randint(1, 200)
            broker.disk.keep_fraction = self.chance.random()
        elif fault == "kill at an event":
            last = loop.steps + self.chance.randint(1, 2000)

            def on_step() -> None:
                if loop.steps >= last:
                    loop.on_step = None
                    broker.kill()

            loop.on_step = on_step
        else:
            broker.kill()
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(broker.node.ended.wait(), 5)
        loop.on_step = None
        if broker.alive:
            broker.kill()
        if self.flushes:
            broker.lose_power()
        await asyncio.sleep(self.chance.uniform(0, 3))
        while True:
            await broker.start()
            if broker.alive:
                return


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


def run_scenario(seed: int) -> Outcome:
    with World(seed) as world:
        return world.run(Scenario(world).run())
