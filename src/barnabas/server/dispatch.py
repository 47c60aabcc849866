"""From a frame to its handler and back: the one table that every request goes through.

`net.Connection` calls `Dispatcher.on_request` with a frame; the header is decoded, the row for its API looked up, the
version checked, and the row's function called. What a handler is:

- one file `handlers/<api>.py`, named like its message file, ending in `HANDLER = Handler(...)`;
- a plain function `handle(context, request) -> response | Awaitable[response]`, where request and response are messages
  of `protocol/messages/<api>.py`. It answers at once wherever it can; for a future or coroutine the reply waits
  behind the earlier ones of its connection. `context` is a `RequestContext`; `context.broker` is the broker
  (`.cluster`, `.replicas`, `.config`, `.clock`, ...);
- Produce uses `handle_frame(context, frame, position)` instead: it decodes and encodes by hand, because there is one
  for every few records, and returns what a connection takes (bytes, parts, None or a PendingReply);
- a handler's `try_frame(broker, connection, frame)` may answer its commonest request at once, without a context or a
  look at the table (Produce, Heartbeat); None means that nothing has happened and that the usual way is to be taken.

A frame is only valid until the call returns: whatever outlives it must have been copied (the compiled codecs copy
strings and bytes; only `records` fields are views).

Errors: a request that breaks the protocol raises ProtocolError, which closes the connection, as Kafka does for an
unknown API or version. ApiVersions is the exception: a version that is too high gets the v0 answer with
UNSUPPORTED_VERSION and the list, so that a newer client can step down.
"""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, cast

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.connection import Connection
from barnabas.net.reply import Parts, PendingReply
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.protocol.headers import RequestHeader, decode_request_header, encode_response, encode_response_parts

if TYPE_CHECKING:
    from barnabas.server.broker import Broker

logger = logging.getLogger(__name__)

Reply = bytes | Parts | PendingReply | None


class RequestContext:
    """Who asks, with which version, of which broker. Lives as long as its request."""

    __slots__ = ("broker", "connection", "header")

    def __init__(self, broker: "Broker", connection: Connection, header: RequestHeader) -> None:
        self.broker = broker
        self.connection = connection
        self.header = header

    @property
    def version(self) -> int:
        return self.header.api_version


