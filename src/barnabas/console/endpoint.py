"""Around every handler of the API: errors become responses; changes are allowed or not, and always audited."""

import json
from collections.abc import Awaitable, Callable
from typing import Any

from starlette.requests import ClientDisconnect, Request
from starlette.responses import JSONResponse, Response

from barnabas.client.errors import AuthenticationError
from barnabas.console.console import Console
from barnabas.console.filters import FilterError
from barnabas.console.guarded import error_response
from barnabas.console.login.actor import current_actor
from barnabas.console.login.login import LoginRefused, TooManyAttempts
from barnabas.console.paging import BadQuery
from barnabas.errors import ErrorCode, KafkaError

Handler = Callable[[Console, Request], Awaitable[Any]]
Endpoint = Callable[[Request], Awaitable[Response]]
_FORBIDDEN = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}
_DENIED = (401, 403)


def endpoint(
    console: Console, handler: Handler, method: str, *, is_change: bool | None = None, is_shared: bool = False
) -> Endpoint:
    """A POST is a change unless it says otherwise. Of a shared one the response is that of everybody who asks now."""
    changes = method == "POST" if is_change is None else is_change

    async def serve(request: Request) -> Response:
        outcome = "failed"
        try:
            if changes:
                console.check_writable()
            if changes:
                response = await handler(console, request)
                console.shared.forget()
            elif is_shared:
                response = await console.shared.get(_key(request), lambda: handler(console, request))
            else:
                response = await handler(console, request)
            outcome = "done"
            return response if isinstance(response, Response) else _document(response)
        except Exception as error:
            response = _response_to(error, console)
            if response is None:
                raise
            word = "refused" if response.status_code in _DENIED else "failed"
            outcome = f"{word}: {json.loads(bytes(response.body))['error']['message']}"
            return response
        finally:
            actor = current_actor()
            # The handler has named what it did, unless it did not get so far.
            if changes and (outcome != "done" or actor is None or not actor.audited):
                console.audit(method, request.url.path, outcome)

    return serve


def _key(request: Request) -> Any:
    """A user of the cluster sees what only that user may see; all others see the same."""
    actor = current_actor()
    return (actor.credentials if actor else None, request.url.path, request.scope["query_string"])


def _document(response: Any) -> Response:
    return JSONResponse(response, headers={"cache-control": "no-store"})


def _response_to(error: Exception, console: Console) -> JSONResponse | None:
    """None for what nobody has foreseen."""
    match error:
        case TooManyAttempts():
            return error_response(429, str(error), headers={"retry-after": str(error.seconds)})
        case LoginRefused():
            return error_response(401, str(error))
        case AuthenticationError():
            return _login_gone(console)
        case FilterError():
            return error_response(400, error.message, position=error.position)
        case PermissionError():
            return error_response(403, str(error))
        case KafkaError():
            return error_response(403 if error.code in _FORBIDDEN else 502, error.message, code=error.code.name)
        case RecursionError():
            return error_response(400, "this is nested too deeply")
        case ClientDisconnect():
            return error_response(413, "the request is too long or ended early")
        case BadQuery() | ValueError():
            return error_response(400, str(error))
        case LookupError():
            return error_response(404, str(error.args[0]))
    return None


def _login_gone(console: Console) -> JSONResponse:
    """The cluster does not accept a user any more: the session is worth nothing then."""
    actor = current_actor()
    if actor is None or actor.credentials is None:
        return error_response(502, "the cluster does not accept the login of the console")
    console.login.sessions.end(actor.session_id)
    return error_response(401, "log in again: the cluster does not accept this user any more")
