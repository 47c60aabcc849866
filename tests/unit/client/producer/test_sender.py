"""The sender against scripted brokers: leaders that move, hints, old versions, order on retry, quotas."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import AuthorizationError, UnreachableError, UnsupportedVersionError
from barnabas.errors import ErrorCode, KafkaError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import (
    BatchIndexAndErrorMessage,
    LeaderIdAndEpoch,
    PartitionProduceResponse,
    ProduceResponse,
)


@pytest.fixture
def sending() -> Iterator[Callable[..., Sending]]:
    with sendings() as make:
        yield make


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(brokers=2, topics={"t": 2})


@pytest.fixture
def broker(cluster: FakeCluster) -> ProduceBroker:
    return ProduceBroker(cluster)


@pytest.mark.parametrize("version", range(3, 14))
def test_every_version_of_produce(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], version: int
) -> None:
    cluster.versions[ApiKey.PRODUCE] = version
    made = sending(cluster)
    assert made.send("t", b"v", partition=1).result(20).offset == 0
    assert broker.values("t", 1) == [b"v"]


def test_records_go_to_the_leaders(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster)
    for partition in (0, 1):
        made.send("t", partition=partition).result(20)
    nodes = [node_id for node_id, request in cluster.requests if type(request).__name__ == "ProduceRequest"]
    assert nodes == [0, 1]


def test_a_hint_in_the_response_is_followed_at_once(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    """KIP-951: no metadata request, no pause."""
    made = sending(cluster, retry_backoff_ms=60_000, retry_backoff_max_ms=60_000)
    made.send("t", b"0", partition=0).result(20)
    cluster.set_leader("t", 0, leader=1, leader_epoch=5)

    def hint(node_id: int, answer: PartitionProduceResponse) -> None:
        if node_id == 0:
            answer.current_leader = LeaderIdAndEpoch(leader_id=1, leader_epoch=5)

    broker.decorate = hint
    broker.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    refreshes = len(cluster.refreshes)
    assert made.send("t", b"1", partition=0).result(20).offset == 1
    assert cluster.requests[-1][0] == 1 and len(cluster.refreshes) == refreshes
    made.send("t", b"2", partition=0).result(20)
    assert broker.values("t") == [b"0", b"1", b"2"]


def test_without_a_hint_metadata_is_asked_for(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster)
    made.send("t", b"0", partition=0).result(20)
    cluster.set_leader("t", 0, leader=1, leader_epoch=5)
    broker.former_leaders.add(0)
    assert made.send("t", b"1", partition=0).result(20).offset == 1
    assert cluster.requests[-1][0] == 1
    assert any("t" in (topics or ()) for topics in cluster.refreshes)


def test_a_partition_without_a_leader_waits(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.set_leader("t", 0, leader=-1, leader_epoch=1)
    cluster.publish()
    made = sending(cluster)
    delivery = made.send("t", b"0", partition=0)
    made.send("t", b"other", partition=1).result(20)
    assert not delivery.done()
    cluster.set_leader("t", 0, leader=1, leader_epoch=2)
    assert delivery.result(20).offset == 0


@pytest.mark.parametrize("idempotent", [True, False])
def test_order_on_retry(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], idempotent: bool
) -> None:
    made = sending(
        cluster,
        enable_idempotence=idempotent,
        max_in_flight_requests_per_connection=5 if idempotent else 1,
        batch_size=0,
    )
    made.send("t", b"-1", partition=0).result(20)
    cluster.answer(ApiKey.PRODUCE, lost(), lost())
    broker.errors.extend([ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.NOT_LEADER_OR_FOLLOWER])
    for number in range(40):
        made.send("t", b"%d" % number, partition=0)
    made.flush()
    assert broker.values("t") == [b"%d" % number for number in range(-1, 40)]


@pytest.mark.parametrize(
    "error", [ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.NOT_ENOUGH_REPLICAS, ErrorCode.KAFKA_STORAGE_ERROR]
)
def test_a_first_batch_that_is_refused_for_now_is_not_overtaken(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], error: ErrorCode
) -> None:
    """The broker would take the second as the first that it sees of this producer, and the first never again."""
    all_queued = asyncio.Event()

    async def when_all_are_queued(node_id: int, request: Any) -> Any:
        answer = broker._on_produce(node_id, request)
        await all_queued.wait()
        for _ in range(20):
            await asyncio.sleep(0)  # the sender has its turns meanwhile
        return answer

    cluster.always(ApiKey.PRODUCE, when_all_are_queued)
    made = sending(cluster, batch_size=0)
    broker.errors.append(error)
    deliveries = [made.send("t", b"%d" % number, partition=0) for number in range(40)]
    made.io.call(all_queued.set)
    made.flush()
    assert [each.exception(0) for each in deliveries] == [None] * 40
    assert broker.values("t") == [b"%d" % number for number in range(40)]


def test_a_response_that_was_lost_is_not_a_second_record(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster)
    made.send("t", b"0", partition=0).result(20)

    def written_then_lost(node_id: int, request: Any) -> Any:
        broker._on_produce(node_id, request)
        return lost()

    cluster.answer(ApiKey.PRODUCE, written_then_lost)
    assert made.send("t", b"1", partition=0).result(20).offset == 1
    assert broker.values("t") == [b"0", b"1"]


def test_a_connection_that_goes_before_a_request_has_left(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its batches are sent again behind those that were lost with the connection, never on a new one before them."""
    made = sending(cluster, batch_size=0)
    made.send("t", b"-1", partition=0).result(20)
    ready_version, posts = cluster.ready_version, iter([True, False, True, False, False])

    def now_and_then(node_id: int, api_key: ApiKey, *, max_version: int | None = None) -> int:
        if not next(posts, True):
            raise UnreachableError("node 0", "it went away")
        return ready_version(node_id, api_key, max_version=max_version)

    monkeypatch.setattr(cluster, "ready_version", now_and_then)
    cluster.answer(ApiKey.PRODUCE, lost())
    for number in range(20):
        made.send("t", b"%d" % number, partition=0)
    made.flush()
    assert broker.values("t") == [b"%d" % number for number in range(-1, 20)]


