"""What a leader reads for a follower's fetch: partitions with news, and no others."""

import asyncio
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

import pytest
from broker_on_loop import append, make_topic, run_broker
from handler_calls import HandlerCalls

from barnabas.clock import ManualClock
from barnabas.machines.controller.commands import NewTopic
from barnabas.metadata.image import PartitionImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.messages import fetch as messages
from barnabas.server import follower_fetch, steps
from barnabas.server.handlers import fetch as fetch_handler
from barnabas.server.hosted_partition import HostedPartition

FOLLOWER = 2
PARTITIONS = 50


class Leader:
    """A broker that leads a topic whose only other replica is a broker that the test plays."""

    def __init__(self, calls: HandlerCalls, read: list[int]) -> None:
        self.calls = calls
        self.topic_id = calls.broker.cluster.image.topics["t"].topic_id
        self.read = read
        """Partitions that were read, in order."""
        self._session = 0
        self._epoch = 0

    def hosted(self, partition: int) -> HostedPartition:
        return self.calls.broker.replicas.find("t", partition)

    def append(self, partition: int, *values: bytes) -> None:
        append(self.calls.broker, self.hosted(partition), *values)

    def fetch(
        self,
        offsets: dict[int, int],
        *,
        wait_ms: int = 60_000,
        max_bytes: int = 1 << 20,
        forget: tuple[int, ...] = (),
    ) -> Any:
        wanted = [
            messages.FetchPartition(
                partition=partition, fetch_offset=offset, current_leader_epoch=1, partition_max_bytes=1 << 20
            )
            for partition, offset in offsets.items()
        ]
        request = messages.FetchRequest(
            replica_state=messages.ReplicaState(replica_id=FOLLOWER, replica_epoch=-1),
            max_wait_ms=wait_ms,
            min_bytes=1,
            max_bytes=max_bytes,
            session_id=self._session,
            session_epoch=self._epoch,
            topics=[messages.FetchTopic(topic_id=self.topic_id, partitions=wanted)] if wanted else [],
            forgotten_topics_data=[messages.ForgottenTopic(topic_id=self.topic_id, partitions=list(forget))],
        )
        self._epoch += 1
        self.read.clear()
        return self.calls.start(request, 17)

    async def open_session(self) -> None:
        response = self.fetch(dict.fromkeys(range(PARTITIONS), 0))
        self._session = response.session_id
        assert self._session
        self.fetch({}, wait_ms=0)

    def told(self, response: Any) -> dict[int, int]:
        """Partition -> high watermark."""
        return {each.partition_index: each.high_watermark for topic in response.responses for each in topic.partitions}


def run(
    directory: Path, monkeypatch: pytest.MonkeyPatch, scenario: Callable[[Leader], Coroutine[Any, Any, None]]
) -> None:
    read: list[int] = []
    original = follower_fetch.read_partitions

    def counting(replicas: Any, wanted: Any, limits: Any, **options: Any) -> Any:
        wanted = list(wanted)
        read.extend(each.partition for each in wanted)
        return original(replicas, wanted, limits, **options)

    monkeypatch.setattr(follower_fetch, "read_partitions", counting)

    async def main() -> None:
        async with HandlerCalls(directory) as calls:
            await calls.broker.controller.create_topics([NewTopic("t", PARTITIONS, 1)])
            for hosted in calls.broker.replicas:
                image = PartitionImage(hosted.partition, (1, FOLLOWER), (1, FOLLOWER), 1, 1, 1)
                hosted.on_image(image, calls.broker.clock.monotonic_ms())
            leader = Leader(calls, read)
            await leader.open_session()
            await scenario(leader)

    asyncio.run(main())


def test_only_partitions_with_news_are_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(leader: Leader) -> None:
        waiting = leader.fetch({})
        assert isinstance(waiting, Deferred) and leader.read == []
        leader.append(7, b"value")
        leader.append(9, b"value")
        assert leader.told(await waiting) == {7: 0, 9: 0}
        assert leader.read == [7, 9]
        waiting = leader.fetch({7: 1, 9: 1})
        assert leader.read == [7, 9]
        assert leader.hosted(7).log.high_watermark == 1
        # The high watermark alone: a little later, so that it can go along with records.
        assert leader.told(await waiting) == {7: 1, 9: 1}
        waiting = leader.fetch({})
        assert leader.read == []
        waiting.abandon()

    run(tmp_path, monkeypatch, scenario)


def test_another_request_ends_the_wait_of_the_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(leader: Leader) -> None:
        first = leader.fetch({})
        second = leader.fetch({}, forget=(3,))
        assert leader.told(await first) == {}
        leader.append(3, b"forgotten")
        leader.append(4, b"value")
        assert leader.told(await second) == {4: 0}

    run(tmp_path, monkeypatch, scenario)


