"""Calls of a transaction that take longer than max.block.ms: they go on, and the producer stays usable."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from eventually import eventually
from fake_cluster import FakeCluster
from produce_broker import ProduceBroker
from sending import Sending

from barnabas import Producer
from barnabas.client.errors import AbortableTransactionError, ClientTimeoutError, IllegalStateError
from barnabas.client.producer.transaction_state import TransactionStatus as S
from barnabas.errors import ErrorCode
from barnabas.protocol import ApiKey
from barnabas.protocol.messages.end_txn import EndTxnResponse
from barnabas.protocol.messages.init_producer_id import InitProducerIdResponse
from barnabas.protocol.messages.txn_offset_commit import TxnOffsetCommitResponse
from barnabas.types import TopicPartition

GROUP = SimpleNamespace(group_id="g", generation_id=-1, member_id="", group_instance_id=None)


class Coordinator:
    """Responds when it is let, and counts how transactions ended."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.broker = ProduceBroker(cluster)
        self.may_answer = asyncio.Event()
        self.may_answer.set()
        self.ends: list[bool] = []
        self.refuse: ErrorCode | None = None
        cluster.always(ApiKey.INIT_PRODUCER_ID, self._on_init)
        cluster.always(ApiKey.END_TXN, self._on_end)
        cluster.always(ApiKey.TXN_OFFSET_COMMIT, self._on_offsets)

    async def _on_init(self, node_id: int, request: Any) -> InitProducerIdResponse:
        await self.may_answer.wait()
        return InitProducerIdResponse(producer_id=9, producer_epoch=0)

    async def _on_end(self, node_id: int, request: Any) -> EndTxnResponse:
        await self.may_answer.wait()
        refused, self.refuse = self.refuse, None
        if refused is not None:
            return EndTxnResponse(error_code=refused)
        self.ends.append(request.committed)
        return EndTxnResponse(producer_id=9, producer_epoch=request.producer_epoch + 1)

    async def _on_offsets(self, node_id: int, request: Any) -> TxnOffsetCommitResponse:
        await self.may_answer.wait()
        return TxnOffsetCommitResponse()


@pytest.fixture
def cluster() -> FakeCluster:
    return FakeCluster(topics={"t": 1})


@pytest.fixture
def coordinator(cluster: FakeCluster) -> Coordinator:
    return Coordinator(cluster)


@pytest.fixture
def made(cluster: FakeCluster, coordinator: Coordinator) -> Iterator[Sending]:
    made = Sending(cluster, transactional_id="x", max_block_ms=30)
    yield made
    made.io.call(coordinator.may_answer.set)
    made.close()


@pytest.fixture
def producer(made: Sending) -> Producer:
    return made.producer()


@pytest.fixture
def silence(made: Sending, coordinator: Coordinator) -> Callable[[], None]:
    return lambda: made.io.call(coordinator.may_answer.clear)


@pytest.fixture
def answer(made: Sending, coordinator: Coordinator) -> Callable[[], None]:
    return lambda: made.io.call(coordinator.may_answer.set)


Switch = Callable[[], None]


def settled(made: Sending) -> None:
    """Waits until what was left in the background is done."""
    eventually(lambda: made.core.transactions.state.status in (S.READY, S.ABORTABLE_ERROR))  # type: ignore[union-attr]


@pytest.mark.parametrize("in_time", [True, False])
def test_the_first_transaction_took_too_long_to_begin(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch, in_time: bool
) -> None:
    silence()
    for _ in range(2):
        with pytest.raises(ClientTimeoutError, match="init_transactions"), producer.transaction():
            pytest.fail("it cannot have begun")
    answer()
    if in_time:
        settled(made)
    with producer.transaction():
        producer.send("t", b"x")
    assert coordinator.ends == [True]
    assert coordinator.broker.values("t") == [b"x"]


@pytest.mark.parametrize("in_time", [True, False])
def test_an_abort_took_too_long(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch, in_time: bool
) -> None:
    with pytest.raises(ZeroDivisionError), producer.transaction():
        producer.send("t", b"0").result(20)
        silence()
        raise ZeroDivisionError
    with pytest.raises(ClientTimeoutError, match="abort_transaction"), producer.transaction():
        pytest.fail("the last one is being aborted")
    answer()
    if in_time:
        settled(made)
    with producer.transaction():
        producer.send("t", b"1")
    assert coordinator.ends == [False, True]


@pytest.mark.parametrize("in_time", [True, False])
def test_a_commit_took_too_long(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch, in_time: bool
) -> None:
    with pytest.raises(ClientTimeoutError, match="commit_transaction"), producer.transaction():
        producer.send("t", b"0").result(20)
        silence()
    with pytest.raises(ClientTimeoutError, match="commit_transaction"), producer.transaction():
        pytest.fail("the last one is being committed")
    answer()
    if in_time:
        settled(made)
    with producer.transaction():
        producer.send("t", b"1")
    assert coordinator.ends == [True, True]