@pytest.mark.parametrize("code", [ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE])
def test_batches_that_are_too_large_are_split_and_the_limit_is_learnt(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending], code: ErrorCode
) -> None:
    made = sending(cluster, linger_ms=20)
    broker.errors.append(code)
    deliveries = [made.send("t", b"%03d" % number * 20, partition=0) for number in range(100)]
    made.flush()
    assert [each.result(0).offset for each in deliveries] == list(range(100))
    assert broker.values("t") == [b"%03d" % number * 20 for number in range(100)]
    assert made.core.meters.splits == 1 and len(broker.batch_sizes) >= 2
    limit = made.core.accumulator.batches.topics["t"].max_batch_bytes
    assert limit < 10_000
    for number in range(300):
        made.send("t", b"%03d" % number * 20, partition=0)
    made.flush()
    assert max(broker.batch_sizes) <= limit


@pytest.mark.parametrize("partition", [None, 0])
@pytest.mark.parametrize(
    ("given", "least", "most"),
    [({"batch_size": 1000}, 800, 1000), ({"batch_size": 16_384}, 16_000, 16_384), ({}, 20_000, 1 << 20)],
)
def test_a_given_batch_size_holds_while_the_sender_is_busy(
    cluster: FakeCluster,
    broker: ProduceBroker,
    sending: Callable[..., Sending],
    given: dict[str, int],
    least: int,
    most: int,
    partition: int | None,
) -> None:
    """Unless it is given, batches go on filling up to max.request.size."""
    all_sent = asyncio.Event()

    async def held(node_id: int, request: Any) -> Any:
        await all_sent.wait()
        return broker._on_produce(node_id, request)

    cluster.always(ApiKey.PRODUCE, held)
    made = sending(cluster, max_in_flight_requests_per_connection=1, **given)
    producer = made.producer()
    for _ in range(1000):
        producer.send("t", b"x" * 100, partition=partition)
    made.io.call(all_sent.set)
    made.flush()
    assert least < max(broker.batch_sizes) <= most


def test_a_refused_record_is_named(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    """KIP-467."""

    def refuse(_: int, answer: PartitionProduceResponse) -> None:
        answer.error_code = ErrorCode.INVALID_RECORD
        answer.record_errors = [BatchIndexAndErrorMessage(batch_index=1, batch_index_error_message="no key")]

    made = sending(cluster, linger_ms=50)
    broker.decorate = refuse
    first, second = made.send("t", b"0", partition=0), made.send("t", b"1", partition=0)
    made.flush()
    assert "no key" in str(second.exception(0)) and "other records" in str(first.exception(0))


def test_a_quota_is_passed_on(cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]) -> None:
    made = sending(cluster)

    def throttled(node_id: int, request: Any) -> ProduceResponse:
        answer = broker._on_produce(node_id, request)
        answer.throttle_time_ms = 70
        return answer

    cluster.answer(ApiKey.PRODUCE, throttled)
    made.send("t", partition=0).result(20)
    assert (0, 70) in cluster.throttled


