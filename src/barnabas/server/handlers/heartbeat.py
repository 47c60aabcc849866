"""Heartbeat (key 12), v0-v4: a member of a classic group says that it is alive.

Served from the shard's memory; never written to the log. As in Kafka, a coordinator that still loads responds with
success: the member stays in the group, and its session starts again once loading is done. v3 static members (KIP-345).

A member's heartbeats are the same bytes each time but for the correlation id, and nearly all get the same response, so
the connection remembers the last one and `try_heartbeat` need not decode it again: thousands of members, each on a
connection of its own, mean a wake-up for each, and little else should come on top of that.
"""

from functools import partial
from typing import TYPE_CHECKING, Final, NamedTuple

from barnabas.errors import ErrorCode
from barnabas.machines.group.commands import Heartbeat
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import decode_request_header, encode_response
from barnabas.protocol.messages.heartbeat import HeartbeatRequest, HeartbeatResponse
from barnabas.server.dispatch import Handler
from barnabas.server.request import Operation, RequestContext, Resource

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

MAX_VERSION: Final = 4
REMEMBERED_BYTES: Final = 1024
"""A longer request is decoded each time: a connection must not hold much."""


def _ok_response(version: int) -> tuple[bytes, bytes]:
    """What stands before and after the correlation id in the response to a member that needs no news."""
    frame = encode_response(HeartbeatResponse(), version, 0)
    return frame[:4], frame[8:]


_OK_RESPONSES: Final = tuple(map(_ok_response, range(MAX_VERSION + 1)))


class Beat(NamedTuple):
    """The heartbeat that came last on a connection."""

    content: bytes
    """The frame without its correlation id."""
    version: int
    request: HeartbeatRequest


def try_heartbeat(broker: "Broker", connection: Connection, frame: memoryview) -> bytes | None:
    """A member that needs no news; anything else is left to `handle_heartbeat`."""
    if len(frame) < 8 or frame[1] != ApiKey.HEARTBEAT or frame[0]:
        return None
    content = bytes(frame[:4]) + frame[8:]
    beat: Beat | None = connection.repeated
    if beat is None or beat.content != content:
        beat = connection.repeated = _decode_beat(content, frame)
        if beat is None:
            return None
    else:
        connection.rest()
    if broker.groups.heartbeat(beat.request) is None:
        return None
    before, after = _OK_RESPONSES[beat.version]
    return before + bytes(frame[4:8]) + after


def _decode_beat(content: bytes, frame: memoryview) -> Beat | None:
    header = decode_request_header(frame)
    if not 0 <= header.api_version <= MAX_VERSION or len(content) > REMEMBERED_BYTES:
        return None
    request, _ = decode(HeartbeatRequest, header.api_version, frame, header.body_position)
    return Beat(content, header.api_version, request)


def handle_heartbeat(
    context: RequestContext, request: HeartbeatRequest
) -> HeartbeatResponse | Deferred[HeartbeatResponse]:
    if not context.may(Operation.READ, Resource.group(request.group_id)):
        return fail_heartbeat(context, request, ErrorCode.GROUP_AUTHORIZATION_FAILED)
    groups = context.broker.groups
    return groups.heartbeat(request) or groups.submit(
        request.group_id, Heartbeat(request, context.version), partial(_refuse, context, request)
    )


def _refuse(context: RequestContext, request: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    if error is ErrorCode.COORDINATOR_LOAD_IN_PROGRESS:
        error = ErrorCode.NONE
    return fail_heartbeat(context, request, error)


def fail_heartbeat(context: RequestContext, request: HeartbeatRequest, error: ErrorCode) -> HeartbeatResponse:
    return HeartbeatResponse(error_code=error)


HANDLER = Handler(
    api_key=ApiKey.HEARTBEAT,
    min_version=0,
    max_version=MAX_VERSION,
    request=HeartbeatRequest,
    handle=handle_heartbeat,
    try_frame=try_heartbeat,
    fail=fail_heartbeat,
    checks_access=True,
)
