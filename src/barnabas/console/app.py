"""The console as an ASGI application: guard, routes, static files, and one place where errors become responses."""

import contextlib
import gzip
import hashlib
import json
import logging
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources
from typing import Any

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from barnabas.console.api import (
    acls,
    alarms,
    brokers,
    capacity,
    delayed,
    group_actions,
    groups,
    messages,
    moves,
    overview,
    partitions,
    pipeline,
    topic_actions,
    topic_details,
    topics,
    transactions,
    users,
)
from barnabas.console.console import Console
from barnabas.console.filters import FilterError
from barnabas.console.paging import BadQuery
from barnabas.console.security import COOKIE, HEADERS
from barnabas.errors import ErrorCode, KafkaError

Handler = Callable[[Console, Request], Awaitable[Any]]
PAGES = (
    *("/", "/topics", "/topics/{name}", "/groups", "/group", "/brokers", "/brokers/{broker}", "/partitions"),
    *("/reassign", "/transactions", "/users", "/acls", "/quotas", "/alarms", "/pipeline", "/capacity"),
)
API = (
    *(overview, topics, topic_actions, topic_details, groups, group_actions, messages, alarms, brokers, partitions),
    *(moves, transactions, users, acls, pipeline, capacity, delayed),
)
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}
_FORBIDDEN = {code for code in ErrorCode if code.name.endswith("AUTHORIZATION_FAILED")}
_log = logging.getLogger("barnabas.console")


def make_app(console: Console) -> ASGIApp:
    routes = [Route(path, _page, methods=["GET"]) for path in PAGES]
    routes += [Route(f"/static/{name}", _static(name, body), methods=["GET"]) for name, body in static_files().items()]
    for module in API:
        for method, path, handler in module.ROUTES:
            routes.append(Route(f"/api{path}", _endpoint(console, handler, method), methods=[method]))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        console.start()
        yield
        await console.close()

    return _Guarded(Starlette(routes=routes, lifespan=lifespan), console)


class _Guarded:
    """Asks the guard first, and gives every response its headers and a session."""

    def __init__(self, app: ASGIApp, console: Console) -> None:
        self._app = app
        self._console = console

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        request = Request(scope)
        session = request.cookies.get(COOKIE)
        fresh = None if session else self._console.guard.new_session()
        scope["session_id"] = session or fresh

        async def send_guarded(message: Message) -> None:
            if message["type"] == "http.response.start":
                extra = [(name.encode(), value.encode()) for name, value in HEADERS.items()]
                if fresh:
                    extra.append((b"set-cookie", f"{COOKIE}={fresh}; Path=/; HttpOnly; SameSite=Strict".encode()))
                message["headers"] = [*message["headers"], *extra]
            await send(message)

        reason = self._console.guard.refusal(request.method, request.headers, session)
        app = self._app if reason is None else _error(403, reason)
        await app(scope, receive, send_guarded)


def _endpoint(console: Console, handler: Handler, method: str) -> Callable[[Request], Awaitable[Response]]:
    async def endpoint(request: Request) -> Response:
        try:
            if method == "POST":
                console.check_writable()
            answer = await handler(console, request)
            return (
                answer if isinstance(answer, Response) else JSONResponse(answer, headers={"cache-control": "no-store"})
            )
        except FilterError as error:
            return _error(400, error.message, position=error.position)
        except (BadQuery, json.JSONDecodeError) as error:
            return _error(400, str(error))
        except LookupError as error:
            return _error(404, str(error.args[0]))
        except PermissionError as error:
            return _error(403, str(error))
        except KafkaError as error:
            return _error(403 if error.code in _FORBIDDEN else 502, error.message, code=error.code.name)
        except ValueError as error:
            return _error(400, str(error))

    return endpoint


def _error(status: int, message: str, **more: object) -> JSONResponse:
    return JSONResponse({"error": {"message": message, **more}}, status)


def static_files() -> dict[str, bytes]:
    """Every file of the page by its path below `static`: names that are not among them do not exist."""
    found: dict[str, bytes] = {}
    folders = [("", resources.files("barnabas.console") / "static")]
    while folders:
        prefix, folder = folders.pop()
        for entry in folder.iterdir():
            if entry.is_dir():
                folders.append((f"{prefix}{entry.name}/", folder / entry.name))
            elif "." + entry.name.rpartition(".")[2] in TYPES:
                found[prefix + entry.name] = entry.read_bytes()
    return found


def _static(name: str, body: bytes) -> Callable[[Request], Awaitable[Response]]:
    packed = gzip.compress(body, 6, mtime=0)
    tag = f'"{hashlib.sha256(body).hexdigest()[:16]}"'
    headers = {"etag": tag, "cache-control": "no-cache", "vary": "accept-encoding"}
    kind = TYPES["." + name.rpartition(".")[2]]

    async def serve(request: Request) -> Response:
        if request.headers.get("if-none-match") == tag:
            return Response(status_code=304, headers=headers)
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(packed, media_type=kind, headers={**headers, "content-encoding": "gzip"})
        return Response(body, media_type=kind, headers=headers)

    return serve


async def _page(request: Request) -> Response:
    page = resources.files("barnabas.console") / "static" / "index.html"
    return Response(page.read_bytes(), media_type="text/html", headers={"cache-control": "no-cache"})