def test_what_had_no_room_comes_with_the_next(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(leader: Leader) -> None:
        for partition in range(3):
            leader.append(partition, b"x" * 1000)
        first = leader.fetch({}, max_bytes=1500)
        assert list(leader.told(first)) == [0]
        second = leader.fetch({0: 1}, max_bytes=1500)
        assert list(leader.told(second)) in ([1], [0, 1], [1, 0])
        third = leader.fetch({1: 1}, max_bytes=1500)
        assert 2 in leader.told(third)

    run(tmp_path, monkeypatch, scenario)


def test_a_new_leader_epoch_is_told_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(leader: Leader) -> None:
        waiting = leader.fetch({})
        leader.hosted(5).on_image(PartitionImage(5, (1, FOLLOWER), (1, FOLLOWER), FOLLOWER, 2, 2), 0)
        (topic,) = (await waiting).responses
        assert [(each.partition_index, each.error_code) for each in topic.partitions] == [(5, 74)]  # FENCED

    run(tmp_path, monkeypatch, scenario)


def test_a_session_that_is_gone_is_told_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    async def scenario(leader: Leader) -> None:
        waiting = leader.fetch({})
        assert leader.hosted(0).follower_sessions
        leader.calls.broker.fetch_sessions.remove(leader._session)
        await waiting
        assert not any(hosted.follower_sessions for hosted in leader.calls.broker.replicas)

    run(tmp_path, monkeypatch, scenario)


def test_a_session_with_news_is_let_go_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The waiting fetch reads the news for its response when the session ends."""

    async def scenario(leader: Leader) -> None:
        waiting = leader.fetch({})
        leader.append(7, b"value")
        leader.calls.broker.fetch_sessions.remove(leader._session)
        await waiting
        assert leader.read == [7]
        assert not any(hosted.follower_sessions for hosted in leader.calls.broker.replicas)

    run(tmp_path, monkeypatch, scenario)


def test_a_lone_broker_tells_nobody(tmp_path: Path) -> None:
    async def scenario(broker: Any, _clock: ManualClock) -> None:
        hosted = await make_topic(broker, "t")
        append(broker, hosted, b"value")
        assert hosted.log.high_watermark == 1 and not hosted.follower_sessions

    run_broker(tmp_path, scenario)


def test_partitions_of_a_request_with_very_many_are_watched_too(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as after the failure of a broker, when its partitions come into the session of another one."""

    async def scenario(leader: Leader) -> None:
        monkeypatch.setattr(steps, "PARTITIONS_PER_STEP", 10)
        leader.fetch({}, wait_ms=0, forget=tuple(range(40)))
        moved = leader.fetch(dict.fromkeys(range(30), 0), wait_ms=0, forget=(45,))
        assert not isinstance(moved, Deferred) or await moved
        waiting = leader.fetch({})
        assert isinstance(waiting, Deferred)
        leader.append(45, b"forgotten")
        leader.append(7, b"value")
        async with asyncio.timeout(10):
            assert leader.told(await waiting) == {7: 0}

    run(tmp_path, monkeypatch, scenario)


def test_a_wait_after_a_request_with_very_many_reads_the_news_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def scenario(leader: Leader) -> None:
        original = fetch_handler.read_partitions

        def counting(replicas: Any, wanted: Any, *arguments: Any, **options: Any) -> Any:
            wanted = list(wanted)
            leader.read.extend(each.partition for each in wanted)
            return original(replicas, wanted, *arguments, **options)

        monkeypatch.setattr(fetch_handler, "read_partitions", counting)
        monkeypatch.setattr(steps, "PARTITIONS_PER_STEP", 10)
        waiting = leader.fetch(dict.fromkeys(range(30), 0))
        assert isinstance(waiting, Deferred) and sorted(leader.read) == list(range(30))
        leader.read.clear()
        leader.append(7, b"value")
        async with asyncio.timeout(60):
            assert leader.told(await waiting) == {7: 0}
        assert leader.read == [7]

    run(tmp_path, monkeypatch, scenario)


def test_a_follower_with_very_many_partitions_gets_its_session_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits in the session, where it can name new partitions."""

    async def scenario(leader: Leader) -> None:
        monkeypatch.setattr(steps, "PARTITIONS_PER_STEP", 10)
        leader.calls.broker.fetch_sessions.remove(leader._session)
        leader._session = leader._epoch = 0
        response = leader.fetch(dict.fromkeys(range(30), 0))
        async with asyncio.timeout(60):
            assert (response if not isinstance(response, Deferred) else await response).session_id

    run(tmp_path, monkeypatch, scenario)
