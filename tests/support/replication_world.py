"""Replicas of one partition on several brokers, without sockets: real logs, partitions, Fetch handler and fetchers.

What travels between brokers (images, fetches, responses) is moved by the test, step by step. There is no controller:
the test says what it decided. Used by the transcripts of replication.
"""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any, cast

from raw_client import batch
from storage_logs import log_bytes

from barnabas.clock import ManualClock, Random
from barnabas.config.broker import BrokerConfig
from barnabas.config.topic import TopicConfig
from barnabas.errors import ErrorCode, KafkaError
from barnabas.machines.fetch_session import FetchSessionCache
from barnabas.metadata.image import BrokerImage, ClusterImage, Delta, PartitionImage, TopicImage
from barnabas.net.deferred import Deferred
from barnabas.net.timers import Timers
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import RequestHeader
from barnabas.protocol.messages.fetch import FetchRequest
from barnabas.protocol.messages.offset_for_leader_epoch import OffsetForLeaderEpochRequest
from barnabas.protocol.replica_fetch import VERSION
from barnabas.records.header import iter_headers
from barnabas.records.reader import read_records
from barnabas.server.handlers import fetch as fetch_handler
from barnabas.server.handlers import offset_for_leader_epoch as epoch_handler
from barnabas.server.hosted_partition import HostedPartition
from barnabas.server.leader_fetcher import LeaderFetcher
from barnabas.server.metrics.requests import RequestMeters
from barnabas.server.purgatory import FetchPurgatory
from barnabas.server.replicas import Replicas
from barnabas.server.request import RequestContext
from barnabas.storage.log_directories import LogDirectories
from barnabas.types import NodeId

TOPIC = "t"
LAG_MS = 1000
SETTINGS = {"replica.fetch.wait.max.ms": "0", "listeners": "PLAINTEXT://h:1", "replica.lag.time.max.ms": str(LAG_MS)}


class SimulatedLink:
    """Requests wait here until the test has them served, and their responses until it delivers them."""

    def __init__(self, leader: int) -> None:
        self.leader = leader
        self.requests: list[tuple[bytes, Deferred[memoryview]]] = []
        self.responses: list[tuple[bytes, Deferred[memoryview]]] = []
        self.on_look_up: Callable[[OffsetForLeaderEpochRequest], Any] | None = None

    def post(self, api_key: int, version: int, body: bytes) -> Deferred[memoryview]:
        assert (api_key, version) == (ApiKey.FETCH, VERSION)
        response: Deferred[memoryview] = Deferred()
        self.requests.append((body, response))
        return response

    def request(self, message: OffsetForLeaderEpochRequest) -> Deferred[Any]:
        assert self.on_look_up is not None
        response: Deferred[Any] = Deferred()
        response.complete(self.on_look_up(message))
        return response


class CutsAtOnce:
    """In place of `Truncations`, which waits for a thread."""

    def __init__(self, broker: "Broker") -> None:
        self._broker = broker

    def cut(
        self, hosted: HostedPartition, leader_epoch: int, offset: int, on_done: Callable[[Exception | None], None]
    ) -> None:
        self._broker.note(f"cut to {offset}")
        self._broker.directories.truncate_to(hosted.log, offset, 0)
        hosted.on_truncated()
        on_done(None)

    def start_over(
        self, hosted: HostedPartition, leader_epoch: int, offset: int, on_done: Callable[[Exception | None], None]
    ) -> None:
        self._broker.note(f"start over at {offset}")
        self._broker.directories.truncate_fully_and_start_at(hosted.log, offset, 0)
        hosted.on_truncated()
        on_done(None)


