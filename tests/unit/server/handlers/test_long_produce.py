"""Produce requests with very many batches: others are served in between, and nothing else changes."""

import asyncio
from itertools import pairwise
from pathlib import Path

import pytest
from handler_calls import HandlerCalls
from raw_client import RawClient, batch, code
from step_clock import StepClock

from barnabas.errors import ErrorCode
from barnabas.metadata.image import PartitionImage
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.messages.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from barnabas.protocol.produce_request import MAX_PARTITIONS_AT_ONCE, PartitionRecords, ProduceFrame
from barnabas.protocol.produce_response import PartitionFailure, PartitionSuccess
from barnabas.server.handlers.produce import HANDLER, TURN_MS
from barnabas.testing import Broker


def frame_of(count: int) -> ProduceFrame:
    data = batch(timestamp=StepClock().now_ms())
    return ProduceFrame(None, 1, 1000, [PartitionRecords("t", 0, memoryview(bytearray(data))) for _ in range(count)])


@pytest.mark.parametrize("count", [MAX_PARTITIONS_AT_ONCE + 1, TURN_MS + 2])
def test_others_are_served_in_between(count: int, tmp_path: Path) -> None:
    """There are many batches, or writing them takes long."""

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("t", 1)
            calls.broker.clock = StepClock()
            context = calls.context(ApiKey.PRODUCE, 9)
            context.connection.closed = False  # type: ignore[misc]
            response = HANDLER.handle(context, frame_of(count))
            assert isinstance(response, Deferred) and not response.done
            log = calls.broker.replicas.find("t", 0).log
            ends = [log.log_end_offset]
            while not response.done:
                await asyncio.sleep(0)
                ends.append(log.log_end_offset)
            outcomes = await response
            assert outcomes is not None
            assert [each.base_offset for each in outcomes if isinstance(each, PartitionSuccess)] == list(range(count))
            assert max(after - before for before, after in pairwise(ends)) <= TURN_MS

    asyncio.run(scenario())


def test_the_rest_is_not_written_once_the_client_is_gone(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("t", 1)
            context = calls.context(ApiKey.PRODUCE, 9)
            context.connection.closed = True  # type: ignore[misc]
            response = HANDLER.handle(context, frame_of(3 * MAX_PARTITIONS_AT_ONCE))
            assert isinstance(response, Deferred)
            await response
            assert calls.broker.replicas.find("t", 0).log.log_end_offset <= MAX_PARTITIONS_AT_ONCE
            assert calls.pauses == ["pause", "resume"]

    asyncio.run(scenario())


def test_what_another_leader_may_have_replaced_is_not_acknowledged(tmp_path: Path) -> None:
    """Leadership goes while others are served, and the new leader commits records of its own at these offsets."""

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("t", 1)
            calls.broker.clock = StepClock()
            hosted = calls.broker.replicas.find("t", 0)
            hosted.on_image(PartitionImage(0, (1, 2), (1, 2), 1, 1, 1), 0)
            context = calls.context(ApiKey.PRODUCE, 9)
            context.connection.closed = False  # type: ignore[misc]
            response = HANDLER.handle(context, frame_of(TURN_MS + 2)._replace(acks=-1))
            assert isinstance(response, Deferred) and not response.done
            written = hosted.log.log_end_offset
            assert 0 < written < TURN_MS + 2
            hosted.on_image(PartitionImage(0, (1, 2), (1, 2), 2, 2, 2), 0)
            hosted.append_as_follower(memoryview(b""), 2, written, 0, 0)
            assert hosted.log.high_watermark == written
            outcomes = await response
            assert outcomes is not None and len(outcomes) == TURN_MS + 2
            for each in outcomes:
                assert isinstance(each, PartitionFailure) and each.error is ErrorCode.NOT_LEADER_OR_FOLLOWER

    asyncio.run(scenario())


@pytest.mark.parametrize("acks", [0, 1, -1])
def test_a_long_request_over_the_wire(acks: int) -> None:
    """Every batch gets its own response, and the next request of the connection comes after all of them."""
    count = 2 * MAX_PARTITIONS_AT_ONCE + 3
    with Broker() as broker, RawClient(broker.bootstrap) as client:
        client.create_topic("t", 2)
        data = [PartitionProduceData(index=number % 2, records=bytes(batch())) for number in range(count)]
        if acks:
            data.append(PartitionProduceData(index=7, records=bytes(batch())))
        request = ProduceRequest(
            acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data)]
        )
        client.post(request, 9)
        after = ProduceRequest(
            acks=1, timeout_ms=30_000, topic_data=[TopicProduceData(name="t", partition_data=data[:1])]
        )
        client.post(after, 9)
        if acks:
            answers = client.answer(ProduceRequest, 9).responses[0].partition_responses
            assert [each.base_offset for each in answers[:-1]] == [number // 2 for number in range(count)]
            assert code(answers[-1]) == "UNKNOWN_TOPIC_OR_PARTITION"
        (last,) = client.answer(ProduceRequest, 9).responses[0].partition_responses
        assert last.base_offset == count // 2 + 1
