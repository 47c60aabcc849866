"""The parts of one console: made by the command, used by every endpoint."""

import logging
from collections.abc import Mapping

from barnabas.console.clients import Clients
from barnabas.console.collector import Collector
from barnabas.console.recent import RecentHistory
from barnabas.console.security import Guard

_audit = logging.getLogger("barnabas.console.audit")


class Console:
    """`start` and `close` run on the loop that serves."""

    def __init__(self, config: Mapping[str, str], host: str, port: int, *, read_only: bool = False) -> None:
        self.guard = Guard(host, port)
        self.read_only = read_only
        self.clients = Clients(config)
        self.history = RecentHistory()
        self._collector: Collector | None = None

    @property
    def collector(self) -> Collector:
        assert self._collector is not None, "the console has not started"
        return self._collector

    def start(self) -> None:
        self._collector = Collector(self.clients)
        self._collector.listeners.append(self.history.on_view)
        self._collector.start()

    async def close(self) -> None:
        await self.collector.close()
        await self.clients.close()

    def check_writable(self) -> None:
        if self.read_only:
            raise PermissionError("this console is read-only")

    def audit(self, action: str, subject: str) -> None:
        """One line per change, after the cluster has agreed to it."""
        _audit.info("%s %s", action, ascii(subject))
