"""The parts of one console: made by the command, used by every endpoint."""

import asyncio
import logging
import sqlite3
import time
from collections.abc import Mapping

from barnabas.console.alarms.alarms import AlarmEvent, Alarms
from barnabas.console.alarms.channels import Channel
from barnabas.console.alarms.event_log import EventLog
from barnabas.console.alarms.notifier import Notifier
from barnabas.console.clients import Clients
from barnabas.console.collector import Collector
from barnabas.console.database import Database
from barnabas.console.delayed import Intakes
from barnabas.console.history_store import HistoryStore
from barnabas.console.moves import Mover
from barnabas.console.recent import RecentHistory, values_of
from barnabas.console.security import Guard
from barnabas.console.settings import ConsoleSettings
from barnabas.console.view import ClusterView

ALARM_SECONDS = 2.0
_audit = logging.getLogger("barnabas.console.audit")
_log = logging.getLogger("barnabas.console")


class Console:
    """`start` and `close` run on the loop that serves."""

    def __init__(
        self, config: Mapping[str, str], host: str, port: int, settings: ConsoleSettings | None = None
    ) -> None:
        """Raises DatabaseError if the history cannot be opened."""
        settings = settings or ConsoleSettings()
        self.guard = Guard(host, port)
        self.read_only = settings.read_only
        self.checkpoints = settings.pipelines
        self.clients = Clients(config)
        self.mover = Mover()
        self.intakes = Intakes()
        self.recent = RecentHistory()
        self.notifier = Notifier([Channel(each) for each in settings.alarms.channels])
        self.alarms = Alarms(settings.alarms.rules, self.notifier.tell)
        self._database = Database(settings.history) if settings.history else None
        self.store = HistoryStore(self._database) if self._database else None
        if self._database:
            self._events = EventLog(self._database)
            self.alarms.events.extend(self._events.newest())
            self.alarms.on_event = self._keep_event
        self._collector: Collector | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._flush: asyncio.Task[None] | None = None

    @property
    def collector(self) -> Collector:
        assert self._collector is not None, "the console has not started"
        return self._collector

    def start(self) -> None:
        self._collector = Collector(self.clients)
        self._collector.listeners.append(self._on_view)
        self._collector.start()
        self.notifier.start()
        self._tasks.append(asyncio.create_task(self._watch_alarms()))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.notifier.close()
        await self.mover.close()
        await self.collector.close()
        await self.clients.close()
        if self._flush is not None:
            await self._flush
        if self._database is not None:
            await self._flush_history()
            self._database.close()

    def check_writable(self) -> None:
        if self.read_only:
            raise PermissionError("this console is read-only")

    def audit(self, action: str, subject: str) -> None:
        """One line per change, after the cluster has agreed to it."""
        _audit.info("%s %s", action, ascii(subject))

    # --- history and alarms ---
    def _on_view(self, view: ClusterView, now: float) -> None:
        values = values_of(view)
        self.recent.record(now, values)
        if self.store is not None and self.store.add(now, values) and (self._flush is None or self._flush.done()):
            self._flush = asyncio.create_task(self._flush_history())

    async def _flush_history(self) -> None:
        assert self.store is not None
        try:
            await asyncio.to_thread(self.store.flush, time.time())
        except sqlite3.Error as error:
            # A full disk must not end the console; what was not written is tried again with the next flush.
            _log.warning("the history cannot be written: %s", error)

    async def _watch_alarms(self) -> None:
        while True:
            self.alarms.evaluate(self.collector.view)
            await asyncio.sleep(ALARM_SECONDS)

    def _keep_event(self, event: AlarmEvent) -> None:
        self.alarms.events.append(event)
        try:
            self._events.add(event)
        except sqlite3.Error as error:
            _log.warning("the history cannot be written: %s", error)
