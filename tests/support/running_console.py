"""A console that serves from a thread of the test's process, and a plain HTTP client for its endpoints."""

import http.client
import json
import socket
import threading
from types import TracebackType
from typing import Any

from barnabas.console.process import listen, make_server
from barnabas.console.settings import ConsoleSettings


class RunningConsole:
    """`get` and `post` go to the endpoints as its page does: with the session's cookie and token."""

    def __init__(self, bootstrap: str, *, listener: socket.socket | None = None, **settings: Any) -> None:
        """`listener` may be of another network namespace; then only a browser in there reaches it."""
        self._listener = listener or listen("127.0.0.1", 0)
        self._is_reachable = listener is None
        self._port = self._listener.getsockname()[1]
        self.address = f"http://127.0.0.1:{self._port}"
        config = {"bootstrap.servers": bootstrap}
        self._server = make_server(config, "127.0.0.1", self._port, ConsoleSettings(**settings))
        self._thread = threading.Thread(target=self._server.run, kwargs={"sockets": [self._listener]})
        self._cookie = self._token = ""

    def get(self, path: str) -> Any:
        status, content = self.ask("GET", path)
        assert status == 200, content
        return content

    def post(self, path: str, body: object) -> Any:
        status, content = self.ask("POST", path, body)
        assert status == 200, content
        return content

    def ask(self, method: str, path: str, body: object = None) -> tuple[int, Any]:
        """The status and what the JSON says."""
        status, text = self.raw(method, "/api" + path, None if body is None else json.dumps(body))
        return status, json.loads(text)

    def raw(self, method: str, path: str, body: str | None = None) -> tuple[int, str]:
        connection = http.client.HTTPConnection("127.0.0.1", self._port, timeout=60)
        headers = {"cookie": self._cookie, "x-csrf-token": self._token}
        connection.request(method, path, body, {name: value for name, value in headers.items() if value})
        response = connection.getresponse()
        for cookie in response.headers.get_all("set-cookie", []):
            self._cookie = cookie.partition(";")[0]
        text = response.read().decode()
        connection.close()
        return response.status, text

    def __enter__(self) -> "RunningConsole":
        self._thread.start()
        if self._is_reachable:
            self.raw("GET", "/")
            self._token = self.get("/session")["token"]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._server.should_exit = True
        self._thread.join()
        self._listener.close()
