"""Heartbeats as frames: the same bytes again and again, and whatever else may follow on that connection."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock

import pytest
from handler_calls import HandlerCalls

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.protocol.headers import encode_request, encode_response
from barnabas.protocol.messages.find_coordinator import FindCoordinatorRequest
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.protocol.messages.join_group import JoinGroupRequest, JoinGroupRequestProtocol
from barnabas.protocol.messages.leave_group import LeaveGroupRequest
from barnabas.protocol.messages.sync_group import SyncGroupRequest, SyncGroupRequestAssignment
from barnabas.server.handlers.heartbeat import REMEMBERED_BYTES, try_heartbeat

VERSIONS = range(5)


def run(directory: Path, scenario: Callable[[HandlerCalls, str], Awaitable[None]]) -> None:
    async def main() -> None:
        async with HandlerCalls(directory, group_initial_rebalance_delay_ms="0") as calls:
            protocols = [JoinGroupRequestProtocol(name="range", metadata=b"")]
            join = JoinGroupRequest(
                group_id="g",
                session_timeout_ms=10_000,
                rebalance_timeout_ms=10_000,
                protocol_type="consumer",
                protocols=protocols,
            )
            await calls.call(FindCoordinatorRequest(coordinator_keys=["g"]), 6)
            joined = await calls.call(join, 3)
            assert joined.error_code == 0
            member = joined.member_id
            share = SyncGroupRequestAssignment(member_id=member, assignment=b"all")
            sync = SyncGroupRequest(group_id="g", generation_id=1, member_id=member, assignments=[share])
            assert (await calls.call(sync, 3)).error_code == 0
            await scenario(calls, member)

    asyncio.run(main())


def beat(member: str, version: int, correlation_id: int, generation: int = 1, client_id: str = "tester") -> memoryview:
    request = HeartbeatRequest(group_id="g", generation_id=generation, member_id=member)
    return memoryview(encode_request(request, version, correlation_id, client_id))[4:]


def calm(version: int, correlation_id: int) -> bytes:
    return encode_response(HeartbeatResponse(error_code=ErrorCode.NONE), version, correlation_id)


@pytest.fixture
def connection() -> Any:
    return SimpleNamespace(repeated=None, rest=Mock())


def test_the_same_heartbeat_again_is_answered_as_the_first(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        for version in VERSIONS:
            for correlation_id in (7, 8, -2):
                answer = try_heartbeat(calls.broker, connection, beat(member, version, correlation_id))
                assert answer == calm(version, correlation_id)

    run(tmp_path, scenario)


def test_the_connection_rests_from_the_second_on(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        for correlation_id, rested in ((1, 0), (2, 1), (3, 2)):
            try_heartbeat(calls.broker, connection, beat(member, 4, correlation_id))
            assert connection.rest.call_count == rested
        try_heartbeat(calls.broker, connection, beat("somebody", 4, 4))
        assert connection.rest.call_count == 2

    run(tmp_path, scenario)


def test_it_keeps_the_member_alive(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        shard: Any = calls.broker.groups.runtime.shard_of("g")
        known = shard.machine.registry.get("g").members[member]
        for correlation_id in range(2):
            known.session_deadline_ms = 0
            try_heartbeat(calls.broker, connection, beat(member, 3, correlation_id))
            assert known.session_deadline_ms > 0

    run(tmp_path, scenario)


def test_who_has_to_be_told_something_is_left_to_the_usual_way(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        assert try_heartbeat(calls.broker, connection, beat(member, 3, 1)) == calm(3, 1)
        assert try_heartbeat(calls.broker, connection, beat(member, 3, 2, generation=0)) is None
        assert try_heartbeat(calls.broker, connection, beat("somebody", 3, 2)) is None
        assert try_heartbeat(calls.broker, connection, beat(member, 3, 3)) == calm(3, 3)
        assert (await calls.call(LeaveGroupRequest(group_id="g", member_id=member), 1)).error_code == 0
        assert try_heartbeat(calls.broker, connection, beat(member, 3, 4)) is None

    run(tmp_path, scenario)


@pytest.mark.parametrize(
    "frame",
    [
        b"",
        b"\x00\x0c",
        b"\x00\x0c\x00\x03\x00\x00\x00",
        bytes(beat("m", 3, 1)).replace(b"\x00\x0c", b"\x00\x0d", 1),
        bytes(beat("m", 3, 1)).replace(b"\x00\x0c", b"\x01\x0c", 1),
        bytes(beat("m", 3, 1)).replace(b"\x00\x0c\x00\x03", b"\x00\x0c\x00\x09", 1),
        bytes(beat("m", 3, 1)).replace(b"\x00\x0c\x00\x03", b"\x00\x0c\xff\xff", 1),
    ],
)
def test_other_frames_are_left_alone(tmp_path: Path, connection: Any, frame: bytes) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        assert try_heartbeat(calls.broker, connection, memoryview(frame)) is None
        assert connection.repeated is None

    run(tmp_path, scenario)


def test_a_heartbeat_that_is_cut_short_breaks_the_protocol(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        frame = beat(member, 3, 1)
        for end in range(8, len(frame)):
            with pytest.raises(ProtocolError):
                try_heartbeat(calls.broker, connection, frame[:end])

    run(tmp_path, scenario)


def test_a_connection_does_not_remember_what_is_long(tmp_path: Path, connection: Any) -> None:
    async def scenario(calls: HandlerCalls, member: str) -> None:
        frame = beat(member, 3, 1, client_id="c" * REMEMBERED_BYTES)
        assert try_heartbeat(calls.broker, connection, frame) is None
        assert connection.repeated is None

    run(tmp_path, scenario)
