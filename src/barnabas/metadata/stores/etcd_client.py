"""Calls to an etcd cluster: JSON over HTTP, one host at a time, the next one when that fails.

etcd offers its gRPC services as JSON under /v3/ (keys and values in base64). All connections of a store go to the same
host, `EtcdHosts.current`; whoever finds it failing moves everybody on to the next.

A failed call is one of three things: `StoreUnavailableError` if the request certainly changed nothing,
`OutcomeUnknownError` if it was sent and may have, `EtcdError` if etcd said no.
"""

import base64
import http.client
import json
import select
import ssl
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Final

from barnabas.metadata.engine_options import Address, EngineOptions
from barnabas.metadata.store import MetadataStoreError, OutcomeUnknownError, StoreUnavailableError

DEFAULT_PORT: Final = 2379
READ_TIMEOUT_S: Final = 1.0
"""Of the first attempt; each further one has twice as long, because perhaps all of etcd is slow."""
WRITE_TIMEOUT_S: Final = 1.5
"""A write that a dead leader was given never gets a response; it is better looked up and sent again than waited for."""
PAUSE_BETWEEN_ROUNDS_S: Final = 0.1

INVALID_ARGUMENT, NOT_FOUND, PERMISSION_DENIED, OUT_OF_RANGE, UNAUTHENTICATED = 3, 5, 7, 11, 16
_DEADLINE_EXCEEDED, _CANCELED, _UNKNOWN, _UNAVAILABLE, _INTERNAL = 4, 1, 2, 14, 13
_MAYBE_DONE: Final = {_CANCELED, _UNKNOWN, _DEADLINE_EXCEEDED, _UNAVAILABLE, _INTERNAL}
_CERTAINLY_NOT_DONE: Final = ("no leader", "too many requests", "not capable", "rpc not supported for learner")
_INVALID_TOKEN: Final = "invalid auth token"

Body = dict[str, Any]


