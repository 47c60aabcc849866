"""Faults that a test puts in the way of requests: an error, a delay, a lost answer, a closed connection.

Armed through `barnabas.testing.Broker.fault`. Without a fault the only cost is one attribute look-up a request.
"""

import asyncio
from collections.abc import Callable
from dataclasses import dataclass

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.reply import Parts, PendingReply
from barnabas.protocol.api import ApiKey
from barnabas.protocol.compiler import decode
from barnabas.server.dispatch import Handler, Reply, RequestContext, encode_answer

Process = Callable[[RequestContext, Handler, memoryview], Reply]


@dataclass(slots=True)
class RequestFault:
    """What happens to the next `count` requests of an API (None: to all of them).

    `error`: not carried out, answered with that code. `delay_ms`: carried out and answered later. `drop_answer`:
    carried out, but the connection closes instead of an answer. `close`: not carried out, the connection closes.
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
        self, fault: RequestFault, context: RequestContext, row: Handler, frame: memoryview, process: Process
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


def _refuse(error: ErrorCode, context: RequestContext, row: Handler, frame: memoryview) -> Reply:
    if row.fail is None:
        raise ValueError(f"{row.api_key.name} has no answer to carry {error.name}")
    header = context.header
    request, _ = decode(row.request, header.api_version, frame, header.body_position)
    return encode_answer(context, row, row.fail(context, request, error))


def _lost() -> PendingReply:
    pending = PendingReply()
    asyncio.get_running_loop().call_soon(pending.fail)
    return pending


class _Delay:
    """Stands between a reply and its connection, and passes the answer on when the time has come."""

    def __init__(self, delay_ms: int) -> None:
        self.reply = PendingReply()
        self._delay_ms = delay_ms

    def on_reply_done(self, reply: PendingReply) -> None:
        self.start(reply.parts)

    def start(self, parts: Parts | None) -> None:
        loop = asyncio.get_running_loop()
        if parts is None:
            loop.call_later(self._delay_ms / 1000, self.reply.fail)
        else:
            loop.call_later(self._delay_ms / 1000, self.reply.complete, parts)


def _parts_of(reply: Reply) -> Parts | None:
    if isinstance(reply, PendingReply):
        return reply.parts
    return [reply] if isinstance(reply, bytes) else reply or []


def _later(reply: Reply, delay_ms: int) -> PendingReply:
    """Delays the answer, from the moment when it is there."""
    delay = _Delay(delay_ms)
    if isinstance(reply, PendingReply) and not reply.done:
        reply.attach(delay)
    else:
        delay.start(_parts_of(reply))
    return delay.reply
