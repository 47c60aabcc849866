"""A coordinator's topic without a cluster: real logs in a folder, leadership by hand, a machine of a few lines."""

import asyncio
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from barnabas.clock import SystemClock
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import (
    NOTHING,
    ApplyContext,
    CoordinatorDecision,
    CoordinatorRecord,
    Now,
    ProducerIdAndEpoch,
    Token,
)
from barnabas.metadata.image import ClusterImage, Delta, PartitionImage, TopicImage
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.protocol.messages.offset_commit_record import OffsetCommitKey, OffsetCommitValue
from barnabas.server.coordinator_codec import CoordinatorCodec
from barnabas.server.flusher import Flusher
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.replicas import Replicas
from barnabas.server.runtime import CoordinatorRuntime
from barnabas.storage.log_directories import LogDirectories

TOPIC = "__consumer_offsets"
NODE = 1
ONLY_OFFSETS = CoordinatorCodec([(OffsetCommitKey, OffsetCommitValue)])


@dataclass(frozen=True)
class Put:
    key: str
    value: int
    transaction: ProducerIdAndEpoch | None = None
    count: int = 1
    if_too_large: ErrorCode | None = None
    deadline_ms: int | None = None
    """For the timer that `Park` sets."""


@dataclass(frozen=True)
class Remove:
    keys: tuple[str, ...]


@dataclass(frozen=True)
class Get:
    key: str


@dataclass(frozen=True)
class Park:
    deadline_ms: int


@dataclass(frozen=True)
class Ask:
    request: Any


@dataclass(frozen=True)
class Break:
    pass


class Notebook:
    """Remembers numbers by name, as offsets of a group; responses with strings, or with the number of `Get`."""

    def __init__(self) -> None:
        self.numbers: dict[str, int] = {}
        self.pending: dict[int, dict[str, int]] = {}
        self.parked: dict[str, Token] = {}
        self.loaded = False
        self.image: ClusterImage | None = None
        self.offsets: list[int] = []

    def decide(self, command: Any, token: Token, now: Now) -> CoordinatorDecision:
        assert self.loaded and self.image is not None
        if isinstance(command, Put):
            value = OffsetCommitValue(offset=command.value, metadata="", commit_timestamp=now.wall_ms)
            record = CoordinatorRecord(_key(command.key), value, 3)
            return CoordinatorDecision(
                records=(record,) * command.count,
                replies=((token, "put"),),
                timers=() if command.deadline_ms is None else (("timer", command.deadline_ms),),
                transaction=command.transaction,
                if_too_large=command.if_too_large,
            )
        if isinstance(command, Remove):
            records = tuple(CoordinatorRecord(_key(key), None) for key in command.keys)
            return CoordinatorDecision(records=records, replies=((token, "removed"),))
        if isinstance(command, Get):
            return CoordinatorDecision(replies=((token, str(self.numbers.get(command.key))),))
        if isinstance(command, Park):
            self.parked["timer"] = token
            return CoordinatorDecision(timers=(("timer", command.deadline_ms),))
        if isinstance(command, Ask):
            return CoordinatorDecision(replies=((token, "asked"),), requests=(command.request,))
        raise RuntimeError("broken on purpose")

    def apply(self, key: Any, value: Any | None, context: ApplyContext) -> None:
        self.offsets.append(context.offset)
        target = self.numbers
        if context.is_transactional:
            target = self.pending.setdefault(context.producer_id, {})
        if value is None:
            target.pop(key.topic, None)
        else:
            target[key.topic] = value.offset

    def apply_encoded(self, key: bytes, value: bytes, record_offset: int, timestamp: int) -> bool:
        return False

    def apply_marker(self, producer_id: int, producer_epoch: int, committed: bool) -> None:
        written = self.pending.pop(producer_id, {})
        if committed:
            self.numbers |= written

    def expire(self, key: str, now: Now) -> CoordinatorDecision:
        return CoordinatorDecision(replies=((self.parked.pop(key), "time is up"),))

    def on_loaded(self, now: Now) -> CoordinatorDecision:
        assert not self.loaded
        self.loaded = True
        return NOTHING

    def on_image(self, image: ClusterImage, now: Now) -> CoordinatorDecision:
        self.image = image
        return NOTHING

    def check(self) -> None:
        pass


