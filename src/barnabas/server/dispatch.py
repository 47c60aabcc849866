"""From a frame to its handler and back: the one table that every request goes through.

`net.Connection` calls `Dispatcher.on_request` with a frame; the header is decoded, the row for its API looked up, the
version checked, the request decoded, the row's function called and its response encoded. What a handler is:

- one file `handlers/<api>.py`, named like its message file, ending in `HANDLER = Handler(...)`;
- a plain function `handle(context, request) -> Response | Deferred[Response]`. It responds at once wherever it can; a
  `Deferred` keeps its place behind the earlier responses of its connection. A coroutine becomes a Deferred by
  `context.run`, work that can be long by `context.in_slices`. A response of None means that none is sent (acks 0);
- `decode` and `encode` replace the compiled codecs of its messages: Produce has a codec of its own, because there is
  one request for every few records, and Fetch leaves records in their files.

The one door for fast paths is `try_frame(broker, connection, frame)`: it may respond to the commonest request of its
API (Produce, Heartbeat) before the header is decoded. It skips the RequestContext and with it authorization, quotas and
accounting, the table and its version check; so it must itself know that the request would pass all of them, and must
return None, with nothing done, for anything else. It is not used on a broker with request faults armed or with an
authorizer, nor for a client that has a quota.

A frame is only valid until the call returns: whatever outlives it must have been copied (the compiled codecs copy
strings and bytes; only `records` fields are views). Work that goes on in later slices has only what was decoded.

A frame over `LARGE_FRAME_BYTES` is copied and decoded in slices, and the response to any request that took more than
one slice is encoded in slices. The connection reads nothing further meanwhile (`RequestContext.in_slices`).

Errors: a request that breaks the protocol raises ProtocolError, which closes the connection, as Kafka does for an
unknown API or version. ApiVersions is the exception: a version that is too high gets the v0 response with
UNSUPPORTED_VERSION and the list, so that a newer client can step down.
"""

import asyncio
import logging
from collections.abc import Callable, Coroutine, Generator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from barnabas.errors import ErrorCode, KafkaError, ProtocolError
from barnabas.net.connection import Connection
from barnabas.net.deferred import Deferred, then
from barnabas.net.reply import Parts
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode, decode_in_slices
from barnabas.protocol.headers import (
    decode_request_header,
    decode_response_header,
    encode_response,
    encode_response_in_slices,
)
from barnabas.protocol.message_types import response_type
from barnabas.protocol.primitives import GatherBuffer
from barnabas.protocol.produce_request import LongRequestError
from barnabas.protocol.produce_response import PartitionFailure
from barnabas.server.client_quotas import Limits
from barnabas.server.metrics.requests import SAMPLE, RequestMeters, error_codes, now_ns
from barnabas.server.request import CLUSTER, Operation, Quota, RequestContext, principal_of
from barnabas.server.slices import Slices

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)

T = TypeVar("T")
Request = TypeVar("Request")
Response = TypeVar("Response")
Reply = bytes | Parts | Deferred[Parts] | None
"""What a connection takes: a whole response, one that comes later, or none."""
TryFrame = Callable[["Broker", Connection, memoryview], bytes | None]

EXEMPT = frozenset(
    (
        ApiKey.ALTER_PARTITION,
        ApiKey.ALLOCATE_PRODUCER_IDS,
        ApiKey.CONTROLLED_SHUTDOWN,
        ApiKey.ENVELOPE,
        ApiKey.SASL_AUTHENTICATE,
        ApiKey.SASL_HANDSHAKE,
        ApiKey.WRITE_TXN_MARKERS,
    )
)
"""What brokers send each other, and logins, are never throttled; followers' fetches neither (`handlers/fetch`)."""
SIZE_PREFIX = 4