class Broker:
    def __init__(self, world: "World", number: int) -> None:
        self._world = world
        self.number = number
        self.path = os.path.join(world.folder, str(number))
        self.epoch = number * 10
        self.image = ClusterImage()
        self.proposed: list[HostedPartition] = []
        self.authorizer = None
        self.start()

    def note(self, text: str) -> None:
        self._world.notes.append(f"{self.number} {text}")

    def start(self) -> None:
        world = self._world
        self.image = ClusterImage()
        self.directories = LogDirectories([self.path])
        self.directories.acquire()
        self.directories.load(lambda _: world.topic_config, 0)
        purgatory = FetchPurgatory(world.loop, world.timers)
        self.replicas = Replicas(
            NodeId(self.number),
            self.directories,
            purgatory,
            cast(Any, SimpleNamespace(request=lambda hosted: None)),
            lambda _image, _topic: world.topic_config,
            world.clock,
            world.timers,
            LAG_MS,
        )
        self.replicas.on_isr_proposed = self._on_isr_proposed
        self.fetch_sessions = FetchSessionCache(10, 1000, world.random)
        self.fetch_purgatory = purgatory
        self.links = {each: SimulatedLink(each) for each in world.numbers}
        for each, link in self.links.items():
            link.on_look_up = lambda message, each=each: world.broker(each).look_up(message)  # type: ignore[misc]
        self.fetchers: dict[int, LeaderFetcher] = {}
        self.followed: tuple[int, int, bytes] | None = None

    def stop(self, *, clean: bool) -> None:
        for fetcher in self.fetchers.values():
            fetcher.stop()
        if clean:
            self.directories.shutdown()
        else:
            self.directories.checkpoint_high_watermarks()
            self.directories.release()

    # What handlers see of a broker.
    @property
    def clock(self) -> ManualClock:
        return self._world.clock

    @property
    def timers(self) -> Timers:
        return self._world.timers

    @property
    def config(self) -> BrokerConfig:
        return self._world.config

    @property
    def inter_broker_listener(self) -> str:
        return self._world.config.inter_broker_listener

    @property
    def cluster(self) -> Any:
        return SimpleNamespace(image=self.image)

    @property
    def hosted(self) -> HostedPartition | None:
        try:
            return self.replicas.find(self._world.topic_id, 0)
        except KafkaError:
            return None

    def see(self, image: ClusterImage) -> None:
        """The image reaches this broker, as in `server/broker:_on_delta`."""
        delta = Delta.between(self.image, image)
        self.image = image
        self.replicas.on_delta(delta)
        partition, hosted = image.topics[TOPIC].partitions[0], self.hosted
        wanted: tuple[int, int, bytes] | None = (partition.leader, partition.leader_epoch, self._world.topic_id)
        if hosted is None or partition.leader in (self.number, -1):
            wanted = None
        if wanted == self.followed:
            return
        key = (self._world.topic_id, 0)
        for fetcher in self.fetchers.values():
            fetcher.unfollow(key)
        self.followed = wanted
        if hosted is not None and wanted is not None:
            self._fetcher(partition.leader).follow(hosted)

    def _fetcher(self, leader: int) -> LeaderFetcher:
        if leader not in self.fetchers:
            self.fetchers[leader] = LeaderFetcher(
                leader,
                NodeId(self.number),
                link=lambda node_id: cast(Any, self.links[node_id]),
                config=lambda: self._world.config,
                clock=self._world.clock,
                timers=self._world.timers,
                truncations=cast(Any, CutsAtOnce(self)),
                throttle=self.replicas.follower_throttle,
                broker_epoch=lambda: self.epoch,
            )
        return self.fetchers[leader]

    def handle_fetch(self, body: bytes) -> bytes:
        request, _ = decode(FetchRequest, VERSION, body)
        response = fetch_handler.handle_fetch(self._context(ApiKey.FETCH, VERSION), request)
        assert not isinstance(response, Deferred)
        parts = fetch_handler.HANDLER.encode(response, VERSION, 0)
        frame = b"".join(
            bytes(part)
            if isinstance(part, (bytes, bytearray, memoryview))
            else part.file.pread(part.length, part.position)
            for part in cast(Any, parts)
        )
        return frame[9:]  # without size, correlation id and tags

    def look_up(self, message: OffsetForLeaderEpochRequest) -> Any:
        return epoch_handler.handle_offset_for_leader_epoch(self._context(ApiKey.OFFSET_FOR_LEADER_EPOCH, 4), message)

    def _context(self, api_key: ApiKey, version: int) -> RequestContext:
        connection = cast(Any, SimpleNamespace(listener=SimpleNamespace(name="PLAINTEXT")))
        context = RequestContext(cast(Any, self), connection, RequestHeader(api_key, version, 0, "broker", 0))
        slices = SimpleNamespace(run=_exhausted)
        context.broker.dispatcher = cast(Any, SimpleNamespace(slices=slices, meters=RequestMeters([])))
        return context

    def _on_isr_proposed(self, hosted: HostedPartition) -> None:
        self.proposed = [hosted]
        isr = ",".join(map(str, hosted.state.proposed_isr or ()))
        self.note(f"asks for ISR {isr}")


