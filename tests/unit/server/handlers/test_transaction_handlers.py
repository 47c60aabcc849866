"""The APIs of transactions over a whole broker, and Produce within a transaction: codes by version, markers."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode
from barnabas.machines.controller.commands import TopicToDelete
from barnabas.machines.txn.commands import SendMarkers
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, encode
from barnabas.protocol.messages import add_partitions_to_txn as add
from barnabas.protocol.messages import txn_offset_commit as commit
from barnabas.protocol.messages import write_txn_markers as markers
from barnabas.protocol.messages.add_offsets_to_txn import AddOffsetsToTxnRequest
from barnabas.protocol.messages.describe_transactions import DescribeTransactionsRequest
from barnabas.protocol.messages.end_txn import EndTxnRequest
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.init_producer_id import InitProducerIdRequest
from barnabas.protocol.messages.list_transactions import ListTransactionsRequest
from barnabas.protocol.messages.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from barnabas.protocol.messages.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from barnabas.records import BatchBuilder
from barnabas.records.header import HEADER_SIZE
from barnabas.server.coordinator_shard import ShardState
from barnabas.server.transaction_verification import Verification
from barnabas.types import TopicPartition

ID = "my-id"
OLD, ABORTABLE, ADDING = 10, 11, 12
"""Versions of Produce: knows INVALID_TXN_STATE, knows TRANSACTION_ABORTABLE, leaves adding partitions to the broker."""


class Producer:
    """A producer's side of the conversation, with the id and epoch that it was given."""

    def __init__(self, calls: HandlerCalls) -> None:
        self.calls = calls
        self.id = self.epoch = -1
        self.sequences: dict[int, int] = {}

    async def init(self) -> "Producer":
        while True:
            answer = await self.calls.call(
                InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000), version=5
            )
            if answer.error_code != ErrorCode.CONCURRENT_TRANSACTIONS:
                break
        assert answer.error_code == 0
        self.id, self.epoch = answer.producer_id, answer.producer_epoch
        self.sequences = {}
        return self

    async def add(self, *partitions: int, topic: str = "orders", version: int = 3) -> list[int]:
        topics = [add.AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))]
        request = add.AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=ID,
            v3_and_below_producer_id=self.id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=topics,
        )
        (result,) = (await self.calls.call(request, version)).results_by_topic_v3_and_below
        return [each.partition_error_code for each in result.results_by_partition]

    async def end(self, committed: bool = True, version: int = 4) -> int:
        request = EndTxnRequest(
            transactional_id=ID, producer_id=self.id, producer_epoch=self.epoch, committed=committed
        )
        answer = await self.calls.call(request, version)
        if version >= 5 and not answer.error_code:
            self.id, self.epoch, self.sequences = answer.producer_id, answer.producer_epoch, {}
        return int(answer.error_code)

    async def produce(self, *partitions: int, version: int = OLD, **options: Any) -> list[int]:
        """The error code of each partition."""
        reply = self.start_produce(*partitions, version=version, **options)
        return await self.codes(reply, version)

    async def codes(self, reply: Any, version: int) -> list[int]:
        if isinstance(reply, Deferred):
            reply = await completed(reply)
        assert reply is not None
        frame = reply if isinstance(reply, bytes) else b"".join(bytes(part) for part in reply)
        response, _ = decode(ProduceResponse, version, frame, 9 if version >= 9 else 8)
        return [each.error_code for topic in response.responses for each in topic.partition_responses]

    def start_produce(
        self,
        *partitions: int,
        version: int = OLD,
        transactional_id: str | None = ID,
        sequence: int | None = None,
        epoch: int | None = None,
        epochs: list[int] | None = None,
    ) -> Any:
        data = []
        for number, partition in enumerate(partitions):
            epoch = epochs[number] if epochs else epoch
            first = self.sequences.get(partition, 0) if sequence is None else sequence
            builder = BatchBuilder(
                producer_id=self.id,
                producer_epoch=self.epoch if epoch is None else epoch,
                base_sequence=first,
                transactional=True,
            )
            builder.append(self.calls.broker.clock.now_ms(), b"key", b"value")
            if sequence is None:
                self.sequences[partition] = first + 1
            data.append(PartitionProduceData(index=partition, records=bytes(builder.build())))
        topic = TopicProduceData(name="orders", partition_data=data)
        request = ProduceRequest(transactional_id=transactional_id, acks=-1, timeout_ms=1000, topic_data=[topic])
        frame = memoryview(bytearray(encode(request, version)))
        dispatcher = self.calls.broker.dispatcher
        reply = dispatcher.process(self.calls.context(ApiKey.PRODUCE, version), dispatcher.table[0], frame)
        frame[:] = bytes(len(frame))  # a frame is only valid until the handler returns
        return reply

    async def commit_offsets(self, version: int, topic: str = "orders", *partitions: int, **fields: Any) -> list[int]:
        request = commit.TxnOffsetCommitRequest(
            transactional_id=ID,
            group_id="g",
            producer_id=self.id,
            producer_epoch=self.epoch,
            member_id="",
            topics=[
                commit.TxnOffsetCommitRequestTopic(
                    name=topic,
                    partitions=[
                        commit.TxnOffsetCommitRequestPartition(
                            partition_index=index, committed_offset=7, committed_metadata=""
                        )
                        for index in partitions or (0,)
                    ],
                )
            ],
            **fields,
        )
        answer = await self.calls.call(request, version)
        return [each.error_code for topic in answer.topics for each in topic.partitions]


