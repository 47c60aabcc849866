"""What must never leave a producer waiting forever.

Wake-ups between two checks, responses that cannot be read, batches that were given up while their request was still
under way, callbacks that exit, loops of users that ended, coordinators that are gone.
"""

from __future__ import annotations

import asyncio
import sys
import threading
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from fake_cluster import FakeCluster, lost
from produce_broker import ProduceBroker
from sending import Sending, sendings

from barnabas.client.errors import (
    ClientTimeoutError,
    FencedError,
    UnexpectedError,
    UnknownTopicError,
    UnreachableError,
)
from barnabas.client.producer.accumulator import Accumulator
from barnabas.client.producer.buffer_pool import Limits, MemoryWaiter
from barnabas.client.producer.user_calls import wait_for_memory
from barnabas.client.retry import Deadline
from barnabas.client.user_side import AsyncSide
from barnabas.clock import SystemClock
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.add_partitions_to_txn import AddPartitionsToTxnResponse
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.produce import ProduceResponse
from barnabas.types import NO_TOPIC_ID, TopicPartition

NewSending = Callable[..., Sending]
GROUP: Any = type("Group", (), {"group_id": "g", "generation_id": 1, "member_id": "m", "group_instance_id": None})()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(brokers=2, topics={"t": 2})


@pytest.fixture
def broker(cluster: FakeCluster) -> ProduceBroker:
    return ProduceBroker(cluster)


@pytest.fixture
def sending() -> Iterator[NewSending]:
    with sendings() as make:
        yield make


@pytest.mark.parametrize("linger_ms", [0, 5])
def test_a_record_that_is_appended_after_the_sender_checked_the_queues_is_sent(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, linger_ms: int
) -> None:
    """The sender is awake and has checked the queues; when it goes to sleep it must know of what came since."""
    made = sending(cluster, linger_ms=linger_ms)
    made.send("t", b"0", partition=0).result(20)
    made.io.wait(_until(lambda: made.core.accumulator.batches.sleeps_until_ms > 0))
    late: list[Any] = []
    ready = made.core.accumulator.ready

    def then_append(now_ms: int) -> Any:
        found = ready(now_ms)
        if not late and not made.core.accumulator.batches.active:
            # As another thread would, as soon as the lock is free.
            topic = made.core.accumulator.batches.topics["t"]
            late.append(made.core.accumulator.batches.append(topic, 1, 1, None, b"late", None))
        return found

    made.core.accumulator.ready = then_append  # type: ignore[method-assign]
    made.io.call(made.core._wake)
    made.io.wait(_until(lambda: bool(late)))
    late[0].result(10)
    assert broker.values("t", 1) == [b"late"]


async def _until(condition: Callable[[], bool]) -> None:
    while not condition():  # noqa: ASYNC110
        await asyncio.sleep(0)


@pytest.mark.parametrize("error", [ProtocolError("cut short"), ValueError("never thought of")])
def test_a_response_that_cannot_be_read_is_as_good_as_none(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, error: Exception
) -> None:
    made = sending(cluster)
    cluster.answer(ApiKey.PRODUCE, error)
    assert made.send("t", b"0", partition=0).result(10).offset == 0
    made.flush()
    assert broker.values("t", 0) == [b"0"]


def test_flush_after_a_batch_was_given_up_while_its_request_is_on_its_way(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending
) -> None:
    made = sending(cluster, delivery_timeout_ms=50, request_timeout_ms=50)
    never = asyncio.Event()

    async def hang(*_: Any) -> ProduceResponse:
        await never.wait()
        raise lost()

    cluster.answer(ApiKey.PRODUCE, hang)
    delivery = made.send("t", b"0", partition=0)
    with pytest.raises(ClientTimeoutError, match=r"delivery\.timeout\.ms"):
        delivery.result(10)
    made.io.wait(made.core.flush(5))
    made.io.call(never.set)