def test_a_commit_that_took_too_long_can_be_asked_for_again(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch
) -> None:
    with pytest.raises(ClientTimeoutError), producer.transaction():
        producer.send("t", b"0").result(20)
        silence()
    answer()
    settled(made)
    producer.commit_transaction()
    with pytest.raises(IllegalStateError):
        producer.commit_transaction()
    assert coordinator.ends == [True]


def test_a_commit_that_took_too_long_and_failed_is_reported_once_and_aborted(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch
) -> None:
    with pytest.raises(ClientTimeoutError), producer.transaction():
        producer.send("t", b"0").result(20)
        silence()
        coordinator.refuse = ErrorCode.TRANSACTION_ABORTABLE
    answer()
    settled(made)
    with pytest.raises(AbortableTransactionError), producer.transaction():
        pytest.fail("the last one has failed, and nobody has heard of it yet")
    with producer.transaction():
        producer.send("t", b"1")
    assert coordinator.ends == [False, True]


def test_a_task_that_is_cancelled_while_it_commits(
    made: Sending, cluster: FakeCluster, coordinator: Coordinator, silence: Switch, answer: Switch
) -> None:
    producer = made.aio_producer()

    async def commit() -> None:
        async with producer.transaction():
            await (await producer.send("t", b"0"))
            silence()

    async def run() -> None:
        committing = asyncio.ensure_future(commit())
        await made.io.run(cluster.request_of(ApiKey.END_TXN))
        committing.cancel()
        with pytest.raises(asyncio.CancelledError):
            await committing
        answer()
        async with producer.transaction():
            await producer.send("t", b"1")

    asyncio.run(run())
    assert coordinator.ends == [True, True]


def test_a_task_that_is_cancelled_just_when_it_has_begun(
    made: Sending, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody is left who could end that transaction: it must not be in the way of the next."""
    producer = made.aio_producer()

    async def begun_and_cancelled() -> None:
        await made.io.run(made.core.begin_transaction())
        raise asyncio.CancelledError

    async def run() -> None:
        with monkeypatch.context() as crossing:
            crossing.setattr(producer._core, "begin_transaction", begun_and_cancelled)
            with pytest.raises(asyncio.CancelledError):
                async with producer.transaction():
                    pytest.fail("it was cancelled")
        async with producer.transaction():
            await producer.send("t", b"0")

    asyncio.run(run())
    assert coordinator.ends == [True]


def test_an_interrupt_just_when_a_transaction_has_begun(
    producer: Producer, made: Sending, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def begun_and_interrupted() -> None:
        made.io.wait(made.core.begin_transaction())
        raise KeyboardInterrupt

    with monkeypatch.context() as crossing:
        crossing.setattr(producer._core, "begin_transaction", begun_and_interrupted)
        with pytest.raises(KeyboardInterrupt), producer.transaction():
            pytest.fail("it was interrupted")
    with producer.transaction():
        producer.send("t", b"0")
    assert coordinator.ends == [True]


def test_an_interrupt_does_not_end_a_transaction_that_is_another_ones(
    producer: Producer, made: Sending, coordinator: Coordinator, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def interrupted() -> None:
        raise KeyboardInterrupt

    with producer.transaction():
        producer.send("t", b"0")
        with monkeypatch.context() as crossing:
            crossing.setattr(producer._core, "begin_transaction", interrupted)
            with pytest.raises(KeyboardInterrupt), producer.transaction():
                pytest.fail("it was interrupted")
    assert coordinator.ends == [True]


def test_close_aborts_after_a_commit_that_failed_late(
    producer: Producer, made: Sending, coordinator: Coordinator, silence: Switch, answer: Switch
) -> None:
    with pytest.raises(ClientTimeoutError), producer.transaction():
        producer.send("t", b"0").result(20)
        silence()
        coordinator.refuse = ErrorCode.TRANSACTION_ABORTABLE
    answer()
    settled(made)
    made.io.wait(made.core.close())
    assert coordinator.ends == [False]


def test_other_offsets_are_not_taken_for_those_that_still_wait(
    producer: Producer, made: Sending, cluster: FakeCluster, coordinator: Coordinator, silence: Switch, answer: Switch
) -> None:
    first, second = {TopicPartition("t", 0): 1}, {TopicPartition("t", 0): 2}
    with producer.transaction():
        silence()
        for offsets in (first, first, second):
            with pytest.raises(ClientTimeoutError, match="send_offsets"):
                producer.send_offsets(offsets, GROUP)
        answer()
        producer.send_offsets(second, GROUP)
    sent = [
        request.topics[0].partitions[0].committed_offset for request in cluster.requests_of(ApiKey.TXN_OFFSET_COMMIT)
    ]
    assert sent == [1, 2]
