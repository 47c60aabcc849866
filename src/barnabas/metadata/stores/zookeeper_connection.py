"""One session with ZooKeeper: kazoo's connection, with deadlines, watches that survive reconnects, and an end.

kazoo would begin another session by itself when one has expired, without anybody noticing that the ephemeral nodes are
gone; it sends what was queued while it was cut off whenever it is back; its watches end with a connection; and it waits
up to a minute between two attempts to connect. None of that happens here: a lost session is stopped, calls wait for a
connection before they are given to kazoo, watches are renewed, attempts are half a second apart.
"""

import logging
import socket
import ssl
import time
from collections.abc import Sequence
from typing import Any, Final

from kazoo.client import KazooClient
from kazoo.exceptions import (
    AuthFailedError,
    ConnectionClosedError,
    ConnectionLoss,
    NoNodeError,
    OperationTimeoutError,
    SessionExpiredError,
    UnimplementedError,
)
from kazoo.handlers.threading import KazooTimeoutError, SequentialThreadingHandler
from kazoo.protocol.serialization import Exists, GetChildren, Sync, Watch
from kazoo.protocol.states import KazooState
from kazoo.security import CREATOR_ALL_ACL, OPEN_ACL_UNSAFE, READ_ACL_UNSAFE

from barnabas.metadata import store as interface
from barnabas.metadata.engine_options import Address, EngineOptions
from barnabas.metadata.store import (
    MetadataStoreError,
    OutcomeUnknownError,
    SessionListener,
    SessionState,
    StoreUnavailableError,
)
from barnabas.metadata.stores.watches import Watches
from barnabas.metadata.stores.zookeeper_requests import AddWatch, Failure, MultiRead

logger = logging.getLogger(__name__)

READS_AT_ONCE: Final = 1000
_RETRY: Final = {"max_tries": -1, "delay": 0.05, "backoff": 2, "max_delay": 0.5}
_STATES: Final = {
    KazooState.CONNECTED: SessionState.CONNECTED,
    KazooState.SUSPENDED: SessionState.SUSPENDED,
    KazooState.LOST: SessionState.LOST,
}


