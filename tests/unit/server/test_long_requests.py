"""One request must not stop the others: duplicates cost once, shared results are cached, the rest runs in slices."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any
from unittest.mock import Mock, patch

import pytest
from handler_calls import HandlerCalls
from step_clock import StepClock

from barnabas.config import describe
from barnabas.config.broker import BrokerConfig
from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import (
    decode_request_header,
    decode_response_header,
    encode_request,
    encode_response_in_slices,
)
from barnabas.protocol.messages.alter_configs import AlterConfigsRequest, AlterConfigsResource
from barnabas.protocol.messages.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from barnabas.protocol.messages.create_topics import CreatableTopic, CreateTopicsRequest
from barnabas.protocol.messages.delete_topics import DeleteTopicsRequest, DeleteTopicState
from barnabas.protocol.messages.describe_configs import DescribeConfigsRequest, DescribeConfigsResource
from barnabas.protocol.messages.fetch import FetchPartition, FetchRequest, FetchTopic
from barnabas.protocol.messages.incremental_alter_configs import AlterConfigsResource as IncrementalResource
from barnabas.protocol.messages.incremental_alter_configs import IncrementalAlterConfigsRequest
from barnabas.protocol.messages.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from barnabas.server import dispatch
from barnabas.server.dispatch import LARGE_FRAME_BYTES
from barnabas.server.handlers import metadata
from barnabas.server.request import RESPONSE_MAX_BYTES
from barnabas.server.slices import Slices
from barnabas.server.steps import MAX_CONTROLLER_ITEMS

TOPIC = 2


class CountedName(str):
    """A name that counts how often it is compared."""

    compared = 0

    def __eq__(self, other: object) -> bool:
        CountedName.compared += 1
        return super().__eq__(other)

    __hash__ = str.__hash__


def resource(name: str, *keys: str) -> DescribeConfigsResource:
    return DescribeConfigsResource(resource_type=TOPIC, resource_name=name, configuration_keys=list(keys) or None)


def test_unknown_names_are_not_compared_with_each_other(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            names = [CountedName(f"nope-{number}") for number in range(500)]
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
            request.allow_auto_topic_creation = False
            row = calls.broker.dispatcher.table[ApiKey.METADATA]
            CountedName.compared = 0
            response = row.handle(calls.context(ApiKey.METADATA, 9), request)
            response = await response if isinstance(response, Deferred) else response
            assert len(response.topics) == 500 and CountedName.compared < 10_000

    asyncio.run(scenario())


def test_a_long_metadata_request_is_cut_into_slices(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.dispatcher.slices = Slices(StepClock())
            names = [f"nope-{number}" for number in range(50)]
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
            request.allow_auto_topic_creation = False
            response = calls.start(request, 9)
            assert isinstance(response, Deferred) and not response.done
            assert [topic.name for topic in (await response).topics] == names

    asyncio.run(scenario())


def test_a_large_frame_is_decoded_and_its_response_encoded_in_slices(tmp_path: Path) -> None:
    """The connection reads nothing meanwhile, and the frame may be overwritten as soon as the call returns."""

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.dispatcher.slices = Slices(StepClock())
            names = [f"nope-{number}" for number in range(10_000)]
            request = MetadataRequest(topics=[MetadataRequestTopic(name=name) for name in names])
            request.allow_auto_topic_creation = False
            frame = bytearray(encode_request(request, 9, 7, None)[4:])
            assert len(frame) > LARGE_FRAME_BYTES
            handled, encoded = Mock(wraps=metadata.handle_metadata), Mock(wraps=encode_response_in_slices)
            row = replace(calls.broker.dispatcher.table[ApiKey.METADATA], handle=handled)
            context = calls.context(ApiKey.METADATA, 9)
            context.header = decode_request_header(frame)
            with patch.object(dispatch, "encode_response_in_slices", encoded):
                reply = calls.broker.dispatcher.process(context, row, memoryview(frame))
                assert isinstance(reply, Deferred) and not handled.called and calls.pauses == ["pause"]
                assert reply.memory_bytes == len(frame)
                frame[:] = bytes(len(frame))
                (part,) = await reply
            assert handled.call_count == encoded.call_count == 1
            assert calls.pauses == ["pause", "resume"] * 3, "decoded, handled, encoded"
            assert isinstance(part, memoryview)
            correlation_id, position = decode_response_header(MetadataResponse, 9, part[4:])
            response, _ = decode(MetadataResponse, 9, part[4:], position)
            assert correlation_id == 7 and [topic.name for topic in response.topics] == names

    asyncio.run(scenario())


def test_a_response_may_not_be_larger_than_a_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path, socket_request_max_bytes="100000") as calls:
            assert BrokerConfig().socket_request_max_bytes == RESPONSE_MAX_BYTES
            calls.broker.dispatcher.slices = Slices(StepClock())
            request = MetadataRequest(topics=[MetadataRequestTopic(name=f"nope-{n}") for n in range(8_000)])
            request.allow_auto_topic_creation = False
            frame = memoryview(encode_request(request, 9, 7, None)[4:])
            assert len(frame) < 100_000
            reply = calls.broker.dispatcher.on_request(calls.context(ApiKey.METADATA, 9).connection, frame)
            assert isinstance(reply, Deferred)
            limited = patch("barnabas.server.request.RESPONSE_MAX_BYTES", 50_000)
            with limited, pytest.raises(ProtocolError, match="more than 100000 bytes"):
                await reply

    asyncio.run(scenario())


def test_settings_of_a_resource_named_twice_are_described_once(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            await calls.make_topic("t")
            await calls.make_topic("u")
            resources = [resource("t", "retention.ms"), resource("u"), resource("t", "segment.bytes")] * 3
            results = (await calls.call(DescribeConfigsRequest(resources=resources))).results
            assert [result.resource_name for result in results] == ["t", "u"]
            assert {config.name for config in results[0].configs} == {"retention.ms", "segment.bytes"}
            assert len(results[1].configs) > 20
            (everything,) = (
                await calls.call(DescribeConfigsRequest(resources=[resource("t", "retention.ms"), resource("t")]))
            ).results
            assert len(everything.configs) > 20

    asyncio.run(scenario())


def test_the_brokers_settings_are_worked_out_once_per_request(tmp_path: Path) -> None:
    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            for name in "tuvw":
                await calls.make_topic(name)
            with patch.object(describe, "effective_config", wraps=describe.effective_config) as effective:
                response = await calls.call(DescribeConfigsRequest(resources=[resource(name) for name in "tuvw"]))
            assert len(response.results) == 4 and effective.call_count == 1

    asyncio.run(scenario())


def test_a_parked_request_counts_what_it_holds(tmp_path: Path) -> None:
    """A fetch by its partitions, whatever the size of its frame."""

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            topic_id = await calls.make_topic("t", 1)
            request = FetchRequest(
                max_wait_ms=60_000,
                min_bytes=1,
                max_bytes=1000,
                topics=[FetchTopic(topic_id=topic_id, partitions=[FetchPartition(partition=0, partition_max_bytes=9)])],
            )
            frame = memoryview(bytearray(encode_request(request, 13, 1, None)[4:]))
            reply = calls.broker.dispatcher.on_request(calls.context(ApiKey.FETCH, 13).connection, frame)
            assert isinstance(reply, Deferred) and reply.memory_bytes > 2000
            reply.end_input()
            assert reply.completed

    asyncio.run(scenario())


MANY = MAX_CONTROLLER_ITEMS + 1


@pytest.mark.parametrize(
    ("request_", "rows"),
    [
        (CreateTopicsRequest(topics=[CreatableTopic(name=f"t{n}") for n in range(MANY)]), "topics"),
        (DeleteTopicsRequest(topics=[DeleteTopicState(name=f"t{n}") for n in range(MANY)]), "responses"),
        (CreatePartitionsRequest(topics=[CreatePartitionsTopic(name=f"t{n}") for n in range(MANY)]), "results"),
        (AlterConfigsRequest(resources=[AlterConfigsResource(resource_type=TOPIC) for _ in range(MANY)]), "responses"),
        (
            IncrementalAlterConfigsRequest(resources=[IncrementalResource(resource_type=TOPIC) for _ in range(MANY)]),
            "responses",
        ),
    ],
    ids=lambda value: type(value).__name__,
)
def test_the_controller_is_not_asked_for_too_much_at_once(tmp_path: Path, request_: Any, rows: str) -> None:
    """It decides in one step, so very many topics or resources are refused, as by Kafka's controller."""

    async def scenario() -> None:
        async with HandlerCalls(tmp_path) as calls:
            calls.broker.cluster.submit = Mock(side_effect=AssertionError("the controller was asked"))
            response = await calls.call(request_)
            assert {row.error_code for row in getattr(response, rows)} == {ErrorCode.POLICY_VIOLATION}
            assert len(getattr(response, rows)) == MANY

    asyncio.run(scenario())
