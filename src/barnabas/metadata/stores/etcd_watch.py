"""Follows etcd's changes by one streaming request, and wakes whoever watches.

The stream is asked for the ranges that are watched, from now on. Once etcd has confirmed them everybody is woken, for
what changed before: so a new connection misses nothing, and no revision is needed that etcd may have compacted.
"""

import http.client
import json
import logging
import socket
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from typing import Any, Final

from barnabas.metadata.store import MetadataStoreError
from barnabas.metadata.stores.etcd_client import EtcdClient, EtcdHosts, decoded, encoded
from barnabas.metadata.stores.watches import Watches

logger = logging.getLogger(__name__)

CONNECT_TIMEOUT_S: Final = 2.0
RETRY_DELAY_S: Final = 0.2


class EtcdWatch:
    """`watches` has paths below `prefix`."""

    def __init__(self, hosts: EtcdHosts, prefix: str, watches: Watches) -> None:
        self._hosts = hosts
        self._prefix = prefix
        self._watches = watches
        self._changed = threading.Condition()
        self._generation = 0
        self._socket: socket.socket | None = None
        self._closed = False
        self._thread: threading.Thread | None = None

    def restart(self) -> None:
        """Begin, or begin again: with the paths that are watched by now, on the host that is used by now."""
        with self._changed:
            if self._closed or not self._watches.paths():
                return
            self._generation += 1
            self._hang_up()
            self._changed.notify_all()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="metadata-watch", daemon=True)
                self._thread.start()

    def close(self) -> None:
        with self._changed:
            self._closed = True
            self._hang_up()
            self._changed.notify_all()
            thread, self._thread = self._thread, None
        if thread is not None:
            thread.join()

    def _hang_up(self) -> None:
        if self._socket is not None:
            with suppress(OSError):
                self._socket.shutdown(socket.SHUT_RDWR)

    def _run(self) -> None:
        while not self._closed:
            generation = self._generation
            try:
                self._follow(generation)
            except (OSError, http.client.HTTPException, ValueError, MetadataStoreError) as error:
                if not self._closed and generation == self._generation:
                    logger.info("the watch of etcd's changes begins again: %r", error)
            with self._changed:
                if not self._closed and generation == self._generation:
                    self._changed.wait(RETRY_DELAY_S)

    def _follow(self, generation: int) -> None:
        client = EtcdClient(self._hosts)
        try:
            headers = self._hosts.headers(client, time.monotonic() + CONNECT_TIMEOUT_S)
        finally:
            client.close()
        address = self._hosts.current
        try:
            connection = self._hosts.connect(address, CONNECT_TIMEOUT_S)
        except OSError:
            self._hosts.failed(address)
            raise
        try:
            assert connection.sock is not None
            with self._changed:
                if self._closed or generation != self._generation:
                    return
                self._socket = connection.sock
            self._read_stream(connection, headers)
            self._hosts.failed(address)
        finally:
            with self._changed:
                self._socket = None
            connection.close()

    def _read_stream(self, connection: http.client.HTTPConnection, headers: dict[str, str]) -> None:
        """Until etcd ends it. `Hasleader` makes it end where the host has lost the others."""
        requests = list(self._requests())
        headers |= {"Content-Type": "application/json", "Grpc-Metadata-Hasleader": "true"}
        connection.request("POST", "/v3/watch", b"".join(requests), headers)
        response = connection.getresponse()
        assert self._socket is not None
        self._socket.settimeout(None)  # whether the host still works is found out by the session's keep-alive
        unconfirmed = len(requests)
        while line := response.readline():
            result = _result_of(line)
            if result.get("created"):
                unconfirmed -= 1
                if unconfirmed == 0:
                    self._watches.fire_all()
            self._watches.fire([self._path_of(event) for event in result.get("events", ())])

    def _requests(self) -> Iterator[bytes]:
        """Two for each path: the node, and all below it."""
        for path in self._watches.paths():
            key = f"{self._prefix}{path}".rstrip("/")
            ranges = [{"key": encoded(f"{key}/"), "range_end": encoded(f"{key}0")}, {"key": encoded(key)}]
            for each in ranges[: 1 if path == "/" else 2]:
                yield json.dumps({"create_request": each}).encode()

    def _path_of(self, event: dict[str, Any]) -> str:
        return decoded(event["kv"]["key"]).decode()[len(self._prefix) :]


def _result_of(line: bytes) -> dict[str, Any]:
    message = json.loads(line)
    result: dict[str, Any] | None = message.get("result")
    if result is None or result.get("canceled"):
        raise ValueError(f"etcd ended the watch: {result or message}")
    return result