LARGE_FRAME_BYTES = 32 * 1024
"""Below it, decoding takes a few milliseconds whatever the frame holds."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler(Generic[Request, Response]):
    """One row of the table.

    `fail` builds the response in which every part of the request failed with one code; request faults for tests use it.
    `advertised_min_version` differs from `min_version` only for Produce, which Kafka lists from 0 for librdkafka.
    `on_unsupported_version` builds the response to a version that is too high; without it the connection is closed.
    """

    api_key: ApiKey
    min_version: int
    max_version: int
    request: type[Any]
    """The message as it is declared in `protocol/messages`."""
    handle: Callable[[RequestContext, Request], Response | Deferred[Response]]
    fail: Callable[[RequestContext, Request, ErrorCode], Response]
    decode: Callable[[memoryview, int, int], Request] | None = None
    """(frame, position, version) -> request"""
    decode_in_slices: Callable[[bytes, int, int], Generator[None, None, Request]] | None = None
    """The same where `decode` raises LongRequestError, from a copy of the frame."""
    encode: Callable[[Response, int, int], bytes | Parts] = encode_response
    """(response, version, correlation id) -> the whole frame"""
    encodes_message: bool = True
    """Whether the response is a message of the compiled codecs, which can be encoded in slices."""
    message_in_slices: Callable[[Response], Generator[None, None, Any]] | None = None
    """Where it is not: makes it one, to encode the response to a long request."""
    try_frame: TryFrame | None = None
    on_unsupported_version: Callable[[RequestContext], Response] | None = None
    advertised_min_version: int | None = None
    is_advertised: bool = True
    """Whether ApiVersions lists it; requests that only brokers send to each other are not listed."""
    needs_metrics: bool = False
    """Listed only by brokers that serve `/metrics`, which shows what clients push."""
    forwards: bool = False
    """Only the controller can carry it out: any other broker passes it on (`forwarding.py`)."""
    checks_access: bool = False
    """Whether `handle` asks `context.may`. Where it does not, an authorizer leaves the request to super users."""
    before_forwarding: Callable[[RequestContext, Request], Response | Deferred[Response] | None] | None = None
    """What has to be refused by the broker that received it; None: pass it on."""


AnyHandler = Handler[Any, Any]


def decode_body(context: RequestContext, row: Handler[Request, Response], frame: memoryview) -> Request:
    header = context.header
    if row.decode is not None:
        return row.decode(frame, header.body_position, header.api_version)
    request: Request = decode(row.request, header.api_version, frame, header.body_position)[0]
    return request


def _leave_alone(broker: "Broker", connection: Connection, frame: memoryview) -> None:
    """For a table without that API."""


class Dispatcher:
    """Owns the table and the work that is under way; all other state is the broker's."""

    def __init__(self, broker: "Broker", handlers: Sequence[AnyHandler]) -> None:
        self._broker = broker
        self.table: Mapping[int, AnyHandler] = {int(handler.api_key): handler for handler in handlers}
        self.slices = Slices(broker.clock)
        self._working: set[asyncio.Task[Any]] = set()
        self.meters = RequestMeters(handler.api_key for handler in handlers)
        self._produce_meter = self.meters.produce
        self._heartbeat_meter = self.meters.heartbeat
        self._try_produce = self._try_frame_of(ApiKey.PRODUCE)
        self._try_heartbeat = self._try_frame_of(ApiKey.HEARTBEAT)

    def _try_frame_of(self, api_key: ApiKey) -> TryFrame:
        row = self.table.get(api_key)
        return row.try_frame if row is not None and row.try_frame is not None else _leave_alone

    def on_request(self, connection: Connection, frame: memoryview) -> Reply:
        broker = self._broker
        started_ns = now_ns()
        limits = self._limits_of(connection, frame) if broker.client_quotas.enabled else None
        if limits is None and not broker.request_faults.armed and broker.authorizer is None:
            if (answer := self._try_produce(broker, connection, frame)) is not None:
                meter = self._produce_meter
                meter.count += 1
                if not meter.count % SAMPLE:
                    meter.local.add(now_ns() - started_ns, SAMPLE)
                return answer
            if (answer := self._try_heartbeat(broker, connection, frame)) is not None:
                meter = self._heartbeat_meter
                meter.count += 1
                if not meter.count % SAMPLE:
                    meter.local.add(now_ns() - started_ns, SAMPLE)
                return answer
        header = decode_request_header(frame)
        row = self.table.get(header.api_key)
        if row is None:
            raise ProtocolError(f"unknown API key {header.api_key}")
        context = RequestContext(broker, connection, header)
        context.started_ns = started_ns
        context.meter = self.meters.of(header.api_key)
        if limits is not None and row.api_key not in EXEMPT:
            context.limits = limits
            if limits.request_time is not None:
                context.started = broker.client_quotas.stopwatch()
        if not row.min_version <= header.api_version <= row.max_version:
            return _refuse_version(context, row)
        if broker.request_faults.armed:
            fault = broker.request_faults.take(row.api_key)
            if fault is not None:
                return broker.request_faults.carry_out(fault, context, row, frame, self.process)
        reply = self.process(context, row, frame)
        context.handled_ns = now_ns()
        context.meter.count += 1  # a fetch may have found that it is a follower's
        waits = isinstance(reply, Deferred) and not reply.done
        (context.meter.local_of_waiting if waits else context.meter.local).add(context.handled_ns - started_ns)
        return reply

    def _limits_of(self, connection: Connection, frame: memoryview) -> Limits | None:
        header = decode_request_header(frame)
        return self._broker.client_quotas.find(principal_of(connection).name, header.client_id or "")

    def process(self, context: RequestContext, row: Handler[Request, Response], frame: memoryview) -> Reply:
        if not row.checks_access and not context.is_super_user:
            return self._refuse_access(context, row, frame)
        if row.forwards and not self._broker.cluster.is_controller:
            return self._forward(context, row, frame)
        if len(frame) > LARGE_FRAME_BYTES and row.decode is None:
            response = then(self._decode_large(context, row, frame), partial(row.handle, context))
        else:
            try:
                response = row.handle(context, decode_body(context, row, frame))
            except LongRequestError:  # of the decoder
                response = then(self._decode_large(context, row, frame), partial(row.handle, context))
        if isinstance(response, Deferred):
            return self._encode_later(context, row, response, len(frame))
        if context.limits is not None:
            _charge(context, row, response, len(frame))
        if response is None:
            return None
        _count_errors(context, row, response)
        header = context.header
        return row.encode(response, header.api_version, header.correlation_id)

    def _refuse_access(self, context: RequestContext, row: Handler[Request, Response], frame: memoryview) -> Reply:
        """Denied as a whole, and in the audit log as if it had asked for cluster rights."""
        context.may(Operation.CLUSTER_ACTION, CLUSTER)
        refused = ProtocolError(f"{context.principal} may not send {row.api_key.name}")
        if len(frame) > LARGE_FRAME_BYTES:
            raise refused
        try:
            request = decode_body(context, row, frame)
        except LongRequestError:
            raise refused from None
        if getattr(request, "acks", 1) == 0:
            raise refused  # no response is read
        response = row.fail(context, request, ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
        return row.encode(response, context.header.api_version, context.header.correlation_id)

    def _forward(self, context: RequestContext, row: Handler[Request, Response], frame: memoryview) -> Deferred[Parts]:
        """Decoded here as well: a request that breaks the protocol must not break the link to the controller."""
        copy = bytes(frame)
        is_large = len(frame) > LARGE_FRAME_BYTES
        request = self._decode_large(context, row, frame) if is_large else decode_body(context, row, frame)

        def forward(request: Request) -> Deferred[Parts]:
            return self.run(self._forward_decoded(context, row, request, copy))

        parts: Deferred[Parts] = request.then(forward) if isinstance(request, Deferred) else forward(request)
        context.park(parts, len(frame))
        return parts

    async def _forward_decoded(
        self, context: RequestContext, row: Handler[Request, Response], request: Request, frame: bytes
    ) -> Parts:
        try:
            response = None if row.before_forwarding is None else row.before_forwarding(context, request)
            if response is None:
                timeout_ms = getattr(request, "timeout_ms", self._broker.config.request_timeout_ms)
                forwarded = await self._broker.forwarding.forward(context, frame, timeout_ms)
                if forwarded is not None:
                    return [forwarded if context.limits is None else _take_over_throttle(context, forwarded)]
                response = row.handle(context, request)  # this broker has become controller
            if isinstance(response, Deferred):
                response = await response
        except KafkaError as error:
            response = row.fail(context, request, error.code)
        if context.limits is not None:
            _charge(context, row, response, len(frame))
        encoded = row.encode(response, context.header.api_version, context.header.correlation_id)
        return [encoded] if isinstance(encoded, bytes) else encoded

    def _decode_large(
        self, context: RequestContext, row: Handler[Request, Response], frame: memoryview
    ) -> Request | Deferred[Request]:
        header = context.header
        copy = bytes(frame)
        if row.decode_in_slices is not None:
            return context.in_slices(row.decode_in_slices(copy, header.body_position, header.api_version))

        def work() -> Generator[None, None, Request]:
            message = decode_in_slices(row.request, header.api_version, copy, header.body_position)
            request: Request = (yield from message)[0]
            return request

        return context.in_slices(work())

    def on_closed(self, connection: Connection) -> None:
        """Only a client's own metrics go with it: fetch sessions outlive it, parked requests time out."""
        self._broker.client_metrics.on_closed(connection)

    def run(self, work: Coroutine[Any, Any, T]) -> Deferred[T]:
        """The response of a coroutine. It runs to its end even if the connection goes first."""
        response: Deferred[T] = Deferred()
        task = asyncio.get_running_loop().create_task(work)
        self._working.add(task)

        def on_done(task: "asyncio.Task[T]") -> None:
            self._working.discard(task)
            if task.cancelled():
                response.fail()
            elif (error := task.exception()) is not None:
                if response.abandoned:
                    logger.error("a request failed after its connection was gone", exc_info=error)
                response.fail(error)
            else:
                response.complete(task.result())

        task.add_done_callback(on_done)
        return response

    async def drain(self) -> None:
        """Waits for the coroutines that still work on a response (used when the broker stops)."""
        if self._working:
            await asyncio.wait(self._working, timeout=5)

    def _encode_later(
        self,
        context: RequestContext,
        row: Handler[Request, Response],
        response: Deferred[Response],
        frame_bytes: int,
    ) -> Deferred[Parts]:
        header = context.header

        def encode(response: Response) -> Parts | Deferred[Parts]:
            _count_wait(context)
            if context.limits is not None:
                _charge(context, row, response, frame_bytes)
            if response is None:
                return []
            _count_errors(context, row, response)
            if context.is_long and (row.encodes_message or row.message_in_slices is not None):
                return context.in_slices(_encode_in_slices(context, response, row.message_in_slices))
            encoded = row.encode(response, header.api_version, header.correlation_id)
            return [encoded] if isinstance(encoded, bytes) else encoded

        encoded = response.then(encode)
        context.park(encoded, frame_bytes)
        return encoded


def _count_wait(context: RequestContext) -> None:
    if context.meter is not None and context.handled_ns:
        finished_ns = now_ns()
        context.meter.remote.add(finished_ns - context.handled_ns)
        context.meter.waited.add(finished_ns - context.started_ns)


def _count_errors(context: RequestContext, row: AnyHandler, response: Any) -> None:
    if context.meter is not None:
        if row.encodes_message:
            context.meter.on_errors(error_codes(response))
        else:
            context.meter.on_errors(each.error for each in response if isinstance(each, PartitionFailure))


def _charge(context: RequestContext, row: AnyHandler, response: Any, frame_bytes: int) -> None:
    """Count what the request has used; a client over its quota is told so in the response, and not read for so long."""
    if row.api_key == ApiKey.PRODUCE:
        context.charge(Quota.PRODUCE_BYTES, frame_bytes)
    if response is not None:  # as in Kafka, acks 0 pays for its bytes only
        context.charge_time()
    throttle_ms = context.throttle_ms
    if throttle_ms:
        if hasattr(response, "throttle_time_ms"):
            response.throttle_time_ms = throttle_ms
        if context.origin is None:
            context.connection.throttle(throttle_ms)


def _take_over_throttle(context: RequestContext, frame: bytes) -> bytes:
    """The controller has counted what it changed; the client's connection, though, is here."""
    header = context.header
    kind = response_type(ApiKey(header.api_key))  # type: ignore[call-arg]
    body = memoryview(frame)[SIZE_PREFIX:]
    response = decode(kind, header.api_version, body, decode_response_header(kind, header.api_version, body)[1])[0]
    context.charge_time()
    throttle_ms = max(context.throttle_ms, getattr(response, "throttle_time_ms", 0))
    if not throttle_ms:
        return frame
    context.connection.throttle(throttle_ms)
    response.throttle_time_ms = throttle_ms
    return encode_response(response, header.api_version, header.correlation_id)


def _encode_in_slices(
    context: RequestContext, response: Any, as_message: Callable[[Any], Generator[None, None, Any]] | None
) -> Generator[None, None, Parts]:
    header = context.header
    if as_message is not None:
        response = yield from as_message(response)
    out = GatherBuffer()
    work = encode_response_in_slices(out, response, header.api_version, header.correlation_id)
    while True:
        try:
            next(work)
        except StopIteration as end:
            return cast(Parts, end.value)
        context.check_response_size(len(out))
        yield


def _refuse_version(context: RequestContext, row: AnyHandler) -> bytes:
    header = context.header
    if row.on_unsupported_version is None:
        raise ProtocolError(f"{row.api_key.name} v{header.api_version} is not supported")
    return encode_response(row.on_unsupported_version(context), 0, header.correlation_id)