def _key(name: str) -> OffsetCommitKey:
    return OffsetCommitKey(group="notebook", topic=name, partition=0)


class Harness:
    """One broker's logs and the runtime over them. Use as an async context manager."""

    def __init__(self, directory: Path, *, config: TopicConfig | None = None) -> None:
        self._directory = directory
        self._config = config or TopicConfig(cleanup_policy=("compact",))
        self.clock = SystemClock()
        self.image = ClusterImage()
        self.machines: list[Notebook] = []
        self.carried_out: list[tuple[int, Any]] = []

    async def __aenter__(self) -> "Harness":
        loop = asyncio.get_running_loop()
        self.executor = ThreadPoolExecutor(max_workers=1)
        self.directories = LogDirectories([str(self._directory)], producer_id_expiration_ms=86_400_000)
        self.directories.acquire()
        self.directories.load(lambda _: self._config, self.clock.now_ms())
        self.timers = Timers(loop, self.clock)
        purgatory = FetchPurgatory(loop, self.timers)
        self.replicas = Replicas(
            NODE,
            self.directories,
            purgatory,
            Flusher(loop, self.executor),
            lambda _image, _topic: self._config,
            self.clock,
            self.timers,
        )
        self.runtime = CoordinatorRuntime(
            TOPIC,
            ONLY_OFFSETS,
            self._make_machine,
            node_id=NODE,
            replicas=self.replicas,
            clock=self.clock,
            timers=self.timers,
            executor=self.executor,
            partition_count=50,
            carry_out=lambda partition, request: self.carried_out.append((partition, request)),
            too_long=ErrorCode.INVALID_GROUP_ID,
            commit_timeout_ms=200,
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.runtime.stop()
        self.timers.close()
        self.directories.shutdown(1)
        self.executor.shutdown()

    def _make_machine(self, partition: int, leader_epoch: int) -> Notebook:
        self.machines.append(Notebook())
        return self.machines[-1]

    def lead(
        self,
        leader: int = NODE,
        epoch: int = 1,
        in_sync: tuple[int, ...] = (NODE,),
        partitions: int = 1,
        partition_epoch: int | None = None,
    ) -> None:
        """The controller says who leads all partitions of the topic."""
        state_epoch = epoch if partition_epoch is None else partition_epoch
        images = tuple(
            PartitionImage(number, (NODE, 2), in_sync, leader, epoch, state_epoch) for number in range(partitions)
        )
        topic = TopicImage(TOPIC, b"notebook-topicid", images)
        image = ClusterImage(topics={TOPIC: topic}, topic_names={topic.topic_id: TOPIC})
        delta = Delta.between(self.image, image)
        self.image = image
        self.replicas.on_delta(delta)
        self.runtime.on_delta(delta)

    def delete_topic(self) -> None:
        delta = Delta.between(self.image, ClusterImage())
        self.image = ClusterImage()
        self.replicas.on_delta(delta)
        self.runtime.on_delta(delta)

    def ask(self, command: Any, key: str = "any") -> Any:
        return self.runtime.submit(key, command, fail)

    async def answer(self, command: Any, key: str = "any") -> Any:
        """Like a patient client: goes on asking while the coordinator loads."""
        while True:
            got = await settled(self.ask(command, key))
            if got != "COORDINATOR_LOAD_IN_PROGRESS":
                return got
            await asyncio.sleep(0.001)


def fail(error: ErrorCode) -> str:
    return error.name


async def settled(answer: Any) -> Any:
    return await answer if isinstance(answer, Deferred) else answer
