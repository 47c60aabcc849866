"""The console as an ASGI application: routes and static files, behind the guard."""

import contextlib
import gzip
import hashlib
from collections.abc import AsyncIterator, Awaitable, Callable
from importlib import resources

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route
from starlette.types import ASGIApp

from barnabas.console.api import (
    acls,
    alarms,
    brokers,
    capacity,
    delayed,
    group_actions,
    groups,
    login,
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
from barnabas.console.endpoint import endpoint
from barnabas.console.guarded import Guarded
from barnabas.console.security import LOGIN_PAGE, PUBLIC

PAGES = (
    *("/", "/topics", "/topics/{name}", "/groups", "/group", "/brokers", "/brokers/{broker}", "/partitions"),
    *("/reassign", "/transactions", "/users", "/acls", "/quotas", "/alarms", "/pipeline", "/capacity"),
)
API = (
    *(overview, topics, topic_actions, topic_details, groups, group_actions, messages, alarms, brokers, partitions),
    *(moves, transactions, users, acls, pipeline, capacity, delayed),
)
SHARED = (
    *("/overview", "/topics", "/topics/{name}", "/groups", "/group", "/brokers", "/partitions", "/history", "/alarms"),
    *("/pipeline", "/capacity"),
)
"""What open tabs ask again and again, and is the same for all of them; never a stream."""
TYPES = {".js": "text/javascript", ".css": "text/css", ".html": "text/html", ".svg": "image/svg+xml"}


def make_app(console: Console) -> ASGIApp:
    routes = [Route(path, _page("index.html"), methods=["GET"]) for path in PAGES]
    routes.append(Route(LOGIN_PAGE, _page("login.html"), methods=["GET"]))
    routes += [Route(f"/static/{name}", _static(name, body), methods=["GET"]) for name, body in static_files().items()]
    for module in API:
        for method, path, handler in module.ROUTES:
            served = endpoint(console, handler, method, is_shared=method == "GET" and path in SHARED)
            routes.append(Route(f"/api{path}", served, methods=[method]))
    for method, path, handler in login.ROUTES:
        routes.append(Route(f"/api{path}", endpoint(console, handler, method, is_change=False), methods=[method]))

    @contextlib.asynccontextmanager
    async def lifespan(app: Starlette) -> AsyncIterator[None]:
        console.start()
        yield
        await console.close()

    app = Starlette(routes=routes, lifespan=lifespan)
    app.router.redirect_slashes = False
    public = {*PUBLIC, *(("GET", f"/static/{name}") for name in static_files())}
    return Guarded(app, console, frozenset(public))


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


def _page(name: str) -> Callable[[Request], Awaitable[Response]]:
    body = (resources.files("barnabas.console") / "static" / name).read_bytes()

    async def serve(request: Request) -> Response:
        return Response(body, media_type="text/html", headers={"cache-control": "no-cache"})

    return serve