def test_no_right_to_be_idempotent(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    refused = InitProducerIdResponse(error_code=ErrorCode.CLUSTER_AUTHORIZATION_FAILED, producer_epoch=0)
    cluster.answer(ApiKey.INIT_PRODUCER_ID, refused)
    made = sending(cluster)
    error = made.send("t").exception(20)
    assert isinstance(error, AuthorizationError) and "enable_idempotence=False" in str(error)
    assert made.send("t").result(20).offset == 0, "the next one asks again"


def test_a_broker_too_old_for_idempotence(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.answer(ApiKey.INIT_PRODUCER_ID, UnsupportedVersionError("no InitProducerId"))
    made = sending(cluster)
    assert "enable_idempotence=False" in str(made.send("t").exception(20))


def test_acks_zero_has_no_response(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster, acks=0)
    assert made.send("t", partition=0).result(20).offset == -1
    (request,) = cluster.requests_of(ApiKey.PRODUCE)
    assert request.acks == 0


def test_one_batch_a_partition_and_request(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.add_topic("u", 6)
    made = sending(cluster, batch_size=0, linger_ms=0)
    for number in range(60):
        made.send("u", b"%d" % number, partition=number % 6)
    made.flush()
    for request in cluster.requests_of(ApiKey.PRODUCE):
        partitions = [(t.topic_id, p.index) for t in request.topic_data for p in t.partition_data]
        assert len(partitions) == len(set(partitions))
    for partition in range(6):
        assert broker.values("u", partition) == [b"%d" % number for number in range(partition, 60, 6)]


def test_a_request_is_no_larger_than_allowed(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    cluster.add_topic("u", 12)
    made = sending(cluster, linger_ms=20, max_request_size=3000)
    for number in range(60):
        made.send("u", b"x" * 500, partition=number % 12)
    made.flush()
    sizes = [
        sum(len(part.records or b"") for topic in request.topic_data for part in topic.partition_data)
        for request in cluster.requests_of(ApiKey.PRODUCE)
    ]
    assert len(sizes) > 10 and max(sizes) <= 3000


def test_no_more_requests_in_flight_than_allowed(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    most = now = 0
    busy = set()

    async def slow(node_id: int, request: Any) -> Any:
        nonlocal most, now
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.002)
        if now == 3:
            busy.update(made.core.accumulator.batches.busy_nodes)
        now -= 1
        return broker._on_produce(node_id, request)

    cluster.always(ApiKey.PRODUCE, slow)
    made = sending(cluster, batch_size=0, max_in_flight_requests_per_connection=3)
    for number in range(30):
        made.send("t", b"%d" % number, partition=0)
    made.flush()
    assert most == 3 and busy == {0}, "who sends must know that waking the sender is no use"
    assert broker.values("t") == [b"%d" % number for number in range(30)]
    assert not made.core.accumulator.batches.busy_nodes


def test_without_idempotence_a_batch_does_not_overtake_one_that_is_with_the_old_leader(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster, enable_idempotence=False, max_in_flight_requests_per_connection=1)
    made.send("t", b"0", partition=0).result(20)
    moved = asyncio.Event()

    async def old_leader(node_id: int, request: Any) -> Any:
        assert node_id == 0
        await moved.wait()
        return lost()

    cluster.answer(ApiKey.PRODUCE, old_leader)
    first = made.send("t", b"1", partition=0)
    made.io.wait(cluster.request_of(ApiKey.PRODUCE, 1))

    async def move() -> None:
        cluster.set_leader("t", 0, leader=1, leader_epoch=3)
        cluster.publish()

    made.io.wait(move())
    second = made.send("t", b"2", partition=0)
    made.send("t", b"the new leader is up", partition=1).result(20)
    assert not first.done() and not second.done()
    made.io.call(moved.set)
    made.flush()
    assert broker.values("t") == [b"0", b"1", b"2"]


def test_an_unexpected_error_is_not_retried(
    cluster: FakeCluster, broker: ProduceBroker, sending: Callable[..., Sending]
) -> None:
    made = sending(cluster)
    broker.errors.append(ErrorCode.TOPIC_AUTHORIZATION_FAILED)
    error = made.send("t", partition=0).exception(20)
    assert isinstance(error, AuthorizationError) and error.resource == "t"
    assert isinstance(error, KafkaError) and made.send("t", partition=0).result(20).offset == 0
