"""What users hear who wait for something that cannot come: a typo in a topic, a broker that is not there."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost

from barnabas.client.consumer.core import ConsumerCore
from barnabas.client.errors import (
    AuthorizationError,
    ClientTimeoutError,
    RebalanceInProgressError,
    UnknownTopicError,
    UnreachableError,
)
from barnabas.client.options import ConsumerOptions
from barnabas.client.user_side import BlockingSide
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.offset_commit import (
    OffsetCommitResponse,
    OffsetCommitResponsePartition,
    OffsetCommitResponseTopic,
)
from barnabas.protocol.messages.offset_fetch import OffsetFetchResponse, OffsetFetchResponseGroup
from barnabas.types import TopicPartition

QUICK: dict[str, Any] = {"retry_backoff_ms": 1, "retry_backoff_max_ms": 1, "enable_auto_commit": False}


class World:
    def __init__(self, **options: Any) -> None:
        self.cluster = FakeCluster(topics={"t": 1})
        nothing = OffsetFetchResponseGroup(group_id="g", topics=[])
        self.cluster.always(ApiKey.OFFSET_FETCH, OffsetFetchResponse(groups=[nothing]))
        self.side = BlockingSide()
        made = ConsumerOptions.of("x:1", **QUICK | options)
        self.core = ConsumerCore(made, self.side, cluster=self.cluster)  # type: ignore[arg-type]

    def find_no_coordinator(self) -> None:
        async def coordinator(*_: Any) -> int:
            await asyncio.sleep(0)
            raise lost("away:9092")

        self.cluster.coordinator = coordinator  # type: ignore[method-assign]

    def find_no_broker(self) -> None:
        async def refresh_metadata(*_: Any, **options: Any) -> None:
            await asyncio.sleep(0)
            raise lost("away:9092")

        self.cluster.refresh_metadata = refresh_metadata  # type: ignore[method-assign]

    def position(self, *partition: Any) -> int:
        return self.side.run(self.core.positions.position(partition, timeout=0.05))

    def poll(self) -> Any:
        return self.side.run(self.core.polling.poll(0.05))


@pytest.fixture
def worlds() -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        world.side.run(world.core.close(0.1, commit=False))


@pytest.fixture(params=[None, "g"])
def world(request: Any, worlds: list[World]) -> World:
    worlds.append(World(group_id=request.param))
    return worlds[-1]


@pytest.fixture
def member(worlds: list[World]) -> World:
    worlds.append(World(group_id="g"))
    return worlds[-1]


@pytest.mark.parametrize(
    ("partition", "words"),
    [(("no-such", 0), "no-such-0.*typo"), (("t", 7), r"t-7.*1 partition\(s\), numbered from 0")],
)
@pytest.mark.parametrize("seeks", [False, True])
def test_a_partition_that_does_not_exist_is_reported_once(
    world: World, partition: tuple[str, int], words: str, seeks: bool, caplog: pytest.LogCaptureFixture
) -> None:
    def warnings() -> list[str]:
        return [record.message for record in caplog.records if record.levelno == logging.WARNING]

    with caplog.at_level(logging.WARNING, "barnabas.client.consumer"):
        world.core.subscriptions.assign([partition])
        if seeks:
            world.core.positions.seek(partition, 5)
            assert world.position(*partition) == 5
        else:
            for _ in range(2):
                with pytest.raises(UnknownTopicError, match=words):
                    world.position(*partition)
        while not warnings():  # the I/O thread may be late
            assert world.poll() == []
        assert world.poll() == []
        assert world.poll() == []
    (told,) = warnings()
    assert f"{partition[0]}-{partition[1]}" in told


def test_a_partition_that_may_not_be_read_is_an_error_also_after_a_seek(world: World) -> None:
    world.cluster.add_topic("secret", 0)
    world.cluster._topics["secret"].error_code = ErrorCode.TOPIC_AUTHORIZATION_FAILED
    world.core.subscriptions.assign([("secret", 0)])
    world.core.positions.seek(("secret", 0), 5)
    with pytest.raises(AuthorizationError, match="secret"):
        for _ in range(100):
            world.poll()


def test_a_position_that_no_broker_tells(world: World) -> None:
    world.find_no_broker()
    world.find_no_coordinator()
    world.core.subscriptions.assign([("other", 0)])
    with pytest.raises(UnreachableError, match="away:9092"):
        world.position("other", 0)


def test_what_else_keeps_a_position_is_in_the_message(worlds: list[World]) -> None:
    worlds.append(world := World())
    world.cluster.always(ApiKey.LIST_OFFSETS, KafkaError(ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, "still loading"))
    world.core.subscriptions.assign([("t", 0)])
    with pytest.raises(ClientTimeoutError, match=r"no position for t-0 yet \(still loading\)"):
        world.position("t", 0)


def test_a_commit_that_reaches_nobody_says_whom(member: World) -> None:
    member.core.subscriptions.assign([("t", 0)])
    member.find_no_coordinator()
    with pytest.raises(UnreachableError, match="away:9092"):
        member.side.run(member.core.commits.commit({("t", 0): 5}, timeout=0.05))


def test_a_commit_without_a_response_may_have_been_stored(member: World) -> None:
    member.core.subscriptions.assign([("t", 0)])
    member.cluster.always(ApiKey.OFFSET_COMMIT, ClientTimeoutError("broker-0 did not answer"))
    with pytest.raises(ClientTimeoutError, match=r"may or may not have been stored \(broker-0 did not answer\)"):
        member.side.run(member.core.commits.commit({("t", 0): 5}, timeout=0.05))
    stored = OffsetCommitResponsePartition(partition_index=0, error_code=0)
    topic = OffsetCommitResponseTopic(name="t", partitions=[stored])
    member.cluster.always(ApiKey.OFFSET_COMMIT, OffsetCommitResponse(topics=[topic]))
    member.side.run(member.core.commits.commit({("t", 0): 5}))


def test_a_commit_before_the_first_join_says_what_the_join_waits_for(member: World) -> None:
    member.find_no_coordinator()
    member.core.subscriptions.subscribe(["t"])
    assert member.poll() == []
    with pytest.raises(RebalanceInProgressError, match=r"could not join yet \(away:9092"):
        member.side.run(member.core.commits.commit({TopicPartition("t", 0): 5}))