class ZooKeeperConnection:
    """`watches` has paths below `prefix`."""

    def __init__(
        self,
        addresses: Sequence[Address],
        prefix: str,
        options: EngineOptions,
        watches: Watches,
        on_state: SessionListener,
    ) -> None:
        self.session_id = 0
        self.is_lost = False
        self.acl = [*CREATOR_ALL_ACL, *READ_ACL_UNSAFE] if options.restrict_access else OPEN_ACL_UNSAFE
        self.has_recursive_watches = True
        """ZooKeeper 3.6 and later; before, each node that is watched needs a watch of its own, again and again."""
        self._has_multi_read = True
        self._prefix = prefix
        self._watches = watches
        self._on_state = on_state
        self._closing = False
        self._hosts = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in addresses)
        self.client = KazooClient(
            hosts=self._hosts,
            timeout=options.session_timeout_ms / 1000,
            connection_retry=_RETRY,
            auth_data=_login(options),
            logger=_QUIET,
            handler=_Handler(None if options.tls is None else options.tls.context()),
        )
        self.client.add_listener(self._on_kazoo_state)
        self.client._connection._read_watch_event = self._on_watch_event

    def open(self, timeout_s: float) -> None:
        try:
            self.client.start(timeout_s)
        except KazooTimeoutError as error:
            raise StoreUnavailableError(f"none of the ZooKeeper servers {self._hosts} can be reached") from error
        except AuthFailedError as error:
            raise MetadataStoreError("ZooKeeper rejects the login") from error
        self.session_id = int(self.client.client_id[0])

    def close(self) -> None:
        self._closing = True
        try:
            if self.client._stopped.is_set():
                self.client._safe_close()
            else:
                self.client.stop()
            self.client.close()
        except Exception as error:  # kazoo raises plain exceptions where its threads do not end
            logger.warning("the connection to ZooKeeper did not end cleanly: %s", error)
        self.is_lost = True

    def call(self, request: Any, timeout_s: float) -> Any:
        """One request that changes something. Raises what kazoo raises for its refusals."""
        try:
            return self._results([request], time.monotonic() + timeout_s)[0]
        except (ConnectionLoss, KazooTimeoutError, OperationTimeoutError) as error:
            raise OutcomeUnknownError(f"ZooKeeper did not respond: {error!r}") from error

    def read(self, requests: Sequence[Any], timeout_s: float) -> list[Any]:
        """Any number of requests that only read, at once; a node that is not there gives None."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                return self._results(requests, deadline)
            except (ConnectionLoss, KazooTimeoutError, OperationTimeoutError) as error:
                if time.monotonic() >= deadline:
                    raise StoreUnavailableError(f"ZooKeeper did not respond: {error!r}") from error

    def read_many(self, requests: Sequence[Any], timeout_s: float) -> tuple[list[Any], int]:
        """GetData and GetChildren; results as of `MultiRead`, with None for a Failure. Also the zxid before them."""
        if not requests:
            return [], self.client.last_zxid
        starts = range(0, len(requests), READS_AT_ONCE)
        if self._has_multi_read:
            parts = [MultiRead(self.client, requests[start : start + READS_AT_ONCE]) for start in starts]
            try:
                results = self.read(parts, timeout_s)
                return [_unless_failed(each) for result in results for each in result], parts[0].zxid
            except UnimplementedError:
                self._has_multi_read = False
        self.read([Exists("/", None)], timeout_s)
        zxid = self.client.last_zxid
        parts_one_by_one = [self.read(requests[start : start + READS_AT_ONCE], timeout_s) for start in starts]
        return [each for part in parts_one_by_one for each in part], zxid

    def sync(self, timeout_s: float) -> None:
        self.read([Sync("/")], timeout_s)

    def watch_all(self) -> None:
        """Ask for all watches on this connection, and wake everybody once they are there. Does not wait."""
        for path in self._watches.paths():
            self._watch(f"{self._prefix}{path}".rstrip("/") or "/")

    def _watch(self, path: str) -> None:
        if self.has_recursive_watches:
            result = self._send(AddWatch(path))
            result.rawlink(self._on_watching)
            return
        for request in (Exists(path, _ignore), GetChildren(path, _ignore)):
            self._send(request).rawlink(self._on_watching)

    def _on_watching(self, result: Any) -> None:
        if isinstance(result.exception, UnimplementedError):
            self.has_recursive_watches = False
            self.watch_all()
        elif result.exception is None or isinstance(result.exception, NoNodeError):
            self._watches.fire_all()

    def _on_watch_event(self, buffer: bytes, offset: int) -> None:
        """In place of kazoo's own, which knows no recursive watches."""
        event, _ = Watch.deserialize(buffer, offset)
        path = event.path.removeprefix(self._prefix)
        if not self.has_recursive_watches and not self.client._stopped.is_set():
            self._watch(event.path)
        self._watches.fire([path or "/"])

    def _on_kazoo_state(self, state: str) -> None:
        """In the thread of kazoo's connection."""
        if self._closing:
            return
        if state == KazooState.LOST:
            self.is_lost = True
            self.client._stopped.set()  # else it begins a new session
        elif state == KazooState.CONNECTED:
            self.watch_all()
        self._on_state(_STATES[state])
        if state == KazooState.LOST:
            self._watches.fire_all()

    def _send(self, request: Any) -> Any:
        result = self.client.handler.async_result()
        self.client._call(request, result)
        return result

    def _results(self, requests: Sequence[Any], deadline: float) -> list[Any]:
        if self.is_lost:
            raise interface.SessionExpiredError("the session with ZooKeeper is over")
        if not self.client._live.wait(max(0.0, deadline - time.monotonic())):
            raise StoreUnavailableError("there is no connection to ZooKeeper")
        try:
            results = [self._send(request) for request in requests]
            return [self._wait_for(result, deadline) for result in results]
        except (SessionExpiredError, ConnectionClosedError) as error:
            raise interface.SessionExpiredError("the session with ZooKeeper is over") from error

    def _wait_for(self, result: Any, deadline: float) -> Any:
        try:
            return result.get(timeout=max(0.001, deadline - time.monotonic()))
        except NoNodeError:
            return None


def _unless_failed(result: Any) -> Any:
    return None if isinstance(result, Failure) else result


def _ignore(_event: object) -> None:
    """A watcher for kazoo's requests; events come to `_on_watch_event`."""


def _login(options: EngineOptions) -> list[tuple[str, str]] | None:
    return None if options.username is None else [("digest", f"{options.username}:{options.password or ''}")]


class _Handler(SequentialThreadingHandler):  # type: ignore[misc]
    """kazoo's own TLS trusts the system's authorities beside the given one, and leaves failed sockets open."""

    def __init__(self, tls: ssl.SSLContext | None) -> None:
        super().__init__()
        self._tls = tls

    def create_connection(self, address: Address, hostname: str, timeout: float, **_others: Any) -> socket.socket:
        connection = socket.create_connection(address, timeout)
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        if self._tls is None:
            return connection
        try:
            return self._tls.wrap_socket(connection, server_hostname=hostname)
        except BaseException:
            connection.close()
            raise


def _make_quiet_logger() -> logging.Logger:
    """kazoo reports each attempt to connect as a warning; the session's states are reported here."""
    quiet = logging.getLogger(f"{__name__}.kazoo")
    quiet.setLevel(logging.ERROR)
    return quiet


_QUIET: Final = _make_quiet_logger()
