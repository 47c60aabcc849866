"""Envelope (key 58), v0: a client's request that another broker passes on to the controller (KIP-590).

The request inside is handled as if its client were connected here; its response goes back inside the response. The
envelope's own error says that nothing was done: NOT_CONTROLLER, also where the controller was lost in the middle, which
the sender turns into another attempt. Only requests that need the controller are taken.
"""

from collections.abc import Iterable
from dataclasses import replace
from functools import partial
from typing import Any, TypeVar

from barnabas.errors import ErrorCode, ProtocolError
from barnabas.net.deferred import Deferred, then
from barnabas.net.reply import Parts
from barnabas.protocol.api import ApiKey
from barnabas.protocol.headers import decode_request_header
from barnabas.protocol.messages.envelope import EnvelopeRequest, EnvelopeResponse
from barnabas.server.dispatch import AnyHandler, Handler
from barnabas.server.envelope import host_of, principal_of
from barnabas.server.request import Origin, RequestContext

Request = TypeVar("Request")
Response = TypeVar("Response")

SIZE_PREFIX = 4


class ControllerMovedError(Exception):
    """The response inside says NOT_CONTROLLER."""


def handle_envelope(context: RequestContext, request: EnvelopeRequest) -> EnvelopeResponse | Deferred[EnvelopeResponse]:
    broker = context.broker
    if not context.may_act_as_broker():
        return _refuse(ErrorCode.CLUSTER_AUTHORIZATION_FAILED)
    if not broker.cluster.is_controller:
        return _refuse(ErrorCode.NOT_CONTROLLER)
    try:
        header = decode_request_header(request.request_data)
        origin = Origin(principal_of(request), host_of(request))
    except ProtocolError:
        return _refuse(ErrorCode.INVALID_REQUEST)
    row = broker.dispatcher.table.get(header.api_key)
    if row is None or not row.forwards:
        return _refuse(ErrorCode.INVALID_REQUEST)
    if not row.min_version <= header.api_version <= row.max_version:
        return _refuse(ErrorCode.UNSUPPORTED_VERSION)
    inner = RequestContext(broker, context.connection, header, origin)
    if broker.client_quotas.enabled:
        inner.limits = broker.client_quotas.find(origin.principal.name, header.client_id or "")
    return context.run(_open(inner, row, request.request_data))


async def _open(inner: RequestContext, row: AnyHandler, frame: bytes) -> EnvelopeResponse:
    checked = replace(row, handle=partial(_handle, row), forwards=False)
    try:
        reply = inner.broker.dispatcher.process(inner, checked, memoryview(frame))
        parts: Parts | bytes | None = await reply if isinstance(reply, Deferred) else reply
    except ControllerMovedError:
        return _refuse(ErrorCode.NOT_CONTROLLER)
    except ProtocolError:
        return _refuse(ErrorCode.INVALID_REQUEST)
    assert parts is not None, "requests for the controller have a response"
    data = parts if isinstance(parts, bytes) else b"".join(parts)  # type: ignore[arg-type]
    return EnvelopeResponse(response_data=data[SIZE_PREFIX:], error_code=ErrorCode.NONE)


def _handle(
    row: Handler[Request, Response], context: RequestContext, request: Request
) -> Response | Deferred[Response]:
    return then(row.handle(context, request), _check)


def _check(response: Response) -> Response:
    if _says_not_controller(response):
        raise ControllerMovedError
    return response


def _says_not_controller(message: Any) -> bool:
    """A request fails as a whole when the controller has moved, so the first and the last of its parts will do."""
    if getattr(message, "error_code", None) == ErrorCode.NOT_CONTROLLER:
        return True
    return any(_says_not_controller(part) for part in _ends_of_lists(message))


def _ends_of_lists(message: Any) -> Iterable[Any]:
    for name in message.__schema__.fields:
        value = getattr(message, name)
        if isinstance(value, list) and value and hasattr(value[0], "__schema__"):
            yield from (value[0], value[-1])


def _refuse(error: ErrorCode) -> EnvelopeResponse:
    return EnvelopeResponse(response_data=None, error_code=error)


def fail_envelope(context: RequestContext, request: EnvelopeRequest, error: ErrorCode) -> EnvelopeResponse:
    return _refuse(error)


HANDLER = Handler(
    api_key=ApiKey.ENVELOPE,
    min_version=0,
    max_version=0,
    request=EnvelopeRequest,
    handle=handle_envelope,
    fail=fail_envelope,
    is_advertised=False,
    checks_access=True,
)
