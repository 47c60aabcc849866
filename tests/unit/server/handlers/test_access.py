"""Every handler asks for the rights that Kafka demands: the whole table, denied and allowed, right by right."""

import asyncio
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from access_table import (
    CLUSTER,
    DENIALS,
    DENIED,
    GROUP,
    GROUP_ID,
    OTHER_TOPIC,
    PLAIN_BATCH,
    TOPIC,
    TOPIC_NAME,
    Right,
    Row,
    codes_in,
    right,
    rows,
)
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.machines.controller.acls import AclEntry, Operation, ResourcePattern
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_request_header, decode_response_header, encode_request
from barnabas.protocol.message_types import response_type
from barnabas.protocol.messages import delete_topics, describe_cluster, describe_groups, metadata, produce
from barnabas.server.authorized_operations import NOT_ASKED
from barnabas.server.handlers import HANDLERS
from barnabas.server.handlers.refused import HANDLERS as REFUSED
from barnabas.storage.file_slice import FileSlice

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANONYMOUS = "User:ANONYMOUS"
FOR_EVERYBODY = {
    ApiKey.API_VERSIONS,
    ApiKey.DESCRIBE_CLUSTER,
    ApiKey.GET_TELEMETRY_SUBSCRIPTIONS,
    ApiKey.PUSH_TELEMETRY,
}
OF_TOKENS = {
    ApiKey.CREATE_DELEGATION_TOKEN,
    ApiKey.RENEW_DELEGATION_TOKEN,
    ApiKey.EXPIRE_DELEGATION_TOKEN,
    ApiKey.DESCRIBE_DELEGATION_TOKEN,
}
"""Refused to whoever has not logged in; their rights are in `test_delegation_tokens.py`."""
BETWEEN_BROKERS = {
    ApiKey.ALTER_PARTITION,
    ApiKey.ALLOCATE_PRODUCER_IDS,
    ApiKey.CONTROLLED_SHUTDOWN,
    ApiKey.ENVELOPE,
}


def secured(directory: Path, **settings: str) -> HandlerCalls:
    return HandlerCalls(directory, authorizer_class_name=STANDARD, super_users="User:root", **settings)


def grant(calls: HandlerCalls, rights: Iterable[Right]) -> None:
    """These rights, and no others, for whoever sends the next request."""
    acls: dict[ResourcePattern, tuple[AclEntry, ...]] = {}
    for each in rights:
        acls[each.pattern] = (*acls.get(each.pattern, ()), each.entry(ANONYMOUS))
    assert calls.broker.authorizer is not None
    calls.broker.authorizer.on_image(replace(calls.broker.cluster.image, acls=acls))


async def ask(calls: HandlerCalls, request: Any, version: int | None = None) -> Any:
    """Through the dispatcher, as a frame, since some handlers have codecs of their own."""
    api_key = ApiKey(request.__schema__.api_key)
    row = calls.broker.dispatcher.table[api_key]
    version = row.max_version if version is None else version
    frame = memoryview(bytearray(encode_request(request, version, 7, "tester")))[4:]
    context = calls.context(api_key, version)
    context.header = decode_request_header(frame)
    reply = calls.broker.dispatcher.process(context, row, frame)
    parts = await reply if isinstance(reply, Deferred) else reply
    assert parts is not None
    body = (parts if isinstance(parts, bytes) else b"".join(map(_bytes_of, parts)))[4:]
    message = response_type(api_key)
    position = decode_response_header(message, version, body)[1]
    return decode(message, version, body, position)[0]


def _bytes_of(part: Any) -> bytes:
    return part.read() if isinstance(part, FileSlice) else bytes(part)


async def denials(calls: HandlerCalls, row: Row, rights: Iterable[Right]) -> set[int]:
    grant(calls, rights)
    response = await ask(calls, row.request, row.version)
    return {code for name, code in codes_in(response) if name != "topic_config_error_code"} & DENIALS


def test_the_whole_table(tmp_path: Path) -> None:
    asyncio.run(_the_whole_table(tmp_path))


