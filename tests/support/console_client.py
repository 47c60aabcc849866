"""The console's application asked as a browser asks it, without a socket in between."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, NamedTuple

from barnabas.console.app import make_app
from barnabas.console.console import Console
from barnabas.console.settings import ConsoleSettings

HOST = "127.0.0.1:9080"


class Response(NamedTuple):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        return str(self.json["error"]["message"])


class Visitor:
    """One browser: keeps its cookie and the token of its session."""

    def __init__(self, app: Any, address: str = "127.0.0.1") -> None:
        self.app = app
        self.address = address
        self.cookie = ""
        self.token = ""

    async def open(self) -> Any:
        """The session, as a page asks for it first."""
        session = (await self.get("/api/session")).json
        self.token = session["token"]
        return session

    async def log_in(self, user: str, password: str) -> Response:
        await self.open()
        response = await self.post("/api/login", {"user": user, "password": password})
        if response.status == 200:
            await self.open()
        return response

    async def get(self, path: str, **headers: str) -> Response:
        return await self.ask("GET", path, b"", **headers)

    async def post(self, path: str, body: object, **headers: str) -> Response:
        return await self.ask("POST", path, json.dumps(body).encode(), **{"x-csrf-token": self.token, **headers})

    async def ask(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        *,
        raw_path: bytes | None = None,
        scheme: str = "http",
        **headers: str,
    ) -> Response:
        sent = {"host": HOST, "cookie": self.cookie, **headers}
        plain, _, query = path.partition("?")
        scope = {
            "type": "http",
            "method": method,
            "path": plain,
            "raw_path": plain.encode() if raw_path is None else raw_path,
            "query_string": query.encode(),
            "headers": [(name.encode(), value.encode()) for name, value in sent.items() if value],
            "client": (self.address, 50_000),
            "http_version": "1.1",
            "scheme": scheme,
        }
        given = [{"type": "http.request", "body": body, "more_body": False}]
        messages: list[dict[str, Any]] = []

        async def receive() -> dict[str, Any]:
            if given:
                return given.pop()
            await asyncio.Event().wait()  # the browser stays
            return {}

        async def send(message: dict[str, Any]) -> None:
            messages.append(message)
            await self.on_message(message)

        await self.app(scope, receive, send)
        received = {name.decode(): value.decode() for name, value in messages[0]["headers"]}
        if "set-cookie" in received:
            self.cookie = received["set-cookie"].partition(";")[0]
        return Response(messages[0]["status"], received, b"".join(each.get("body", b"") for each in messages[1:]))

    async def on_message(self, message: dict[str, Any]) -> None:
        """For a test that looks at a response while it comes."""


def run_console(config: dict[str, str], work: Callable[[Visitor, Console], Awaitable[None]], **settings: Any) -> None:
    """`work` once the console has looked at its cluster."""

    async def run() -> None:
        console = Console(config, "127.0.0.1", 9080, ConsoleSettings(**settings))
        console.login._failure_seconds = 0.0
        console.start()
        try:
            await console.collector.first_look.wait()  # type: ignore[union-attr]
            await console.collector.refresh()
            await work(Visitor(make_app(console)), console)
        finally:
            await console.close()

    asyncio.run(run())