class World:
    def __init__(self) -> None:
        self.loop = asyncio.new_event_loop()
        self.folder = tempfile.mkdtemp(prefix="barnabas-replication-")
        self.clock = ManualClock()
        self.timers = Timers(self.loop, self.clock)
        self.config = BrokerConfig.parse(SETTINGS)
        self.topic_config = TopicConfig(min_insync_replicas=1)
        self.topic_id = b"\1" * 16
        self.numbers: list[int] = []
        self.notes: list[str] = []
        self.random = Random(1)
        self._brokers: dict[int, Broker] = {}
        self._next_partition_epoch = 0
        self.image = ClusterImage()

    def begin(self, numbers: list[int]) -> None:
        self.numbers = numbers
        for each in numbers:
            self._brokers[each] = Broker(self, each)

    def broker(self, number: int) -> Broker:
        return self._brokers[number]

    def decide(self, leader: int, epoch: int, isr: list[int], *, leaving: list[int]) -> ClusterImage:
        """The controller's next decision."""
        partition = PartitionImage(0, tuple(self.numbers), tuple(isr), leader, epoch, self._next_partition_epoch)
        self._next_partition_epoch += 1
        topic = TopicImage(TOPIC, self.topic_id, (partition,))
        brokers = {
            each: BrokerImage(each, (), epoch=self._brokers[each].epoch, in_controlled_shutdown=each in leaving)
            for each in self.numbers
        }
        self.image = ClusterImage(
            cluster_id="c", brokers=brokers, topics={TOPIC: topic}, topic_names={self.topic_id: TOPIC}
        )
        return self.image

    def append(self, number: int, value: str, acks: int) -> None:
        hosted = self._brokers[number].hosted
        assert hosted is not None
        try:
            info = hosted.append(
                memoryview(batch(*value.encode().split(b"+"), timestamp=self.clock.now_ms())),
                acks,
                self.clock.now_ms(),
            )
        except KafkaError as error:
            self.notes.append(f"{value} refused: {error.code.name}")
            return

        def on_committed(error: ErrorCode) -> None:
            self.notes.append(f"{value} {'acknowledged' if error is ErrorCode.NONE else error.name}")

        hosted.when_committed(info.last_offset, acks, on_committed)

    def state(self, number: int) -> str:
        hosted = self._brokers[number].hosted
        if hosted is None:
            return f"{number} has no replica"
        state, log = hosted.state, hosted.log
        role = "leads" if state.is_leader else "follows"
        return f"{number} {role} epoch={state.leader_epoch} hw={log.high_watermark} log={_content(hosted)}"

    def close(self) -> None:
        for broker in self._brokers.values():
            broker.directories.release()
        self.timers.close()
        self.loop.close()
        shutil.rmtree(self.folder, ignore_errors=True)


def _content(hosted: HostedPartition) -> str:
    """Values with their leader epochs: `a/0 b/1`; from the log's start on."""
    log = hosted.log
    found: list[str] = [] if not log.log_start_offset else [f"(from {log.log_start_offset})"]
    data = memoryview(log_bytes(log))
    for position, header in iter_headers(data):
        records = read_records(data[position : position + header.size_in_bytes])
        found += [f"{(each.value or b'').decode()}/{header.partition_leader_epoch}" for each in records]
    return " ".join(found) or "-"


def _exhausted(work: Any) -> Any:
    try:
        while True:
            next(work)
    except StopIteration as done:
        return done.value