HandleMessage = Callable[[RequestContext, Any], Any]
HandleFrame = Callable[[RequestContext, memoryview, int], Reply]
FailMessage = Callable[[RequestContext, Any, ErrorCode], Any]
TryFrame = Callable[["Broker", Connection, memoryview], bytes | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Handler:
    """One row of the table.

    `fail` builds the answer in which every part of the request failed with one code; request faults for tests use it.
    `advertised_min_version` differs from `min_version` only for Produce, which Kafka lists from 0 for librdkafka.
    """

    api_key: ApiKey
    min_version: int
    max_version: int
    request: type[Any]
    handle: HandleMessage | None = None
    handle_frame: HandleFrame | None = None
    try_frame: TryFrame | None = None
    fail: FailMessage | None = None
    carries_records: bool = False
    advertised_min_version: int | None = None


@dataclass(frozen=True, slots=True)
class LongPoll:
    """An answer that is only waited for. `hurry` ends the waiting, when the client sends no more or is gone."""

    answer: "asyncio.Future[Any]"
    hurry: Callable[[], None]


def encode_answer(context: RequestContext, row: Handler, answer: Any) -> bytes | Parts:
    header = context.header
    if row.carries_records:
        return cast(Parts, encode_response_parts(answer, header.api_version, header.correlation_id))
    return encode_response(answer, header.api_version, header.correlation_id)


def _leave_alone(broker: "Broker", connection: Connection, frame: memoryview) -> None:
    """For a table without that API."""


class Dispatcher:
    """Owns nothing but the table; all state is the broker's."""

    def __init__(self, broker: "Broker", handlers: Sequence[Handler]) -> None:
        self._broker = broker
        self.table: Mapping[int, Handler] = {int(handler.api_key): handler for handler in handlers}
        self._working: set[asyncio.Future[Any]] = set()
        self._try_produce = self._try_frame_of(ApiKey.PRODUCE)
        self._try_heartbeat = self._try_frame_of(ApiKey.HEARTBEAT)

    def _try_frame_of(self, api_key: ApiKey) -> TryFrame:
        row = self.table.get(api_key)
        return row.try_frame if row is not None and row.try_frame is not None else _leave_alone

    def on_request(self, connection: Connection, frame: memoryview) -> Reply:
        broker = self._broker
        if not broker.request_faults.armed:
            if (answer := self._try_produce(broker, connection, frame)) is not None:
                return answer
            if (answer := self._try_heartbeat(broker, connection, frame)) is not None:
                return answer
        header = decode_request_header(frame)
        row = self.table.get(header.api_key)
        if row is None:
            raise ProtocolError(f"unknown API key {header.api_key}")
        context = RequestContext(broker, connection, header)
        if not row.min_version <= header.api_version <= row.max_version:
            return self._answer_unsupported_version(context, row)
        if broker.request_faults.armed:
            fault = broker.request_faults.take(row.api_key)
            if fault is not None:
                return broker.request_faults.carry_out(fault, context, row, frame, self.process)
        if row.handle_frame is not None:
            return row.handle_frame(context, frame, header.body_position)
        return self.process(context, row, frame)

    def process(self, context: RequestContext, row: Handler, frame: memoryview) -> Reply:
        header = context.header
        if row.handle_frame is not None:
            return row.handle_frame(context, frame, header.body_position)
        request, _ = decode(row.request, header.api_version, frame, header.body_position)
        assert row.handle is not None
        answer = row.handle(context, request)
        if type(answer) is LongPoll:
            return self._answer_later(context, row, answer.answer, answer.hurry)
        if hasattr(answer, "__await__"):  # isinstance(answer, Awaitable) takes as long as the whole decoding
            return self._answer_later(context, row, answer)
        return encode_answer(context, row, answer)

    def on_closed(self, connection: Connection) -> None:
        """Nothing is kept by connection: fetch sessions outlive it, parked requests run into their time-out."""

    def watch(self, work: Coroutine[Any, Any, None]) -> None:
        """Runs what a handler goes on with after it has returned a PendingReply."""
        task = asyncio.get_running_loop().create_task(work)
        self._working.add(task)
        task.add_done_callback(self._on_watched)

    async def drain(self) -> None:
        """Waits for the answers that are still being worked out (used when the broker stops)."""
        if self._working:
            await asyncio.wait(self._working, timeout=5)

    def _answer_later(
        self,
        context: RequestContext,
        row: Handler,
        answer: Awaitable[Any],
        hurry: Callable[[], None] | None = None,
    ) -> PendingReply:
        future = asyncio.ensure_future(answer)
        pending = PendingReply(on_abandoned=hurry)
        pending.on_input_ended = hurry
        self._working.add(future)
        future.add_done_callback(lambda done: self._complete(context, row, done, pending))
        return pending

    def _on_watched(self, done: "asyncio.Future[Any]") -> None:
        self._working.discard(done)
        if not done.cancelled() and (error := done.exception()) is not None:
            logger.error("a request failed", exc_info=error)

    def _complete(
        self, context: RequestContext, row: Handler, done: "asyncio.Future[Any]", pending: PendingReply
    ) -> None:
        self._working.discard(done)
        if done.cancelled():
            pending.fail()
        elif (error := done.exception()) is not None:
            logger.error("%s v%d failed; closing its connection", row.api_key.name, context.version, exc_info=error)
            pending.fail()
        else:
            try:
                parts = encode_answer(context, row, done.result())
            except Exception:
                logger.exception(
                    "%s v%d has no encodable answer; closing its connection", row.api_key.name, context.version
                )
                pending.fail()
            else:
                pending.complete([parts] if isinstance(parts, bytes) else parts)

    def _answer_unsupported_version(self, context: RequestContext, row: Handler) -> Reply:
        header = context.header
        if row.api_key is not ApiKey.API_VERSIONS:
            raise ProtocolError(f"{row.api_key.name} v{header.api_version} is not supported")
        assert row.fail is not None
        answer = row.fail(context, None, ErrorCode.UNSUPPORTED_VERSION)
        return encode_response(answer, 0, header.correlation_id)
