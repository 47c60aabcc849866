"""A topic that is deleted and made again with fewer partitions: what is sent goes to those that it has now."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import UnknownTopicError
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.records.codec import partition_for_key
from barnabas.types import NO_TOPIC_ID

KEYS = [b"key-%d" % number for number in range(24)]
ANEW = b"another topic id"


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(topics={"t": 6})


@pytest.fixture
def broker(cluster: FakeCluster) -> ProduceBroker:
    return ProduceBroker(cluster)


@pytest.fixture
def sending(cluster: FakeCluster, broker: ProduceBroker) -> Iterator[Callable[..., Sending]]:
    with sendings() as make:
        yield functools.partial(make, cluster)


def test_keys_go_to_the_partitions_that_there_are(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending()
    producer = made.producer()
    for key in KEYS:
        producer.send("t", b"before", key=key).result(20)
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    for deliveries in [[producer.send("t", key, key=key) for key in KEYS] for _ in range(2)]:
        assert [each.result(20).partition for each in deliveries] == [partition_for_key(key, 2) for key in KEYS]


def test_records_without_a_key_too(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(batch_size=1)
    producer = made.producer()
    for delivery in [producer.send("t", b"x") for _ in range(30)]:
        delivery.result(20)
    with made.core.accumulator._lock:  # some queues are longer than others, so partitions are drawn by their load
        made.core.accumulator.batches.topics["t"].sticky.update_load([(number, number) for number in range(6)])
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    deliveries = [producer.send("t", b"x") for _ in range(30)]
    assert {each.result(20).partition for each in deliveries} == {0, 1}


def test_a_partition_that_is_named_and_gone_is_refused(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending()
    producer = made.producer()
    producer.send("t", b"x", partition=5).result(20)
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    with pytest.raises(UnknownTopicError, match="has no partition 5"):
        producer.send("t", b"x", partition=5)


def test_what_is_queued_for_a_partition_that_is_gone_fails_at_once(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.set_leader("t", 5, leader=-1, leader_epoch=1)
    made = sending()
    made.publish()
    waiting, other = made.send("t", b"x", partition=5), made.send("t", b"x", partition=0)
    other.result(20)
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    error = waiting.exception(20)
    assert isinstance(error, UnknownTopicError) and "t-5" in str(error) and "created again with 2" in str(error)
    cluster.add_topic("t", 6, topic_id=ANEW)
    made.publish()
    assert made.send("t", b"y", partition=5).result(20).offset == 0


def test_what_is_on_its_way_to_a_partition_that_is_gone_is_not_sent_again(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.versions[ApiKey.PRODUCE] = 12
    made = sending()
    made.send("t", b"first", partition=5).result(20)
    gone = asyncio.Event()

    async def when_gone(node_id: int, request: Any) -> Any:
        broker.errors.append(ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
        await gone.wait()
        return broker._on_produce(node_id, request)

    cluster.answer(ApiKey.PRODUCE, when_gone)
    delivery = made.send("t", b"x", partition=5)
    made.io.wait(cluster.request_of(ApiKey.PRODUCE, 1))
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    made.io.call(gone.set)
    assert isinstance(delivery.exception(20), UnknownTopicError)
    assert len(cluster.requests_of(ApiKey.PRODUCE)) == 2


def test_the_first_batch_for_the_new_topic_is_not_overtaken(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    """It may be refused for a moment, and the next would be taken as the first that the new topic sees."""
    made = sending(batch_size=0)
    made.send("t", b"before", partition=0).result(20)
    cluster.add_topic("t", 2, topic_id=ANEW)
    made.publish()
    broker.forget("t")
    all_queued = asyncio.Event()

    async def when_all_are_queued(node_id: int, request: Any) -> Any:
        answer = broker._on_produce(node_id, request)
        await all_queued.wait()
        for _ in range(20):
            await asyncio.sleep(0)  # the sender has its turns meanwhile
        return answer

    cluster.always(ApiKey.PRODUCE, when_all_are_queued)
    broker.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    deliveries = [made.send("t", b"%d" % number, partition=0) for number in range(20)]
    made.io.call(all_queued.set)
    assert [each.exception(2) for each in deliveries] == [None] * 20
    assert broker.values("t") == [b"%d" % number for number in range(20)]


@pytest.mark.parametrize("topic_id", [b"the same from 6 ", NO_TOPIC_ID])
def test_a_broker_that_lags_behind_is_not_believed(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], topic_id: bytes
) -> None:
    """The topic has grown and one broker does not know it yet: partitions are never taken away from a topic."""
    cluster.versions[ApiKey.PRODUCE] = 12
    cluster.add_topic("t", 6, topic_id=topic_id)
    cluster.set_leader("t", 5, leader=-1, leader_epoch=1)
    made = sending()
    made.publish()
    waiting = made.send("t", b"x", partition=5)
    cluster.add_topic("t", 2, topic_id=topic_id)
    made.publish()
    made.send("t", b"x", partition=1).result(20)
    assert not waiting.done()
    cluster.add_topic("t", 6, topic_id=topic_id)
    made.publish()
    assert waiting.result(20).partition == 5


def test_a_broker_that_still_has_the_topic_before_it_was_made_again(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.versions[ApiKey.PRODUCE] = 12
    cluster.add_topic("t", 2, topic_id=b"the first one...")
    made = sending()
    made.publish()
    made.send("t", b"x", partition=0).result(20)
    cluster.add_topic("t", 6, topic_id=ANEW)
    cluster.set_leader("t", 5, leader=-1, leader_epoch=1)
    made.publish()
    waiting = made.send("t", b"x", partition=5)
    cluster.add_topic("t", 2, topic_id=b"the first one...")
    made.publish()
    made.send("t", b"x", partition=1).result(20)
    cluster.add_topic("t", 6, topic_id=ANEW)
    made.publish()
    assert waiting.result(20).partition == 5


def test_a_broker_without_topic_ids(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    """There it counts that the topic was not there for a while."""
    cluster.versions[ApiKey.PRODUCE] = 12
    cluster.add_topic("t", 6, topic_id=NO_TOPIC_ID)
    made = sending()
    made.publish()
    producer = made.producer()
    producer.send("t", b"x", key=KEYS[0]).result(20)
    cluster.remove_topic("t")
    made.publish()
    cluster.add_topic("t", 2, topic_id=NO_TOPIC_ID)
    made.publish()
    deliveries = [producer.send("t", key, key=key) for key in KEYS]
    assert [each.result(20).partition for each in deliveries] == [partition_for_key(key, 2) for key in KEYS]