def test_a_callback_that_exits_ends_nothing_but_itself(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, caplog: pytest.LogCaptureFixture
) -> None:
    made = sending(cluster, linger_ms=300)
    first = made.send("t", b"0", partition=0)
    first.add_callback(lambda _: sys.exit(3))
    assert first.result(10).offset == 0
    assert made.send("t", b"1", partition=0).result(10).offset == 1


def test_memory_for_a_loop_that_has_ended_goes_to_the_next() -> None:
    limits = Limits(batch_size=10, linger_ms=0, buffer_memory=100, max_request_size=100, delivery_timeout_ms=1000)
    accumulator = Accumulator(limits, SystemClock(), wake_sender=lambda: None)
    accumulator.batches.pool.try_take(100)
    loop = asyncio.new_event_loop()
    waiting = loop.create_task(wait_for_memory(accumulator, AsyncSide(), 60, Deadline(60_000)))
    loop.run_until_complete(asyncio.sleep(0))
    loop.close()
    granted = threading.Event()
    with accumulator._lock:
        accumulator.batches.pool.queue(MemoryWaiter(80, granted.set))
        accumulator.batches.pool.give_back(100)
    assert granted.is_set()
    waiting._log_destroy_pending = False  # type: ignore[attr-defined]
    waiting.get_coro().close()


def test_topic_ids_are_needed_for_the_newest_produce(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending
) -> None:
    """While a cluster is upgraded the broker that told of the topic may know no ids, and the leader may take them."""
    cluster.add_topic("t", 2, topic_id=NO_TOPIC_ID)
    cluster._topics["t"].topic_id = NO_TOPIC_ID
    cluster.publish()
    made = sending(cluster)
    assert made.send("t", b"0", partition=0).result(10).offset == 0


def test_a_partition_that_was_added_since(cluster: FakeCluster, broker: ProduceBroker, sending: NewSending) -> None:
    """Not known is not the same as not there: metadata may be five minutes old."""
    made = sending(cluster)
    made.send("t", b"0", partition=0).result(10)
    cluster.add_topic("t", 4)
    assert made.send("t", b"3", partition=3).result(10).partition == 3
    with pytest.raises(UnknownTopicError, match="t has no partition 4, it has 0 to 3"):
        made.send("t", b"4", partition=4)


class TestTransactions:
    @pytest.fixture
    def made(self, cluster: FakeCluster, broker: ProduceBroker, sending: NewSending) -> Sending:
        cluster.features["transaction.version"] = 1
        cluster.always(ApiKey.END_TXN, EndTxnResponse())
        made = sending(cluster, transactional_id="tx", max_block_ms=5000)
        made.io.wait(made.core.init_transactions())
        made.io.wait(made.core.begin_transaction())
        return made

    def test_abort_when_offsets_cannot_be_sent(self, cluster: FakeCluster, made: Sending) -> None:
        """The group's coordinator is away: the transaction can be aborted all the same, and the next begun."""
        cluster.always(ApiKey.ADD_OFFSETS_TO_TXN, lambda *_: lost())
        waiting = made.io.submit(made.core.send_offsets({TopicPartition("in", 0): 1}, GROUP))
        made.io.wait(cluster.request_of(ApiKey.ADD_OFFSETS_TO_TXN))
        made.io.wait(made.core.abort_transaction())
        with pytest.raises(UnreachableError):
            waiting.result(10)
        made.io.wait(made.core.begin_transaction())

    def test_abort_while_a_new_epoch_is_due(self, cluster: FakeCluster, broker: ProduceBroker, made: Sending) -> None:
        """A batch that is being sent again is settled before the abort, not after delivery.timeout.ms."""
        cluster.always(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            lambda _, request: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[]),
        )
        made.send("t", b"0", partition=0).result(10)
        identity = made.core._identity
        assert identity is not None
        cluster.answer(ApiKey.PRODUCE, lost())
        second = made.send("t", b"1", partition=0)
        made.io.wait(cluster.request_of(ApiKey.PRODUCE, 1))
        identity.bump_required = True
        made.io.wait(made.core.abort_transaction(), 10)
        assert second.done()

    def test_fenced_while_a_new_start_is_sought_is_the_end(self, cluster: FakeCluster, made: Sending) -> None:
        cluster.always(
            ApiKey.ADD_PARTITIONS_TO_TXN,
            lambda _, request: AddPartitionsToTxnResponse(results_by_topic_v3_and_below=[]),
        )
        made.send("t", b"0", partition=0).result(10)
        cluster.answer(ApiKey.END_TXN, EndTxnResponse(error_code=ErrorCode.INVALID_PRODUCER_ID_MAPPING))
        cluster.always(ApiKey.INIT_PRODUCER_ID, InitProducerIdResponse(error_code=ErrorCode.PRODUCER_FENCED))
        for call in (made.core.abort_transaction, made.core.begin_transaction):
            with pytest.raises(FencedError):
                made.io.wait(call())

    def test_close_does_not_wait_forever_for_a_dead_coordinator(
        self, cluster: FakeCluster, broker: ProduceBroker, sending: NewSending
    ) -> None:
        cluster.always(ApiKey.END_TXN, lambda *_: lost())
        made = sending(cluster, transactional_id="tx", max_block_ms=300)
        made.io.wait(made.core.init_transactions())
        made.io.wait(made.core.begin_transaction())
        made.send("t", b"0", partition=0).result(10)
        made.io.wait(made.core.close(), 10)