class EtcdError(MetadataStoreError):
    """etcd refused the request; `code` is gRPC's."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(f"etcd: {text}")
        self.code = code


class EtcdHosts:
    """The hosts and which of them is used; shared by the threads of a store."""

    def __init__(self, addresses: Sequence[Address], options: EngineOptions) -> None:
        self.addresses = tuple(addresses)
        self.options = options
        self.on_moved: Callable[[], None] = lambda: None
        self._lock = threading.Lock()
        self._index = 0
        self._token: str | None = None
        self._tls: ssl.SSLContext | None = None

    def prepare(self) -> None:
        """Raises MetadataStoreError if the files for TLS cannot be used."""
        if self.options.tls is not None:
            self._tls = self.options.tls.context()

    @property
    def current(self) -> Address:
        return self.addresses[self._index]

    def failed(self, address: Address) -> None:
        """Use the next host, unless somebody else has moved on already."""
        with self._lock:
            if self.addresses[self._index] != address or len(self.addresses) == 1:
                return
            self._index = (self._index + 1) % len(self.addresses)
        self.on_moved()

    def connect(self, address: Address, timeout_s: float) -> http.client.HTTPConnection:
        """Raises OSError."""
        host, port = address
        connection: http.client.HTTPConnection
        if self._tls is None:
            connection = http.client.HTTPConnection(host, port, timeout=timeout_s)
        else:
            connection = http.client.HTTPSConnection(host, port, timeout=timeout_s, context=self._tls)
        try:
            connection.connect()
        except BaseException:
            connection.close()
            raise
        return connection

    def headers(self, client: "EtcdClient", deadline: float) -> dict[str, str]:
        if self.options.username is None:
            return {}
        if self._token is None:
            login = {"name": self.options.username, "password": self.options.password or ""}
            self._token = str(client.send("auth/authenticate", login, {}, deadline - time.monotonic())["token"])
        return {"Authorization": self._token}

    def forget_token(self) -> None:
        self._token = None


class EtcdClient:
    """One connection, for one thread at a time."""

    def __init__(self, hosts: EtcdHosts) -> None:
        self._hosts = hosts
        self._connection: http.client.HTTPConnection | None = None
        self._address = hosts.current

    def read(self, path: str, body: Body, timeout_s: float) -> Body:
        """A request that may be sent any number of times."""
        deadline = time.monotonic() + timeout_s
        attempt_s = READ_TIMEOUT_S
        while True:
            try:
                return self._call(path, body, deadline, attempt_s)
            except OutcomeUnknownError as error:
                if time.monotonic() >= deadline:
                    raise StoreUnavailableError(str(error)) from error
            attempt_s *= 2

    def write(self, path: str, body: Body, timeout_s: float) -> Body:
        return self._call(path, body, time.monotonic() + timeout_s, WRITE_TIMEOUT_S)

    def close(self) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _call(self, path: str, body: Body, deadline: float, attempt_s: float) -> Body:
        """Again on other hosts as long as nothing can have happened."""
        for attempt in range(1_000_000):
            try:
                headers = self._hosts.headers(self, deadline)
                return self.send(path, body, headers, min(attempt_s, deadline - time.monotonic()))
            except EtcdError as error:
                if error.code != UNAUTHENTICATED and _INVALID_TOKEN not in str(error):
                    raise
                self._hosts.forget_token()
                if attempt > 1:
                    raise
            except StoreUnavailableError:
                if attempt % len(self._hosts.addresses) == len(self._hosts.addresses) - 1:
                    time.sleep(PAUSE_BETWEEN_ROUNDS_S)
                if time.monotonic() >= deadline:
                    raise
        raise AssertionError("a million attempts within the deadline")

    def send(self, path: str, body: Body, headers: dict[str, str], timeout_s: float) -> Body:
        """One attempt. On failure the next call goes to another host."""
        timeout_s = max(0.05, timeout_s)
        try:
            connection = self._connected(timeout_s)
        except OSError as error:
            self._fail()
            raise StoreUnavailableError(f"etcd at {self._address[0]}:{self._address[1]}: {error}") from error
        try:
            assert connection.sock is not None
            connection.sock.settimeout(timeout_s)
            content = json.dumps(body, separators=(",", ":")).encode()
            connection.request("POST", f"/v3/{path}", content, {"Content-Type": "application/json", **headers})
            response = connection.getresponse()
            received = response.read()
        except (OSError, http.client.HTTPException) as error:
            self._fail()
            raise OutcomeUnknownError(f"etcd did not respond: {error!r}") from error
        return self._decoded(received, response.status)

    def _decoded(self, body: bytes, status: int) -> Body:
        try:
            value: Body = json.loads(body)
        except ValueError as error:
            self._fail()
            raise OutcomeUnknownError(f"etcd responded with {status} {body[:100]!r}") from error
        if status == http.client.OK:
            return value
        text = str(value.get("message") or value.get("error") or body[:200])
        code = int(value.get("code") or value.get("grpc_code") or _UNKNOWN)
        if any(each in text for each in _CERTAINLY_NOT_DONE):
            self._fail()
            raise StoreUnavailableError(f"etcd: {text}")
        if code in _MAYBE_DONE and _INVALID_TOKEN not in text:
            self._fail()
            raise OutcomeUnknownError(f"etcd: {text}")
        raise EtcdError(code, text)

    def _connected(self, timeout_s: float) -> http.client.HTTPConnection:
        if self._connection is not None and (self._address != self._hosts.current or _is_closed(self._connection)):
            self.close()
        if self._connection is None:
            self._address = self._hosts.current
            self._connection = self._hosts.connect(self._address, timeout_s)
        return self._connection

    def _fail(self) -> None:
        self.close()
        self._hosts.failed(self._address)


def _is_closed(connection: http.client.HTTPConnection) -> bool:
    """Whether the other end has hung up: nothing else can be there to read between two requests."""
    if connection.sock is None:
        return True
    # Not select(), which takes no descriptor above 1023: a broker has many.
    poll = select.poll()
    poll.register(connection.sock, select.POLLIN)
    return bool(poll.poll(0))


def encoded(text: str | bytes) -> str:
    return base64.b64encode(text.encode() if isinstance(text, str) else text).decode()


def decoded(text: str) -> bytes:
    return base64.b64decode(text)
