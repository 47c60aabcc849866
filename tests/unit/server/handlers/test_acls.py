"""CreateAcls, DescribeAcls, DeleteAcls; and the door that every handler stands behind once there is an authorizer."""

import asyncio
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.api import ApiKey
from barnabas.protocol.headers import decode_request_header, encode_request
from barnabas.protocol.message_types import request_type
from barnabas.protocol.messages.create_acls import AclCreation, CreateAclsRequest
from barnabas.protocol.messages.delete_acls import DeleteAclsFilter, DeleteAclsRequest
from barnabas.protocol.messages.describe_acls import DescribeAclsRequest
from barnabas.server.handlers import HANDLERS
from barnabas.server.request import Origin, Principal, RequestContext

STANDARD = "org.apache.kafka.metadata.authorizer.StandardAuthorizer"
ANY, LITERAL, ALLOW = 1, 3, 3
TOPIC, CLUSTER_TYPE = 2, 4
READ, ALTER = 3, 7


def secured(directory: Path, super_users: str = "User:ANONYMOUS") -> HandlerCalls:
    return HandlerCalls(directory, authorizer_class_name=STANDARD, super_users=super_users)


def creation(name: str = "orders", principal: str = "User:alice", operation: int = READ) -> AclCreation:
    kind = CLUSTER_TYPE if name == "kafka-cluster" else TOPIC
    return AclCreation(
        resource_type=kind,
        resource_name=name,
        principal=principal,
        host="*",
        operation=operation,
        permission_type=ALLOW,
    )


def everything() -> DescribeAclsRequest:
    return DescribeAclsRequest(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=None,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def filter_on(principal: str) -> DeleteAclsFilter:
    return DeleteAclsFilter(
        resource_type_filter=ANY,
        resource_name_filter=None,
        pattern_type_filter=ANY,
        principal_filter=principal,
        host_filter=None,
        operation=ANY,
        permission_type=ANY,
    )


def test_created_described_deleted(tmp_path: Path) -> None:
    asyncio.run(_created_described_deleted(tmp_path))


async def _created_described_deleted(tmp_path: Path) -> None:
    async with secured(tmp_path) as calls:
        for version in calls.versions(CreateAclsRequest):
            name = f"topic-{version}"
            wrong = creation(name, principal="alice")
            made = await calls.call(CreateAclsRequest(creations=[creation(name), wrong]), version)
            assert [each.error_code for each in made.results] == [ErrorCode.NONE, ErrorCode.INVALID_REQUEST]
            seen = await calls.call(everything(), version)
            assert seen.error_code == ErrorCode.NONE
            [resource] = seen.resources
            assert (resource.resource_type, resource.resource_name, resource.pattern_type) == (TOPIC, name, LITERAL)
            [acl] = resource.acls
            assert (acl.principal, acl.host, acl.operation, acl.permission_type) == ("User:alice", "*", READ, ALLOW)
            gone = await calls.call(DeleteAclsRequest(filters=[filter_on("User:b"), filter_on("User:alice")]), version)
            assert [len(each.matching_acls) for each in gone.filter_results] == [0, 1]
            assert gone.filter_results[1].matching_acls[0].resource_name == name
            assert not (await calls.call(everything(), version)).resources


def test_without_an_authorizer(tmp_path: Path) -> None:
    asyncio.run(_without_an_authorizer(tmp_path))


async def _without_an_authorizer(tmp_path: Path) -> None:
    async with HandlerCalls(tmp_path) as calls:
        assert (await calls.call(everything())).error_code == ErrorCode.SECURITY_DISABLED
        made = await calls.call(CreateAclsRequest(creations=[creation()]))
        gone = await calls.call(DeleteAclsRequest(filters=[filter_on("User:a")]))
        codes = [made.results[0].error_code, gone.filter_results[0].error_code]
        assert codes == [ErrorCode.SECURITY_DISABLED] * 2 and not calls.broker.cluster.image.acls


def test_only_with_cluster_rights(tmp_path: Path) -> None:
    asyncio.run(_only_with_cluster_rights(tmp_path))


async def _only_with_cluster_rights(tmp_path: Path) -> None:
    async with secured(tmp_path, "User:root") as calls:
        assert (await calls.call(everything())).error_code == ErrorCode.CLUSTER_AUTHORIZATION_FAILED
        made = await calls.call(CreateAclsRequest(creations=[creation()]))
        gone = await calls.call(DeleteAclsRequest(filters=[filter_on("User:a")]))
        codes = [made.results[0].error_code, gone.filter_results[0].error_code]
        assert codes == [ErrorCode.CLUSTER_AUTHORIZATION_FAILED] * 2 and not calls.broker.cluster.image.acls
        as_root = calls.context(ApiKey.CREATE_ACLS, 3)
        as_root.origin = Origin(Principal("User", "root"), "10.0.0.1")
        allowed = CreateAclsRequest(creations=[creation("kafka-cluster", "User:ANONYMOUS", ALTER)])
        await calls.broker.dispatcher.table[ApiKey.CREATE_ACLS].handle(as_root, allowed)
        assert (await calls.call(everything())).error_code == ErrorCode.NONE, "ALTER implies DESCRIBE"


def test_unknown_numbers_close_the_connection(tmp_path: Path) -> None:
    asyncio.run(_unknown_numbers_close_the_connection(tmp_path))


async def _unknown_numbers_close_the_connection(tmp_path: Path) -> None:
    async with secured(tmp_path) as calls:
        for request in (
            CreateAclsRequest(creations=[creation(operation=99)]),
            DeleteAclsRequest(filters=[DeleteAclsFilter(**{**_fields(filter_on("x")), "operation": 0})]),
        ):
            with pytest.raises(ProtocolError):
                calls.start(request)


def _fields(message: Any) -> dict[str, Any]:
    return {name: getattr(message, name) for name in message.__schema__.fields}


def test_a_handler_that_asks_nobody_is_for_super_users(tmp_path: Path) -> None:
    asyncio.run(_refused_to_others(tmp_path))


async def _refused_to_others(tmp_path: Path) -> None:
    async with secured(tmp_path, "User:root") as calls:
        for row in HANDLERS:
            context, ran = calls.context(row.api_key, row.max_version), []
            watched = replace(row, handle=lambda _, request, ran=ran: ran.append(request), checks_access=False)
            frame = _frame(row, context)
            try:
                reply = calls.broker.dispatcher.process(context, watched, frame)
            except ProtocolError:
                reply = b""  # a Produce without acknowledgement
            assert not ran and reply is not None, row.api_key
            context.origin = Origin(Principal("User", "root"), "10.0.0.1")
            calls.broker.dispatcher.process(context, watched, frame)
            assert ran, row.api_key


def _frame(row: Any, context: RequestContext) -> memoryview:
    """The request with every field at its default; the context gets its header."""
    frame = memoryview(encode_request(request_type(row.api_key)(), row.max_version, 7, "tester"))[4:]
    context.header = decode_request_header(frame)
    return frame