@pytest.mark.parametrize("where", ["on_response", "take_hint"])
def test_a_response_that_cannot_be_taken_in_leaves_no_record_waiting(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, where: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sending(cluster)
    made.send("t", b"0", partition=0).result(10)
    owner = made.core._outcomes if where == "on_response" else made.core._client

    def fail(*_: Any, **__: Any) -> None:
        raise KeyError("no such thing")

    if where == "take_hint":
        broker.errors.append(ErrorCode.NOT_LEADER_OR_FOLLOWER)
    with monkeypatch.context() as patched:
        patched.setattr(owner, where, fail)
        assert isinstance(made.send("t", b"1", partition=0).exception(10), UnexpectedError)
    assert made.send("t", b"2", partition=0).exception(10) is None


def test_an_unexpected_failure_on_the_way_to_a_producer_id(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending
) -> None:
    made = sending(cluster)
    cluster.answer(ApiKey.INIT_PRODUCER_ID, KeyError("no such thing"))
    assert isinstance(made.send("t", b"0", partition=0).exception(10), UnexpectedError)
    assert made.send("t", b"1", partition=0).result(10).offset == 0


def test_a_connection_that_fails_unexpectedly_is_tried_again_after_a_pause(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sending(
        cluster, delivery_timeout_ms=300, request_timeout_ms=300, retry_backoff_ms=50, retry_backoff_max_ms=50
    )
    attempts = []

    async def fail(node_id: int) -> None:
        attempts.append(node_id)
        raise KeyError("no such thing")

    monkeypatch.setattr(made.core._client, "is_ready", lambda _: False)
    monkeypatch.setattr(made.core._client, "connect", fail)
    error = made.send("t", b"0", partition=0).exception(10)
    assert "no such thing" in str(error) and 1 < len(attempts) < 30


def test_metadata_that_fails_unexpectedly_is_asked_for_again(
    cluster: FakeCluster, broker: ProduceBroker, sending: NewSending, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = sending(cluster)
    cluster.set_leader("t", 0, leader=-1, leader_epoch=1)
    made.publish()
    failures = [KeyError("no such thing")]
    refresh = made.core._client.refresh_metadata

    async def fail_once(topics: Any) -> None:
        if failures:
            raise failures.pop()
        cluster.set_leader("t", 0, leader=0, leader_epoch=2)
        await refresh(topics)

    monkeypatch.setattr(made.core._client, "refresh_metadata", fail_once)
    assert made.send("t", b"0", partition=0).result(10).offset == 0