async def completed(reply: Deferred[Any]) -> Any:
    """As a connection would wait for it."""
    await until(lambda: reply.done)
    assert not reply.failed
    return reply.value


async def until(wanted: Callable[[], bool]) -> None:
    while True:
        if wanted():
            return
        await asyncio.sleep(0.001)


async def stored(calls: HandlerCalls) -> int:
    topics = [OffsetFetchRequestTopics(name="orders", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id="g", topics=topics)])
    (group,) = (await calls.call(request, 9)).groups
    return int(group.topics[0].partitions[0].committed_offset)


def stable_and_end(calls: HandlerCalls, partition: int = 0) -> tuple[int, int]:
    log = calls.broker.replicas.find("orders", partition).log
    return log.last_stable_offset, log.log_end_offset


def run(directory: Path, scenario: Callable[[Producer], Awaitable[None]], **settings: str) -> None:
    async def main() -> None:
        async with HandlerCalls(directory, **settings) as calls:
            await calls.make_topic("orders")
            for key_type in (0, 1):
                await calls.call(FindCoordinatorRequest(key_type=key_type, coordinator_keys=[ID]))
            await scenario(await Producer(calls).init())

    asyncio.run(main())


def test_a_transaction_is_seen_as_a_whole(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        assert await producer.add(0, 1) == [0, 0]
        assert await producer.produce(0, 1) == [0, 0]
        assert await producer.produce(0) == [0]
        assert stable_and_end(producer.calls) == (0, 2)
        assert await producer.end() == 0
        assert stable_and_end(producer.calls) == (3, 3) and stable_and_end(producer.calls, 1) == (2, 2)
        assert await producer.end() == 0, "a repeated EndTxn is answered like the first"
        assert stable_and_end(producer.calls) == (3, 3)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "error"),
    [
        (3, ErrorCode.INVALID_TXN_STATE),
        (OLD, ErrorCode.INVALID_TXN_STATE),
        (ABORTABLE, ErrorCode.TRANSACTION_ABORTABLE),
    ],
)
def test_a_partition_that_was_not_added_is_refused(tmp_path: Path, version: int, error: ErrorCode) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        assert await producer.produce(0, 1, version=version) == [0, error]
        assert stable_and_end(producer.calls, 1) == (0, 0)
        assert await producer.add(1) == [0]
        assert await producer.produce(1, version=version, sequence=0) == [0]

    run(tmp_path, scenario)


