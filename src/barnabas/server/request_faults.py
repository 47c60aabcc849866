"""Faults that a test puts in the way of requests: an error, a delay, a lost response, a closed connection.

Armed through `barnabas.testing.Broker.fault`. Without a fault the only cost is one attribute look-up a request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.deferred import Deferred
from barnabas.net.reply import Parts
from barnabas.protocol.api import ApiKey
from barnabas.protocol.produce_request import LongRequestError
from barnabas.server.dispatch import AnyHandler, Reply, decode_body
from barnabas.server.request import RequestContext

Process = Callable[[RequestContext, AnyHandler, memoryview], Reply]


@dataclass(slots=True)
class RequestFault:
    """What happens to the next `count` requests of an API (None: to all of them).

    `error`: not carried out, the response has that code. `delay_ms`: carried out, the response is late. `drop_answer`:
    carried out, but the connection closes instead of a response. `close`: not carried out, the connection closes.
    """

    api_key: ApiKey
    error: ErrorCode | None = None
    delay_ms: int = 0
    drop_answer: bool = False
    close: bool = False
    count: int | None = 1


class RequestFaults:
    def __init__(self) -> None:
        self._faults: list[RequestFault] = []
        self.armed = False

    def add(self, fault: RequestFault) -> None:
        self._faults.append(fault)
        self.armed = True

    def clear(self) -> None:
        self._faults.clear()
        self.armed = False

    def take(self, api_key: ApiKey) -> RequestFault | None:
        for fault in self._faults:
            if fault.api_key is api_key:
                if fault.count is not None:
                    fault.count -= 1
                    if fault.count <= 0:
                        self._faults.remove(fault)
                        self.armed = bool(self._faults)
                return fault
        return None

    def carry_out(
        self, fault: RequestFault, context: RequestContext, row: AnyHandler, frame: memoryview, process: Process
    ) -> Reply:
        if fault.close:
            raise ProtocolError(f"a fault closes the connection at {row.api_key.name}")
        if fault.error is not None:
            reply: Reply = _refuse(fault.error, context, row, frame)
        else:
            reply = process(context, row, frame)
        if fault.drop_answer:
            return _lost()
        if fault.delay_ms:
            return _later(reply, fault.delay_ms)
        return reply


def _refuse(error: ErrorCode, context: RequestContext, row: AnyHandler, frame: memoryview) -> bytes | Parts:
    try:
        response = row.fail(context, decode_body(context, row, frame), error)
    except LongRequestError:
        raise ProtocolError(f"a fault cannot refuse a {row.api_key.name} request with so many partitions") from None
    return row.encode(response, context.version, context.header.correlation_id)


def _lost() -> Deferred[Parts]:
    lost: Deferred[Parts] = Deferred()
    asyncio.get_running_loop().call_soon(lost.fail)
    return lost


def _later(reply: Reply, delay_ms: int) -> Deferred[Parts]:
    """Delays the response, from the moment when it is there."""
    delayed: Deferred[Parts] = Deferred()
    call_later = asyncio.get_running_loop().call_later

    def on_done(reply: Deferred[Parts]) -> None:
        if reply.failed:
            call_later(delay_ms / 1000, delayed.fail, reply.error)
        else:
            call_later(delay_ms / 1000, delayed.complete, reply.value)

    if not isinstance(reply, Deferred):
        ready: Deferred[Parts] = Deferred()
        ready.complete([reply] if isinstance(reply, bytes) else reply or [])
        reply = ready
    reply.when_done(on_done)
    return delayed