async def _the_whole_table(tmp_path: Path) -> None:
    async with secured(tmp_path) as calls:
        for topic in (TOPIC_NAME, OTHER_TOPIC):
            await calls.make_topic(topic)
        for row in rows():
            await _check(calls, row)


async def _check(calls: HandlerCalls, row: Row) -> None:
    assert not await denials(calls, row, row.rights), row.name
    for each in row.instead:
        assert not await denials(calls, row, [each]), (row.name, each)
    for index, missing in enumerate(row.rights):
        rest = [*row.rights[:index], *row.rights[index + 1 :]]
        expected = set() if row.hides else {DENIED[missing.type]}
        assert await denials(calls, row, rest) == expected, (row.name, missing)
        others = [each._replace(name=each.name + "2") for each in row.rights]
        assert (await denials(calls, row, others) != set()) is not row.hides, (row.name, "a right on another resource")


def test_no_handler_is_left_out() -> None:
    asked = {row.api_key for row in rows()}
    known = asked | FOR_EVERYBODY | OF_TOKENS | BETWEEN_BROKERS | {row.api_key for row in REFUSED}
    assert {row.api_key for row in HANDLERS} - known == set()
    assert [row.api_key.name for row in HANDLERS if not row.checks_access] == []


def test_what_is_hidden(tmp_path: Path) -> None:
    asyncio.run(_what_is_hidden(tmp_path))


