"""In front of every route: the guard, the login, limits on what is received, headers and cookie of every response.

Whatever is not known to be allowed gets no further: paths that do not exist, other protocols than HTTP, a request
without a session where users log in.
"""

import contextlib
from urllib.parse import quote

from starlette.requests import Request
from starlette.responses import JSONResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.client.errors import AuthenticationError
from barnabas.console.console import Console
from barnabas.console.login.actor import Actor, acting
from barnabas.console.security import HEADERS, LOGIN_PAGE, SAFE_METHODS, is_plain_path
from barnabas.errors import KafkaError

LARGEST_BODY = 16 << 20
"""A record of 10 MB, as JSON."""


class Guarded:
    """`public` are the methods and paths that are served before a login."""

    def __init__(self, app: ASGIApp, console: Console, public: frozenset[tuple[str, str]]) -> None:
        self.app = app
        self._console = console
        self._public = public

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
        elif scope["type"] == "http":
            await self._serve(scope, receive, send)
        elif scope["type"] == "websocket":
            await send({"type": "websocket.close", "code": 1008})

    async def _serve(self, scope: Scope, receive: Receive, send: Send) -> None:
        console, request = self._console, Request(scope)
        given = request.cookies.get(console.guard.cookie)
        actor = Actor(given or console.guard.new_session(), request.client.host if request.client else "?")
        session = actor.session = console.login.find(given)

        is_over = False

        async def send_guarded(message: Message) -> None:
            nonlocal is_over
            if message["type"] == "http.response.body" and session is not None and console.login.find(given) is None:
                # Whoever has logged out elsewhere gets no more of a search that is still running.
                is_over = actor.session_id == given
            if is_over:
                await send({"type": "http.response.body", "body": b"", "more_body": False})
                raise OSError("the session is over")
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                if scope["scheme"] == "https":
                    extra.append((b"strict-transport-security", b"max-age=31536000"))
                if actor.session_id != given:
                    extra.append((b"set-cookie", self._cookie(actor.session_id, scope["scheme"])))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        with acting(actor):
            refusal = await self._refusal(request, actor, given)
            if refusal is not None and request.method not in SAFE_METHODS:
                console.audit(request.method, request.url.path, "refused")
            try:
                await (refusal or self.app)(scope, _limited(receive), send_guarded)
            except Exception:
                if not is_over:
                    raise

    async def _refusal(self, request: Request, actor: Actor, session_id: str | None) -> Response | None:
        """None if it may pass."""
        console, path = self._console, request.scope["path"]
        if not is_plain_path(path, request.scope.get("raw_path")):
            return error_response(404, "there is nothing at this address")
        reason = console.guard.refusal(request.method, request.headers, session_id)
        if reason is not None:
            return error_response(403, reason)
        if int_of(request.headers.get("content-length", "0")) > LARGEST_BODY:
            return error_response(413, f"a request has at most {LARGEST_BODY >> 20} MiB")
        if not console.login.is_needed or (request.method, path) in self._public:
            return None
        if actor.session is None:
            return self._login_wanted(request, path)
        return await self._look_up_rights(actor)

    def _login_wanted(self, request: Request, path: str) -> Response:
        if path.startswith("/api/") or request.method not in SAFE_METHODS:
            return error_response(401, "log in first")
        query = request.scope["query_string"].decode("latin-1")
        return RedirectResponse(f"{LOGIN_PAGE}?to={quote(path + ('?' + query if query else ''), safe='')}", 303)

    async def _look_up_rights(self, actor: Actor) -> Response | None:
        """Of a user of the cluster: what that user may see."""
        if actor.credentials is None:
            return None
        try:
            actor.visible = await self._console.login.visible_to.find(actor.credentials)
        except AuthenticationError:
            self._console.login.sessions.end(actor.session_id)
            return error_response(401, "log in again: the cluster does not accept this user any more")
        except KafkaError as error:
            return error_response(502, error.message, code=error.code.name)
        return None

    def _cookie(self, value: str, scheme: str) -> bytes:
        secure = "; Secure" if scheme == "https" else ""
        return f"{self._console.guard.cookie}={value}; Path=/; HttpOnly; SameSite=Strict{secure}".encode()


def error_response(status: int, message: str, *, headers: dict[str, str] | None = None, **more: object) -> JSONResponse:
    kept = {"cache-control": "no-store", **(headers or {})}
    return JSONResponse({"error": {"message": message, **more}}, status, kept)


def int_of(text: str) -> int:
    """A length that is no number is one that is too much."""
    with contextlib.suppress(ValueError):
        return int(text[:20])
    return LARGEST_BODY + 1


def _limited(receive: Receive) -> Receive:
    """A body without a length ends as if the browser had left once there is too much of it."""
    taken = 0

    async def receive_limited() -> Message:
        nonlocal taken
        message = await receive()
        taken += len(message.get("body", b""))
        return {"type": "http.disconnect"} if taken > LARGEST_BODY else message

    return receive_limited