def test_without_verification_everything_is_taken(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        assert await producer.produce(1) == [0]
        assert await producer.produce(0, version=ADDING) == [0], "adding is not verifying"

    run(tmp_path, scenario, transaction_partition_verification_enable="false")


def test_the_broker_adds_partitions_by_itself(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        epochs = []
        for _ in range(3):
            assert await producer.produce(0, 1, version=ADDING) == [0, 0]
            assert await producer.produce(0, version=ADDING) == [0]
            epochs.append(producer.epoch)
            assert await producer.end(version=5) == 0
        assert epochs == [0, 1, 2]
        assert stable_and_end(producer.calls) == (9, 9)

    run(tmp_path, scenario)


def test_a_late_batch_never_gets_into_the_next_transaction(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.produce(0, version=ADDING)
        old_epoch = producer.epoch
        await producer.end(version=5)
        late = await producer.produce(0, 1, version=ADDING, epoch=old_epoch, sequence=1)
        assert late == [ErrorCode.INVALID_PRODUCER_EPOCH] * 2
        assert stable_and_end(producer.calls) == (2, 2) and stable_and_end(producer.calls, 1) == (0, 0)

    run(tmp_path, scenario)


def test_sequences_start_at_0_where_nothing_is_known_of_the_producer(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        refused = await producer.produce(0, version=ADDING, sequence=3)
        assert refused == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await producer.produce(0, version=ADDING, sequence=0) == [0]

    run(tmp_path, scenario)


def test_a_later_batch_does_not_get_ahead_of_a_refused_one(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        assert await producer.produce(0, sequence=0) == [ErrorCode.INVALID_TXN_STATE]
        await producer.add(0)
        assert await producer.produce(0, sequence=1) == [ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER]
        assert await producer.produce(0, sequence=0) == [0]
        assert await producer.produce(0, sequence=1) == [0]

    run(tmp_path, scenario)


def test_transactional_batches_need_a_transactional_id(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        refused = await producer.produce(0, transactional_id=None)
        assert refused == [ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED]

    run(tmp_path, scenario)


def test_a_coordinator_that_cannot_answer_makes_the_producer_try_again(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        shards = producer.calls.broker.transactions.shards()
        for shard in shards:
            shard.state = ShardState.LOADING
        assert await producer.produce(0, sequence=0) == [ErrorCode.NOT_ENOUGH_REPLICAS]
        assert await producer.commit_offsets(3) == [ErrorCode.COORDINATOR_LOAD_IN_PROGRESS]
        assert await producer.commit_offsets(1) == [ErrorCode.COORDINATOR_NOT_AVAILABLE]
        for shard in shards:
            shard.state = ShardState.ACTIVE
        assert await producer.produce(0, sequence=0) == [0]

    run(tmp_path, scenario)


def test_produce_waits_a_moment_for_the_markers_of_the_transaction_before(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        sent: list[tuple[int, SendMarkers]] = []
        transactions = producer.calls.broker.transactions
        await producer.produce(0, version=ADDING)
        with patch.object(transactions._sender, "send", lambda *request: sent.append(request)):
            await producer.end(version=5)
        reply = producer.start_produce(0, version=ADDING)
        assert isinstance(reply, Deferred) and not reply.done
        transactions._sender.send(*sent[0])
        await completed(reply)
        assert stable_and_end(producer.calls) == (2, 3)

    run(tmp_path, scenario, add_partitions_to_txn_retry_backoff_max_ms="60000")


def test_markers_that_do_not_come_are_waited_for_no_longer_than_set(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.produce(0, version=ADDING)
        with patch.object(producer.calls.broker.transactions._sender, "send"):
            await producer.end(version=5)
            assert await producer.produce(0, version=ADDING) == [ErrorCode.NOT_ENOUGH_REPLICAS]

    run(tmp_path, scenario)


def test_a_marker_wipes_out_a_verification_under_way(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        """The coordinator says yes, but before that yes arrives the transaction is over."""
        await producer.add(0)
        verification = producer.calls.broker.transactions.verification
        arrived = asyncio.Event()
        verify = verification.verify

        def slow_verify(*arguments: Any, **options: Any) -> Any:
            async def later() -> Any:
                verified = verify(*arguments, **options)
                await arrived.wait()
                return verified

            return producer.calls.broker.dispatcher.run(later())

        with patch.object(verification, "verify", slow_verify):
            reply = producer.start_produce(0)
            await asyncio.sleep(0)
        assert reply.memory_bytes > HEADER_SIZE, "the copied batch counts while the request is parked"
        assert await producer.end(committed=False) == 0
        arrived.set()
        parts = await completed(reply)
        response, _ = decode(ProduceResponse, OLD, b"".join(bytes(part) for part in parts), 9)
        assert response.responses[0].partition_responses[0].error_code == ErrorCode.INVALID_TXN_STATE
        assert stable_and_end(producer.calls) == (1, 1)

    run(tmp_path, scenario)


def test_first_writes_may_be_sent_without_waiting(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        """All are asked about before the first is written, because the coordinator's answer waits for a flush."""
        replies = [producer.start_produce(0, version=ADDING) for _ in range(3)]
        assert [await producer.codes(each, ADDING) for each in replies] == [[0], [0], [0]]
        assert await producer.end(version=5) == 0
        await until(lambda: stable_and_end(producer.calls) == (4, 4))

    run(tmp_path, scenario, log_flush_interval_messages="1")


def test_first_commits_may_be_sent_without_waiting(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        answers = await asyncio.gather(*(producer.commit_offsets(5) for _ in range(3)))
        assert answers == [[0], [0], [0]]

    run(tmp_path, scenario, log_flush_interval_messages="1")


def test_a_commit_that_its_group_refuses_leaves_the_mark_to_the_next(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        answers = await asyncio.gather(
            producer.commit_offsets(5, generation_id=3),
            producer.commit_offsets(5),
        )
        assert answers == [[ErrorCode.ILLEGAL_GENERATION], [0]]

    run(tmp_path, scenario, log_flush_interval_messages="1")


@pytest.mark.parametrize("version", range(6))
def test_offsets_count_once_the_transaction_commits(tmp_path: Path, version: int) -> None:
    async def scenario(producer: Producer) -> None:
        request = AddOffsetsToTxnRequest(
            transactional_id=ID, producer_id=producer.id, producer_epoch=producer.epoch, group_id="g"
        )
        if version < 5:
            assert (await producer.calls.call(request, min(version, 4))).error_code == 0
        assert await producer.commit_offsets(version) == [0]
        assert await stored(producer.calls) == -1
        assert await producer.end(committed=version != 3, version=5 if version == 5 else 4) == 0
        assert await stored(producer.calls) == (-1 if version == 3 else 7)

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("version", "error"),
    [(2, ErrorCode.INVALID_TXN_STATE), (3, ErrorCode.INVALID_TXN_STATE), (4, ErrorCode.TRANSACTION_ABORTABLE)],
)
def test_offsets_of_a_group_that_was_not_added_are_refused(tmp_path: Path, version: int, error: ErrorCode) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        assert await producer.commit_offsets(version) == [error]
        assert await producer.commit_offsets(5) == [0]

    run(tmp_path, scenario)


def test_offsets_of_partitions_that_do_not_exist(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        assert await producer.commit_offsets(5, "none", 0, 1) == [ErrorCode.UNKNOWN_TOPIC_OR_PARTITION] * 2
        assert await producer.commit_offsets(5, "orders", 0, 9) == [0, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION]

    run(tmp_path, scenario)


def test_what_is_too_large_for_a_coordinators_log_is_refused_by_itself(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        calls = producer.calls
        await calls.make_topic("wide", 120)
        added = await producer.add(*range(120), topic="wide")
        assert set(added) == {ErrorCode.UNKNOWN_SERVER_ERROR}
        assert (await describe(producer)).transaction_state == "Empty"
        refused = await producer.commit_offsets(5, "wide", *range(20))
        assert set(refused) == {ErrorCode.INVALID_COMMIT_OFFSET_SIZE}
        assert await producer.produce(0, version=ADDING) == [0]
        assert await producer.commit_offsets(5) == [0]
        assert await producer.end(version=5) == 0
        assert await stored(calls) == 7

    run(tmp_path, scenario, message_max_bytes="500")


def test_adding_is_all_or_nothing(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        for version in range(4):
            assert await producer.add(0, 5, version=version) == [55, 3]
        assert await producer.produce(0) == [ErrorCode.INVALID_TXN_STATE]
        producer.epoch -= 1
        assert [await producer.add(0, version=version) for version in (1, 2)] == [[47], [90]]

    run(tmp_path, scenario)


def test_brokers_ask_for_many_transactions_at_once(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        topics = [add.AddPartitionsToTxnTopic(name="orders", partitions=[0, 1])]
        transactions = [
            add.AddPartitionsToTxnTransaction(
                transactional_id=name,
                producer_id=producer.id,
                producer_epoch=producer.epoch,
                verify_only=True,
                topics=topics,
            )
            for name in (ID, "another")
        ]
        request = add.AddPartitionsToTxnRequest(transactions=transactions)
        for version in (4, 5):
            answer = await producer.calls.call(request, version)
            codes = {
                each.transactional_id: [one.partition_error_code for one in each.topic_results[0].results_by_partition]
                for each in answer.results_by_transaction
            }
            assert codes == {ID: [0, ErrorCode.TRANSACTION_ABORTABLE], "another": [49, 49]}

    run(tmp_path, scenario)


def test_nothing_is_added_for_a_partition_led_elsewhere(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        state = producer.calls.broker.replicas.find("orders", 1).state
        state.is_leader = False
        assert await producer.produce(0, 1, version=ADDING) == [0, ErrorCode.NOT_LEADER_OR_FOLLOWER]
        assert [each.partitions for each in (await describe(producer)).topics] == [[0]]
        state.is_leader = True

    run(tmp_path, scenario)


def test_two_producers_in_one_transaction_are_refused(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0, 1)
        mixed = await producer.produce(0, 1, epochs=[producer.epoch, producer.epoch + 1])
        assert mixed == [ErrorCode.INVALID_PRODUCER_ID_MAPPING] * 2
        assert stable_and_end(producer.calls) == (0, 0)

    run(tmp_path, scenario)


def test_no_mark_stays_behind(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        marks = producer.calls.broker.transactions.verification._marks
        await producer.produce(0, 1, version=ADDING)
        assert await producer.commit_offsets(5) == [0]
        assert not marks
        await producer.produce(0, epoch=producer.epoch - 1, version=ADDING)
        assert len(marks) == 1
        await producer.end(version=5)
        assert not marks, "the marker wipes it out"

    run(tmp_path, scenario)


def test_a_mark_keeps_the_lowest_sequence_of_the_newest_epoch() -> None:
    mark = Verification(producer_epoch=3, lowest_sequence=5)
    for epoch, sequence, expected in ((3, 7, (3, 5)), (3, 4, (3, 4)), (2, 1, (3, 4)), (4, 6, (4, 6)), (4, 5, (4, 5))):
        mark.see(epoch, sequence)
        assert (mark.producer_epoch, mark.lowest_sequence) == expected


def test_markers_by_hand(tmp_path: Path) -> None:
    """What `kafka-transactions abort` does for a transaction that nobody ends any more."""

    async def scenario(producer: Producer) -> None:
        await producer.add(0)
        await producer.produce(0)
        topics = [
            markers.WritableTxnMarkerTopic(name="orders", partition_indexes=[0, 9]),
            markers.WritableTxnMarkerTopic(name="none", partition_indexes=[0]),
        ]
        marker = markers.WritableTxnMarker(
            producer_id=producer.id,
            producer_epoch=producer.epoch,
            transaction_result=False,
            topics=topics,
            coordinator_epoch=0,
        )
        request = markers.WriteTxnMarkersRequest(markers=[marker])
        (answer,) = (await producer.calls.call(request)).markers
        codes = [
            (topic.name, each.partition_index, each.error_code) for topic in answer.topics for each in topic.partitions
        ]
        assert codes == [("orders", 0, 0), ("orders", 9, 3), ("none", 0, 3)]
        assert stable_and_end(producer.calls) == (2, 2)
        marker.producer_epoch -= 1
        (answer,) = (await producer.calls.call(request)).markers
        assert answer.topics[0].partitions[0].error_code == ErrorCode.INVALID_PRODUCER_EPOCH
        topics[:] = [markers.WritableTxnMarkerTopic(name="__consumer_offsets", partition_indexes=[0])]
        producer.calls.broker.groups.runtime.shard(0).state = ShardState.LOADING
        (answer,) = (await producer.calls.call(request)).markers
        assert answer.topics[0].partitions[0].error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert (await producer.calls.call(markers.WriteTxnMarkersRequest(markers=[]))).markers == []

    run(tmp_path, scenario)


def test_markers_are_tried_again_until_they_are_written(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        """The group's shard loads while the transaction ends: its offsets count a little later."""
        assert await producer.commit_offsets(5) == [0]
        await producer.produce(0, version=ADDING)
        groups = producer.calls.broker.groups.shards()
        for shard in groups:
            shard.state = ShardState.LOADING
        assert await producer.end(version=5) == 0
        assert stable_and_end(producer.calls) == (2, 2)
        described = await describe(producer)
        assert (described.transaction_state, described.topics[0].topic) == ("PrepareCommit", "__consumer_offsets")
        for shard in groups:
            shard.state = ShardState.ACTIVE
        await until(lambda: is_complete(producer))
        assert await stored(producer.calls) == 7

    run(tmp_path, scenario)


def is_complete(producer: Producer) -> bool:
    answer = producer.calls.start(DescribeTransactionsRequest(transactional_ids=[ID]))
    return bool(answer.transaction_states[0].transaction_state == "CompleteCommit")


async def describe(producer: Producer) -> Any:
    (state,) = (await producer.calls.call(DescribeTransactionsRequest(transactional_ids=[ID]))).transaction_states
    return state


def test_a_topic_deleted_within_a_transaction_does_not_hold_it_up(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.calls.make_topic("gone")
        await producer.add(0)
        await producer.add(0, topic="gone")
        await producer.calls.broker.controller.delete_topics([TopicToDelete(name="gone")])
        assert await producer.end() == 0
        assert (await describe(producer)).transaction_state == "CompleteCommit"

    run(tmp_path, scenario)


def test_lists_and_descriptions(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        await producer.add(0, 1)
        calls = producer.calls
        for version in calls.versions(ListTransactionsRequest):
            listed = await calls.call(ListTransactionsRequest(state_filters=["Ongoing", "Odd"]), version)
            assert [each.transactional_id for each in listed.transaction_states] == [ID]
            assert listed.unknown_state_filters == ["Odd"]
        request = DescribeTransactionsRequest(transactional_ids=["nobody", ID])
        states = {each.transactional_id: each for each in (await calls.call(request)).transaction_states}
        assert states["nobody"].error_code == ErrorCode.TRANSACTIONAL_ID_NOT_FOUND
        assert [(each.topic, each.partitions) for each in states[ID].topics] == [("orders", [0, 1])]
        for shard in calls.broker.transactions.shards():
            shard.state = ShardState.LOADING
        assert (await calls.call(ListTransactionsRequest())).error_code == ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    ("pattern", "found"),
    [
        ("", ["app:größe/1", "my-id"]),
        ("my-.*", ["my-id"]),
        ("my", []),
        ("app:.*/[0-9]", ["app:größe/1"]),
        ("app:gr\u00f6.{2}/1", ["app:größe/1"]),
        ("[^a]+", ["my-id"]),
        ("(", None),
        (r"(.)\1", None),
    ],
)
def test_listing_by_pattern(tmp_path: Path, pattern: str, found: list[str] | None) -> None:
    async def scenario(producer: Producer) -> None:
        another = InitProducerIdRequest(transactional_id="app:größe/1", transaction_timeout_ms=60_000)
        assert (await producer.calls.call(another)).error_code == 0
        answer = await producer.calls.call(ListTransactionsRequest(transactional_id_pattern=pattern), 2)
        assert answer.error_code == (ErrorCode.INVALID_REGULAR_EXPRESSION if found is None else 0)
        assert sorted(each.transactional_id for each in answer.transaction_states) == (found or [])

    run(tmp_path, scenario)


def test_a_pattern_that_takes_too_long(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        for number in range(40):
            name = f"{number:016b}" * 60
            request = InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)
            assert (await producer.calls.call(request)).error_code == 0
        slow = ListTransactionsRequest(transactional_id_pattern="(.?){1000}")
        assert (await producer.calls.call(slow, 2)).error_code == ErrorCode.INVALID_REGULAR_EXPRESSION
        assert len((await producer.calls.call(ListTransactionsRequest(), 2)).transaction_states) == 41

    run(tmp_path, scenario)


def test_init_producer_id(tmp_path: Path) -> None:
    async def scenario(producer: Producer) -> None:
        calls = producer.calls
        seen = []
        for version in calls.versions(InitProducerIdRequest):
            answer = await calls.call(InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1), version)
            seen.append(answer.producer_id)
            assert (answer.error_code, answer.producer_epoch) == (0, 0)
            answer = await calls.call(
                InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000), version
            )
            assert (answer.producer_id, answer.producer_epoch) == (producer.id, version + 1)
        assert len(set(seen)) == len(seen)
        half = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=60_000, producer_id=4)
        assert (await calls.call(half)).error_code == ErrorCode.INVALID_REQUEST
        half.transactional_id = None
        assert (await calls.call(half)).error_code == ErrorCode.INVALID_REQUEST
        empty = InitProducerIdRequest(transactional_id="", transaction_timeout_ms=60_000)
        assert (await calls.call(empty)).error_code == ErrorCode.INVALID_REQUEST
        long = InitProducerIdRequest(transactional_id=ID, transaction_timeout_ms=9_000_000)
        assert (await calls.call(long)).error_code == ErrorCode.INVALID_TRANSACTION_TIMEOUT

    run(tmp_path, scenario)


def test_markers_stop_when_another_coordinator_has_taken_over(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(producer: Producer) -> None:
        sender = producer.calls.broker.transactions._sender
        await producer.add(0)
        await producer.produce(0)
        partition = producer.calls.broker.transactions.partition_for(ID)
        orders = (TopicPartition("orders", 0),)
        sender.send(partition, SendMarkers(ID, producer.id, producer.epoch, True, orders, coordinator_epoch=77))
        assert stable_and_end(producer.calls) == (0, 1), "an epoch that is not this coordinator's"
        sender.send(partition, SendMarkers(ID, producer.id, -1, True, orders, coordinator_epoch=0))
        assert stable_and_end(producer.calls) == (0, 1)

    run(tmp_path, scenario)
    assert "another coordinator has taken over" in caplog.text
