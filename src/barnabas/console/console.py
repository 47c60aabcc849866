"""The parts of one console: made by the command, used by every endpoint."""

import asyncio
import importlib
import logging
import sqlite3
import time
from collections.abc import Mapping
from typing import Any

from barnabas.client.admin.types import AclOperation
from barnabas.console.alarms.alarms import AlarmEvent, Alarms
from barnabas.console.alarms.channels import Channel
from barnabas.console.alarms.event_log import EventLog
from barnabas.console.alarms.notifier import Notifier
from barnabas.console.clients import Clients
from barnabas.console.collector import Collector
from barnabas.console.database import Database
from barnabas.console.delayed import Intakes
from barnabas.console.history_store import HistoryStore
from barnabas.console.login.actor import NOBODY, ActingClients, current_actor
from barnabas.console.login.login import Login
from barnabas.console.login.password_file import PasswordFile
from barnabas.console.login.visible import NOTHING as NOTHING_VISIBLE
from barnabas.console.login.visible import VisibleCollector
from barnabas.console.moves import Mover
from barnabas.console.recent import RecentHistory, values_of
from barnabas.console.searches import Searches
from barnabas.console.security import Guard
from barnabas.console.settings import ConsoleSettings
from barnabas.console.shared_responses import SharedResponses
from barnabas.console.view import ClusterView

ALARM_SECONDS = 2.0
_audit = logging.getLogger("barnabas.console.audit")
_log = logging.getLogger("barnabas.console")


class Console:
    """`start` and `close` run on the loop that serves."""

    def __init__(
        self, config: Mapping[str, str], host: str, port: int, settings: ConsoleSettings | None = None
    ) -> None:
        """Raises DatabaseError and PasswordFileError."""
        settings = settings or ConsoleSettings()
        self.guard = Guard(host, port, settings.host_names)
        self._read_only = settings.read_only
        self._own_clients = Clients(config)
        self.clients = ActingClients(self._own_clients)
        mechanism = settings.login_mechanism or self._own_clients.mechanism
        self.login = Login(
            self._own_clients,
            file=PasswordFile(settings.users) if settings.users else None,
            mechanism=mechanism if settings.cluster_login else None,
        )
        self.searches = Searches()
        self.shared = SharedResponses()
        self.checkpoints = settings.pipelines
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
        self._tasks: list[asyncio.Task[Any]] = []
        self._flush: asyncio.Task[None] | None = None

    @property
    def collector(self) -> Collector | VisibleCollector:
        """As whoever makes the request may see it."""
        assert self._collector is not None, "the console has not started"
        actor = current_actor()
        if actor is None or actor.credentials is None:
            return self._collector
        return VisibleCollector(
            self._collector, actor.credentials, actor.visible or NOTHING_VISIBLE, self.login.visible_to
        )

    @property
    def read_only(self) -> bool:
        """Whether whoever makes the request may change nothing."""
        actor = current_actor()
        return self._read_only or bool(actor and actor.session and actor.session.read_only)

    def start(self) -> None:
        self._collector = Collector(self._own_clients)
        self._collector.listeners.append(self._on_view)
        self._collector.start()
        self.notifier.start()
        self._tasks.append(asyncio.create_task(self._watch_alarms()))
        # So that the first search does not wait for it.
        self._tasks.append(asyncio.create_task(asyncio.to_thread(importlib.import_module, "pyarrow.compute")))

    async def close(self) -> None:
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self.searches.close()
        await self.notifier.close()
        await self.mover.close()
        if self._collector is not None:
            await self._collector.close()
        await self.login.close()
        await self._own_clients.close()
        if self._flush is not None:
            await self._flush
        if self._database is not None:
            await self._flush_history()
            self._database.close()

    def check_writable(self) -> None:
        if self._read_only:
            raise PermissionError("this console is read-only")
        if self.read_only:
            raise PermissionError("this user may look, and change nothing")

    def audit(self, action: str, subject: str, outcome: str = "done") -> None:
        """One line per change: who, from where, what, how it ended. An endpoint calls it once the cluster has agreed;
        for whatever else is tried `app` does."""
        actor = current_actor()
        if actor is not None:
            actor.audited.append(action)
        who, where = (actor.name, actor.address) if actor else (NOBODY, NOBODY)
        plain = outcome.encode("unicode_escape").decode()[:500]
        _audit.info("%s from %s: %s %s: %s", who, where, action, ascii(subject)[:500], plain)

    def may_see(self, kind: str, name: str) -> bool:
        """Whether a topic or group may be shown; what is about neither may."""
        actor = current_actor()
        if actor is None or actor.credentials is None:
            return True
        visible = actor.visible or NOTHING_VISIBLE
        return {"topic": name in visible.topics, "group": name in visible.groups}.get(kind, True)

    async def check_cluster_right(self) -> None:
        """For changes of the console itself, such as silencing an alarm: those who may alter the cluster may."""
        actor = current_actor()
        if actor is None or actor.credentials is None:
            return
        described = await self.clients.admin().describe_cluster(include_authorized_operations=True)
        if AclOperation.ALTER not in (described.authorized_operations or ()):
            raise PermissionError(f"this needs the right to alter the cluster, which {actor.name} does not have")

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
            if self._collector is not None:
                self.alarms.evaluate(self._collector.view)
            await asyncio.sleep(ALARM_SECONDS)

    def _keep_event(self, event: AlarmEvent) -> None:
        self.alarms.events.append(event)
        try:
            self._events.add(event)
        except sqlite3.Error as error:
            _log.warning("the history cannot be written: %s", error)
