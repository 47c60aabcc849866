"""The limit on replication: who is held back, and when they are called again."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from broker_on_loop import append
from handler_calls import HandlerCalls
from replication_world import World

from barnabas.clock import ManualClock
from barnabas.config.topic import TopicConfig
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import ClusterImage, Delta, PartitionImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.messages import fetch as messages
from barnabas.server.followers import Followers
from barnabas.server.replica_throttle import ReplicaThrottle, is_throttled
from barnabas.types import NodeId

FOLLOWER = 2


@pytest.mark.parametrize(
    ("replicas", "throttled"),
    [((), False), (("*",), True), (("3:1",), True), (("3:2", "4:1"), False), (("13:1", "3:11"), False)],
)
def test_which_replicas(replicas: tuple[str, ...], throttled: bool) -> None:
    assert is_throttled(replicas, 3, 1) is throttled


class AlarmClock(ManualClock):
    """In place of `Timers`, too: what is due is called as time goes on."""

    def __init__(self) -> None:
        super().__init__()
        self.alarms: list[tuple[int, Callable[[], None]]] = []

    def call_at(self, deadline_ms: int, callback: Callable[[], None]) -> None:
        self.alarms.append((deadline_ms, callback))

    def advance(self, milliseconds: int) -> None:
        end_ms = self.monotonic_ms() + milliseconds
        while due := [each for each in self.alarms if each[0] <= end_ms]:
            first = min(due, key=lambda each: each[0])
            self.alarms.remove(first)
            super().advance(max(0, first[0] - self.monotonic_ms()))
            first[1]()
        super().advance(end_ms - self.monotonic_ms())


def make() -> tuple[ReplicaThrottle, AlarmClock, list[int]]:
    clock, called = AlarmClock(), list[int]()
    return ReplicaThrottle(clock, clock), clock, called  # type: ignore[arg-type]


def test_whoever_waits_is_called_when_the_limit_allows_more() -> None:
    throttle, clock, called = make()
    throttle.set_rate(1000)
    throttle.record(3000)
    assert throttle.is_exceeded()
    throttle.when_allowed(lambda: called.append(clock.monotonic_ms()))
    clock.advance(10_000)
    assert called == [3000] and not clock.alarms, "once, and nothing goes on"


def test_what_goes_on_meanwhile_makes_the_wait_longer() -> None:
    throttle, clock, called = make()
    throttle.set_rate(1000)
    throttle.record(3000)
    throttle.when_allowed(lambda: called.append(clock.monotonic_ms()))
    clock.advance(1000)
    throttle.record(2000)
    clock.advance(10_000)
    assert called == [5000]


@pytest.mark.parametrize("rate", [(1 << 63) - 1, 100_000, 10])
def test_another_limit_is_heard_of_at_once(rate: int) -> None:
    throttle, clock, called = make()
    throttle.set_rate(1000)
    throttle.record(3000)
    throttle.when_allowed(lambda: called.append(clock.monotonic_ms()))
    clock.advance(100)
    throttle.set_rate(rate)
    assert called == [100]
    clock.advance(10_000)
    assert called == [100]


def test_without_a_limit_nothing_is_exceeded() -> None:
    throttle, _, _ = make()
    throttle.record(1 << 40)
    assert not throttle.is_exceeded()


class Leader:
    """A broker that leads a throttled topic with one replica elsewhere, which the test plays."""

    def __init__(self, calls: HandlerCalls) -> None:
        self._calls = calls
        self.hosted = calls.broker.replicas.find("t", 0)
        self.throttle = calls.broker.replicas.leader_throttle
        self._session = self._epoch = 0

    def set_in_sync(self, *replicas: int) -> None:
        epoch = self.hosted.state.partition_epoch + 1
        self.hosted.on_image(PartitionImage(0, (1, FOLLOWER), replicas, 1, 1, epoch), 0)

    def set_throttled(self, replicas: tuple[str, ...]) -> None:
        self.hosted.log.update_config(TopicConfig(leader_replication_throttled_replicas=replicas))
        self.hosted.on_config_changed()

    @property
    def held_back(self) -> Any:
        session: Any = self._calls.broker.fetch_sessions.get(self._session)
        return session.news.held_back

    def append(self) -> None:
        append(self._calls.broker, self.hosted, b"x" * 1000)

    def fetch(self, offset: int, wait_ms: int = 60_000) -> Any:
        partition = messages.FetchPartition(
            partition=0, fetch_offset=offset, current_leader_epoch=1, partition_max_bytes=1 << 20
        )
        request = messages.FetchRequest(
            replica_state=messages.ReplicaState(replica_id=FOLLOWER, replica_epoch=-1),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=1 << 20,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=[messages.FetchTopic(topic_id=self.hosted.topic_id, partitions=[partition])],
            forgotten_topics_data=[],
        )
        self._epoch += 1
        response = self._calls.start(request, 17)
        if not self._session:
            self._session = response.session_id
        return response


def record_bytes(response: Any) -> int:
    return sum(each.records.length for topic in response.responses for each in topic.partitions if each.records)


def run(directory: Path, scenario: Callable[[Leader], Coroutine[Any, Any, None]]) -> None:
    async def main() -> None:
        async with HandlerCalls(directory) as calls:
            await calls.broker.controller.create_topics([NewTopic("t", 1, 1)])
            leader = Leader(calls)
            leader.set_in_sync(1)
            leader.set_throttled(("0:1",))
            leader.throttle.set_rate(10_000)
            leader.fetch(0)
            async with asyncio.timeout(20):
                await scenario(leader)

    asyncio.run(main())


def test_what_a_leader_sends_counts_and_is_held_back(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        leader.append()
        assert record_bytes(leader.fetch(0)) > 1000
        assert not leader.throttle.is_exceeded()
        leader.throttle.set_rate(500)
        leader.append()
        assert record_bytes(leader.fetch(1, wait_ms=0)) == 0
        waiting = leader.fetch(1)
        assert isinstance(waiting, Deferred)
        leader.append()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        assert not waiting.completed, "more of the same does not wake it"
        assert record_bytes(await waiting) > 2000, "it is woken when the limit allows more, long before it must respond"

    run(tmp_path, scenario)


def test_a_replica_in_sync_is_not_held_back(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        leader.throttle.set_rate(0)
        leader.throttle.record(1_000_000)
        leader.append()
        waiting = leader.fetch(0)
        assert isinstance(waiting, Deferred)
        leader.set_in_sync(1, FOLLOWER)
        assert waiting.completed
        assert record_bytes(await waiting) > 1000, "as soon as it is in sync"
        leader.append()
        assert record_bytes(leader.fetch(1)) > 1000
        assert leader.throttle._meter.per_second(0) > 1_002_000, "which counts all the same"

    run(tmp_path, scenario)


@pytest.mark.parametrize("what", ["rate", "replicas", "other replicas"])
def test_a_limit_that_is_taken_away_lets_go_at_once(tmp_path: Path, what: str) -> None:
    async def scenario(leader: Leader) -> None:
        leader.throttle.set_rate(0)
        leader.throttle.record(1_000_000)
        leader.append()
        waiting = leader.fetch(0)
        assert isinstance(waiting, Deferred)
        if what == "rate":
            leader.throttle.set_rate(1 << 62)
        else:
            leader.set_throttled(() if what == "replicas" else ("1:1", "0:2"))
        assert waiting.completed and record_bytes(await waiting) > 1000

    run(tmp_path, scenario)


def test_what_was_held_back_before_wakes_a_fetch_again(tmp_path: Path) -> None:
    async def scenario(leader: Leader) -> None:
        leader.throttle.set_rate(0)
        leader.throttle.record(1_000_000)
        leader.append()
        assert record_bytes(leader.fetch(0, wait_ms=0)) == 0
        assert leader.held_back
        leader.throttle.set_rate(1 << 62)
        assert record_bytes(leader.fetch(0)) > 1000
        waiting = leader.fetch(1)
        assert not leader.held_back
        leader.append()
        assert record_bytes(await waiting) > 1000

    run(tmp_path, scenario)


class Follower:
    """Broker 2 of two, which follows a throttled partition of broker 1."""

    def __init__(self, world: World) -> None:
        world.topic_config = TopicConfig(follower_replication_throttled_replicas=("0:2",))
        world.begin([1, 2])
        self._world = world
        self._broker = world.broker(2)
        self.throttle = self._broker.replicas.follower_throttle
        self.requests = self._broker.links[1].requests
        self._image = ClusterImage()
        self._followers = Followers(
            NodeId(2),
            cast(Any, SimpleNamespace(to=lambda node_id, use: self._broker.links[node_id])),
            self._broker.replicas,
            self._broker.directories,
            config=lambda: world.config,
            clock=world.clock,
            timers=world.timers,
            executor=cast(Any, None),
            broker_epoch=lambda: 20,
        )

    def see(self, *in_sync: int) -> None:
        image = self._world.decide(1, 1, list(in_sync), leaving=[])
        delta = Delta.between(self._image, image)
        self._image = image
        self._broker.replicas.on_delta(delta)
        self._followers.on_delta(delta)


@pytest.fixture
def follower() -> Iterator[Follower]:
    world = World()
    yield Follower(world)
    world.close()


def test_a_follower_over_its_limit_does_not_fetch(follower: Follower) -> None:
    follower.throttle.set_rate(1000)
    follower.throttle.record(1_000_000)
    follower.see(1)
    assert not follower.requests
    follower.throttle.set_rate(1 << 62)
    assert len(follower.requests) == 1


def test_a_follower_in_sync_fetches_over_its_limit(follower: Follower) -> None:
    follower.throttle.set_rate(1000)
    follower.throttle.record(1_000_000)
    follower.see(1)
    assert not follower.requests
    follower.see(1, 2)
    assert len(follower.requests) == 1, "it was held back before"
