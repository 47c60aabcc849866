"""What a user of the cluster may see: the topics and groups that the cluster shows to that user's own connection.

The collector looks with the rights of the console, so its view is cut down to this before an endpoint gets it.
"""

import asyncio
import time
from collections.abc import Collection
from dataclasses import dataclass, replace

from barnabas.console.clients import Clients, Credentials
from barnabas.console.collector import Collector
from barnabas.console.group_lag import oldest_age
from barnabas.console.view import ClusterView, GroupView
from barnabas.errors import KafkaError

FRESH_SECONDS = 5.0
SHARE = 60.0
"""A look that took a second is good for 60."""
CALL_SECONDS = 5.0


@dataclass(frozen=True, slots=True)
class Visible:
    topics: frozenset[str] = frozenset()
    groups: frozenset[str] = frozenset()
    good_until: float = 0.0

    def view_of(self, view: ClusterView) -> ClusterView:
        """The same moment, without what is not visible."""
        if view.topics.keys() <= self.topics and view.groups.keys() <= self.groups:
            return view
        topics = {name: topic for name, topic in view.topics.items() if name in self.topics}
        groups = {name: self._group(group) for name, group in view.groups.items() if name in self.groups}
        log_dirs = {
            broker: {
                path: replace(each, replicas={p: r for p, r in each.replicas.items() if p.topic in self.topics})
                for path, each in directories.items()
            }
            for broker, directories in view.log_dirs.items()
        }
        rates = [topic for topic in topics.values() if not topic.is_internal]
        return replace(
            view,
            topics=topics,
            groups=groups,
            log_dirs=log_dirs,
            rate=sum(topic.rate for topic in rates),
            byte_rate=sum(topic.byte_rate for topic in rates),
        )

    def _group(self, group: GroupView) -> GroupView:
        if all(partition.topic in self.topics for partition in group.offsets):
            return group
        lags = {each: lag for each, lag in group.lags.items() if each.topic in self.topics}
        seen = replace(
            group,
            offsets={each: offset for each, offset in group.offsets.items() if each.topic in self.topics},
            lags=lags,
            times={each: age for each, age in group.times.items() if each.topic in self.topics},
            lag=sum(lags.values()),
        )
        seen.lag_seconds, seen.lag_seconds_at_least = oldest_age(seen)
        return seen


NOTHING = Visible()


class VisibleTo:
    """Asks for each user, and again when the response is old."""

    def __init__(self, clients: Clients) -> None:
        self._clients = clients
        self._known: dict[Credentials, Visible] = {}
        self._locks: dict[Credentials, asyncio.Lock] = {}

    async def find(self, credentials: Credentials, *, at_once: bool = False) -> Visible:
        """The last response, or nothing, while the cluster does not respond. Raises AuthenticationError."""
        async with self._locks.setdefault(credentials, asyncio.Lock()):
            known, began = self._known.get(credentials, NOTHING), time.monotonic()
            if not at_once and began < known.good_until:
                return known
            admin = self._clients.admin(credentials)
            try:
                topics = await admin.list_topics(include_internal=True, timeout=CALL_SECONDS)
                groups: Collection[str] = await admin.list_groups(timeout=CALL_SECONDS)
            except KafkaError as error:
                if not error.retriable:
                    self._known.pop(credentials, None)
                    raise
                return known
            now = time.monotonic()
            good_until = now + max(FRESH_SECONDS, SHARE * (now - began))
            self._known[credentials] = Visible(frozenset(topics), frozenset(groups), good_until)
            return self._known[credentials]

    def forget(self, credentials: Credentials) -> None:
        self._known.pop(credentials, None)
        self._locks.pop(credentials, None)


class VisibleCollector:
    """The collector as an endpoint has it that serves a user of the cluster."""

    def __init__(self, collector: Collector, credentials: Credentials, visible: Visible, visible_to: VisibleTo) -> None:
        self._collector = collector
        self._credentials = credentials
        self._visible = visible
        self._visible_to = visible_to

    @property
    def view(self) -> ClusterView:
        return self._visible.view_of(self._collector.view)

    async def refresh(self) -> None:
        await self._collector.refresh()
        self._visible = await self._visible_to.find(self._credentials, at_once=True)

    async def ensure_topics(self, names: Collection[str], max_age: float | None = None) -> None:
        more = {} if max_age is None else {"max_age": max_age}
        await self._collector.ensure_topics([name for name in names if name in self._visible.topics], **more)

    async def ensure_groups(self, ids: Collection[str], max_age: float | None = None) -> None:
        more = {} if max_age is None else {"max_age": max_age}
        await self._collector.ensure_groups([each for each in ids if each in self._visible.groups], **more)

    async def ensure_groups_within(self, ids: Collection[str], seconds: float) -> None:
        await self._collector.ensure_groups_within([each for each in ids if each in self._visible.groups], seconds)