async def _what_is_hidden(tmp_path: Path) -> None:
    """Lists leave out what the client may not describe, and an id tells nobody its name."""
    async with secured(tmp_path) as calls:
        for topic in (TOPIC_NAME, OTHER_TOPIC):
            topic_id = await calls.make_topic(topic)
        by_name = {row.name: row for row in rows()}
        grant(calls, [right(Operation.DESCRIBE, TOPIC)])
        for name in ("metadata, all", "describe topic partitions, all"):
            response = await ask(calls, by_name[name].request)
            assert [each.name for each in response.topics] == [TOPIC_NAME], name
        by_id = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(topic_id=topic_id, name=None)])
        [found] = (await ask(calls, by_id)).topics
        assert (found.error_code, found.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        deleted = delete_topics.DeleteTopicsRequest(
            topics=[delete_topics.DeleteTopicState(name=None, topic_id=topic_id)], timeout_ms=1000
        )
        [gone] = (await ask(calls, deleted)).responses
        assert (gone.error_code, gone.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        grant(calls, [right(Operation.DESCRIBE, TOPIC, OTHER_TOPIC)])
        [gone] = (await ask(calls, deleted)).responses
        assert (gone.error_code, gone.name) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, OTHER_TOPIC)
        grant(calls, [right(Operation.DELETE, TOPIC, OTHER_TOPIC)])
        [gone] = (await ask(calls, deleted)).responses
        assert (gone.error_code, gone.name) == (ErrorCode.NONE, OTHER_TOPIC)


def test_a_created_topic_shows_its_settings_to_those_who_may_see_them(tmp_path: Path) -> None:
    asyncio.run(_created_settings(tmp_path))


async def _created_settings(tmp_path: Path) -> None:
    async with secured(tmp_path) as calls:
        request = next(row.request for row in rows() if row.name == "create topics")
        may_create, may_see = right(Operation.CREATE, TOPIC, "new"), right(Operation.DESCRIBE_CONFIGS, TOPIC, "new")
        grant(calls, [may_create])
        [blind] = (await ask(calls, request)).topics
        grant(calls, [may_create, may_see])
        [seen] = (await ask(calls, request)).topics
        assert (blind.topic_config_error_code, blind.configs) == (ErrorCode.TOPIC_AUTHORIZATION_FAILED, None)
        assert (blind.num_partitions, seen.num_partitions, seen.topic_config_error_code) == (-1, 1, ErrorCode.NONE)
        assert seen.configs


def test_authorized_operations(tmp_path: Path) -> None:
    asyncio.run(_authorized_operations(tmp_path))


async def _authorized_operations(tmp_path: Path) -> None:
    """KIP-430: what the client may do; nothing of the cluster for somebody who may not describe it."""
    async with secured(tmp_path) as calls:
        await calls.make_topic(TOPIC_NAME)
        topics = [metadata.MetadataRequestTopic(name=TOPIC_NAME), metadata.MetadataRequestTopic(name=OTHER_TOPIC)]
        asked = metadata.MetadataRequest(
            topics=topics, allow_auto_topic_creation=False, include_topic_authorized_operations=True
        )
        whole = metadata.MetadataRequest(
            topics=[], include_cluster_authorized_operations=True, allow_auto_topic_creation=False
        )
        cluster = describe_cluster.DescribeClusterRequest(include_cluster_authorized_operations=True)
        groups = describe_groups.DescribeGroupsRequest(groups=[GROUP_ID], include_authorized_operations=True)
        pages = next(row.request for row in rows() if row.name == "describe topic partitions")
        grant(calls, [right(Operation.READ, TOPIC), right(Operation.READ, GROUP)])
        await ask(calls, next(row.request for row in rows() if row.name == "find coordinator"))  # creates its topic
        read = bits(Operation.READ, Operation.DESCRIBE)
        known, hidden = (await ask(calls, asked)).topics
        assert (known.topic_authorized_operations, hidden.topic_authorized_operations) == (read, NOT_ASKED)
        assert (await ask(calls, pages)).topics[0].topic_authorized_operations == read
        assert (await ask(calls, groups, 5)).groups[0].authorized_operations == read
        assert (await ask(calls, whole, 10)).cluster_authorized_operations == 0
        assert (await ask(calls, cluster)).cluster_authorized_operations == 0
        grant(calls, [right(Operation.ALTER, CLUSTER), right(Operation.DELETE, GROUP)])
        assert (await ask(calls, groups, 5)).groups[0].authorized_operations == bits(
            Operation.DELETE, Operation.DESCRIBE
        )
        altering = bits(Operation.ALTER, Operation.DESCRIBE)
        assert (await ask(calls, whole, 10)).cluster_authorized_operations == altering
        assert (await ask(calls, cluster)).cluster_authorized_operations == altering


def bits(*operations: Operation) -> int:
    return sum(1 << each for each in operations)


def test_one_topic_of_several_is_denied(tmp_path: Path) -> None:
    asyncio.run(_one_of_several(tmp_path))


async def _one_of_several(tmp_path: Path) -> None:
    """The outcomes keep the order of the request; by topic id as by name; without acknowledgement it closes."""
    async with secured(tmp_path) as calls:
        ids = [await calls.make_topic(topic) for topic in (TOPIC_NAME, OTHER_TOPIC)]
        grant(calls, [right(Operation.WRITE, TOPIC, OTHER_TOPIC)])
        for version, names in ((12, (TOPIC_NAME, OTHER_TOPIC)), (13, ids)):
            response = await ask(calls, _to_both(names, acks=-1), version)
            codes = [part.error_code for topic in response.responses for part in topic.partition_responses]
            assert codes == [ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.NONE], version
        with pytest.raises(ProtocolError):
            await ask(calls, _to_both((TOPIC_NAME, OTHER_TOPIC), acks=0), 12)
        assert calls.broker.replicas.find(OTHER_TOPIC, 0).log.log_end_offset == 3
        assert calls.broker.replicas.find(TOPIC_NAME, 0).log.log_end_offset == 0


def _to_both(names: Iterable[str | bytes], acks: int) -> produce.ProduceRequest:
    topics = []
    for name in names:
        data = produce.TopicProduceData(
            partition_data=[produce.PartitionProduceData(index=0, records=PLAIN_BATCH)],
            **({"topic_id": name} if isinstance(name, bytes) else {"name": name}),
        )
        topics.append(data)
    return produce.ProduceRequest(acks=acks, timeout_ms=5000, topic_data=topics)
