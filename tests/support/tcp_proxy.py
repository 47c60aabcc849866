"""A proxy for any protocol over TCP: passes bytes on, late, not at all, or until it is told to cut.

with TcpProxy("127.0.0.1:2379") as proxy:
    proxy.delay_s = 0.5             # each way
    proxy.swallow_responses = True  # requests arrive, responses do not
    proxy.cut()                     # every connection ends; new ones are accepted
    proxy.refuse(); proxy.accept()  # nothing listens / listens again, on the same port
"""

from __future__ import annotations

import contextlib
import socket
import threading
import time
from types import TracebackType
from typing import Self

from server_process import free_port


class TcpProxy:
    def __init__(self, target: str) -> None:
        host, _, port = target.rpartition(":")
        self._target = (host, int(port))
        self._port = free_port()
        self._lock = threading.Lock()
        self._connections: set[socket.socket] = set()
        self._listener: socket.socket | None = None
        self.delay_s = 0.0
        self.swallow_responses = False

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._port}"

    def accept(self) -> None:
        listener = socket.create_server(("127.0.0.1", self._port))
        self._listener = listener
        threading.Thread(target=self._serve, args=(listener,), daemon=True).start()

    def refuse(self) -> None:
        if self._listener is not None:
            # A thread in accept() does not notice close() alone.
            with contextlib.suppress(OSError):
                self._listener.shutdown(socket.SHUT_RDWR)
            self._listener.close()
            self._listener = None
        self.cut()

    def cut(self) -> None:
        with self._lock:
            connections, self._connections = self._connections, set()
        for each in connections:
            with contextlib.suppress(OSError):
                each.shutdown(socket.SHUT_RDWR)

    def __enter__(self) -> Self:
        self.accept()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.refuse()

    def _serve(self, listener: socket.socket) -> None:
        with contextlib.suppress(OSError):
            while True:
                client, _ = listener.accept()
                try:
                    server = socket.create_connection(self._target, 5)
                except OSError:
                    client.close()
                    continue
                with self._lock:
                    self._connections |= {client, server}
                for source, sink, is_response in ((client, server, False), (server, client, True)):
                    source.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                    threading.Thread(target=self._pass_on, args=(source, sink, is_response), daemon=True).start()

    def _pass_on(self, source: socket.socket, sink: socket.socket, is_response: bool) -> None:
        try:
            while received := source.recv(65536):
                if self.delay_s:
                    time.sleep(self.delay_s)
                if not (is_response and self.swallow_responses):
                    sink.sendall(received)
        except OSError:
            pass
        finally:
            with contextlib.suppress(OSError):
                sink.shutdown(socket.SHUT_RDWR)
            with self._lock:
                self._connections.discard(source)
            source.close()
