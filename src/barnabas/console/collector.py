"""Polls the cluster through the async clients and keeps the `ClusterView` current.

One task per kind of question, each at an interval that stretches with what the question costs, so that a cluster of
tens of thousands of partitions is asked less often instead of being kept busy. What somebody looks at is refreshed when
it is older than `FRESH_SECONDS` (`ensure_topics`, `ensure_groups`), however long the interval is.
"""

import asyncio
import contextlib
import logging
import time
from collections.abc import Awaitable, Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar

from barnabas.client.admin.errors import AdminError
from barnabas.client.admin.types import OffsetSpec
from barnabas.client.metadata import TopicMetadata
from barnabas.console.clients import Clients
from barnabas.console.group_lag import apply_offsets, oldest_age, sum_lags
from barnabas.console.record_times import RecordTimes
from barnabas.console.view import UNKNOWN, ClusterView, GroupView, TopicView
from barnabas.errors import KafkaError
from barnabas.types import NO_LEADER, TopicPartition, topic_id_text

Key = TypeVar("Key")
Value = TypeVar("Value")
Listener = Callable[[ClusterView, float], None]

OFFSETS_SECONDS, GROUPS_SECONDS, METADATA_SECONDS, DISK_SECONDS = 2.0, 2.0, 10.0, 20.0
SHARE = 120.0
"""A question that took a second is asked again after 2 minutes: four kinds cost 3 % of a core at most."""
FRESH_SECONDS, ENDS_SECONDS = 1.2, 0.3
"""How old what somebody looks at may be; and the ends of partitions when a lag is worked out from them. Both together,
and what a response is shared for (`shared_responses`), are less than 2 s."""
CALL_SECONDS = 8.0
RETRY_SECONDS = 1.0
LONG_SECONDS = 3.0
CHUNK = 200
"""Groups per request."""
_log = logging.getLogger("barnabas.console")


@dataclass(frozen=True, slots=True)
class _Failure:
    count: int
    since: float
    message: str


class Collector:
    """Owns the view. `listeners` hear of every sweep over the offsets, with the wall-clock time in seconds."""

    def __init__(self, clients: Clients) -> None:
        self.view = ClusterView()
        self.listeners: list[Listener] = []
        self.first_look = asyncio.Event()
        self._clients = clients
        self._times = RecordTimes(clients)
        self._tasks: list[asyncio.Task[None]] = []
        self._metadata_lock = asyncio.Lock()
        self._topic_lock = asyncio.Lock()
        self._group_lock = asyncio.Lock()
        self._sizes: dict[str, tuple[float, int]] = {}
        self._failures: dict[str, _Failure] = {}
        self._metadata = clients.consumer(metadata_max_age_ms="3600000")

    def start(self) -> None:
        for work, seconds in (
            (self._look_at_metadata, METADATA_SECONDS),
            (self.look_at_disks, DISK_SECONDS),
            (self._look_at_offsets, OFFSETS_SECONDS),
            (self._look_at_groups, GROUPS_SECONDS),
        ):
            self._tasks.append(asyncio.create_task(self._repeat(work, seconds)))

    async def close(self) -> None:
        tasks = list(self._tasks)
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        await self._metadata.close()
        await self._times.close()

    async def refresh(self) -> None:
        """After a change: metadata, offsets and groups, at once. What cannot be read now does not fail the change."""
        for look in (self._look_at_metadata, self._look_at_offsets, self._look_at_groups):
            with contextlib.suppress(KafkaError):
                await look()

    async def ensure_topics(self, names: Collection[str], max_age: float = FRESH_SECONDS) -> None:
        """End offsets of these topics are at most that old afterwards."""
        async with self._topic_lock:
            limit = time.monotonic() - max_age
            old = [topic for name in names if (topic := self.view.topics.get(name)) and topic.measured_at < limit]
            if old:
                await self._measure(old)

    async def ensure_groups(self, ids: Collection[str], max_age: float = FRESH_SECONDS) -> None:
        """Offsets, lag and members of these groups are at most that old afterwards."""
        async with self._group_lock:
            limit = time.monotonic() - max_age
            old = [group for each in ids if (group := self.view.groups.get(each)) and group.measured_at < limit]
            if old:
                await self._measure_groups(old)
                await self._describe(old)
                await self._find_times(old)
                sum_lags(self.view)

    async def ensure_groups_within(self, ids: Collection[str], seconds: float) -> None:
        """The same, but what takes longer goes on by itself: a page had better show what is known."""
        task = asyncio.create_task(self.ensure_groups(ids))
        self._tasks.append(task)
        task.add_done_callback(self._tasks.remove)
        done, _ = await asyncio.wait({task}, timeout=seconds)
        for each in done:
            each.result()
        if not done:
            task.add_done_callback(lambda ended: ended.cancelled() or ended.exception())

    # --- the sweeps ---
    async def _repeat(self, work: Callable[[], Awaitable[None]], seconds: float) -> None:
        if work != self._look_at_metadata:
            await self.first_look.wait()
        while True:
            started = time.monotonic()
            try:
                await work()
            except KafkaError as error:
                self._on_outcome(work.__name__, error.message, time.monotonic() - started)
            except Exception as error:
                # A bug in one question must not end the others, nor this one.
                _log.exception("%s failed", work.__name__)
                self._on_outcome(work.__name__, f"{type(error).__name__}: {error}")
            else:
                self._on_outcome(work.__name__, None)
            took = time.monotonic() - started
            is_failing = work.__name__ in self._failures
            await asyncio.sleep(RETRY_SECONDS if is_failing else max(seconds - took, took * SHARE))

    def _on_outcome(self, question: str, fault: str | None, took: float = 0.0) -> None:
        """A question that fails at once is asked again before it is shown; before the first response it is not, nor
        where the cluster has kept silent for long."""
        if fault is None:
            self._failures.pop(question, None)
        else:
            known = self._failures.get(question)
            count, since = (known.count, known.since) if known else (0, time.time())
            self._failures[question] = _Failure(count + (2 if took >= LONG_SECONDS else 1), since, fault)
        needed = 2 if self.first_look.is_set() else 1
        lasting = [each for each in self._failures.values() if each.count >= needed]
        worst = min(lasting, key=lambda each: each.since, default=None)
        self.view.error, self.view.error_since = (worst.message, worst.since) if worst else (None, None)

    async def _look_at_metadata(self) -> None:
        # One at a time, so that an answer from before a change never replaces one from after it.
        async with self._metadata_lock:
            await self._read_metadata()

    async def _read_metadata(self) -> None:
        cluster = await self._clients.admin().describe_cluster(timeout=CALL_SECONDS)
        topics = await self._metadata.list_topics(timeout=CALL_SECONDS)
        view = self.view
        view.cluster_id = cluster.cluster_id
        view.controller = cluster.controller.id if cluster.controller else None
        view.brokers = {each.node.id: each.node for each in cluster.brokers}
        view.topics = {name: self._topic(topics[name]) for name in sorted(topics)}
        self.first_look.set()

    def _topic(self, metadata: TopicMetadata) -> TopicView:
        known = self.view.topics.get(metadata.name)
        topic_id = topic_id_text(metadata.topic_id)
        if known is None or known.topic_id != topic_id:
            count = len(metadata.partitions)
            return TopicView(
                name=metadata.name,
                topic_id=topic_id,
                is_internal=metadata.is_internal,
                partitions=metadata.partitions,
                starts=[UNKNOWN] * count,
                ends=[UNKNOWN] * count,
            )
        known.partitions = metadata.partitions
        more = len(metadata.partitions) - len(known.ends)
        known.starts += [UNKNOWN] * more
        known.ends += [UNKNOWN] * more
        return known

    async def _look_at_offsets(self) -> None:
        async with self._topic_lock:
            await self._measure(list(self.view.topics.values()))
        view = self.view
        view.rate = sum(topic.rate for topic in view.topics.values() if not topic.is_internal)
        view.byte_rate = sum(topic.byte_rate for topic in view.topics.values() if not topic.is_internal)
        view.collected_at = time.time()
        for listener in self.listeners:
            listener(view, view.collected_at)

    async def _measure(self, topics: Iterable[TopicView]) -> None:
        found = [
            (topic, TopicPartition(topic.name, each.partition))
            for topic in topics
            for each in topic.partitions
            if each.leader != NO_LEADER
        ]
        wanted = [partition for _, partition in found]
        if not wanted:
            return
        ends = await self._offsets(dict.fromkeys(wanted, OffsetSpec.LATEST))
        # Starts move with retention only: new partitions at once, the others with the sizes.
        new = {p: OffsetSpec.EARLIEST for topic, p in found if topic.starts[p.partition] == UNKNOWN}
        starts = await self._offsets(new) if new else {}
        now = time.monotonic()
        measured: dict[str, TopicView] = {}
        for topic, partition in found:
            number = partition.partition
            if partition in starts:
                topic.starts[number] = starts[partition]
            end = ends.get(partition)
            if end is None:
                continue
            measured[topic.name] = topic
            known, topic.ends[number] = topic.ends[number], end
            passed = now - topic.measured_at
            topic.rates += [0.0] * (len(topic.ends) - len(topic.rates))
            if topic.measured_at and passed > 0.2:
                topic.rates[number] = max(0.0, (end - known) / passed) if known != UNKNOWN else 0.0
        for topic in measured.values():
            topic.rate = sum(topic.rates)
            topic.measured_at = now

    async def _offsets(self, wanted: Mapping[TopicPartition, OffsetSpec]) -> dict[TopicPartition, int]:
        found = await _some(self._clients.admin().list_offsets(wanted, timeout=CALL_SECONDS))
        return {partition: each.offset for partition, each in found.items()}

    async def look_at_disks(self) -> None:
        """Sizes on disk, and where the partitions begin."""
        try:
            log_dirs = await _some(self._clients.admin().describe_log_dirs(timeout=CALL_SECONDS))
        except KafkaError as error:
            if error.retriable:
                raise
            return  # not allowed, or a broker too old: sizes stay unknown
        now = time.monotonic()
        sizes: dict[str, int] = {}
        leading: dict[str, int] = {}
        topics = self.view.topics
        for broker, dirs in log_dirs.items():
            for directory in dirs.values():
                for partition, replica in directory.replicas.items():
                    name = partition.topic
                    sizes[name] = sizes.get(name, 0) + replica.size
                    topic = topics.get(name)
                    if topic and partition.partition < len(topic.partitions):
                        is_leader = topic.partitions[partition.partition].leader == broker
                        leading[name] = leading.get(name, 0) + (replica.size if is_leader else 0)
        self.view.log_dirs = log_dirs
        for name, topic in topics.items():
            topic.size_bytes = sizes.get(name, 0)
            at, size = self._sizes.get(name, (now, leading.get(name, 0)))
            if now > at:
                topic.byte_rate = max(0.0, (leading.get(name, 0) - size) / (now - at))
        self._sizes = {name: (now, size) for name, size in leading.items()}
        await self._look_at_starts()

    async def _look_at_starts(self) -> None:
        wanted = {
            TopicPartition(topic.name, each.partition): OffsetSpec.EARLIEST
            for topic in self.view.topics.values()
            for each in topic.partitions
            if each.leader != NO_LEADER
        }
        for partition, offset in (await self._offsets(wanted) if wanted else {}).items():
            topic = self.view.topics.get(partition.topic)
            if topic:
                topic.starts[partition.partition] = offset

    # --- groups ---
    async def _look_at_groups(self) -> None:
        listed = await _some(self._clients.admin().list_groups(timeout=CALL_SECONDS))
        async with self._group_lock:
            groups = self.view.groups
            self.view.groups = {
                group_id: groups.get(group_id) or GroupView(group_id, each.state, each.type, each.protocol_type)
                for group_id, each in listed.items()
            }
            for group_id, each in listed.items():
                self.view.groups[group_id].state = each.state
                self.view.groups[group_id].type = each.type
            views = list(self.view.groups.values())
            for first in range(0, len(views), CHUNK):
                await self._measure_groups(views[first : first + CHUNK])
            described = sorted(views, key=lambda group: group.described_at)[:CHUNK]
            await self._describe(described)
            await self._find_times(views)
            sum_lags(self.view)

    async def _measure_groups(self, groups: list[GroupView]) -> None:
        wanted = {group.group_id: None for group in groups}
        found = await _some(self._clients.admin().list_groups_offsets(wanted, timeout=CALL_SECONDS))
        needed = {partition.topic for offsets in found.values() for partition in offsets}
        await self.ensure_topics(needed, ENDS_SECONDS)
        now = time.monotonic()
        for group in groups:
            if group.group_id in found:
                apply_offsets(group, found[group.group_id], self.view.topics, now)

    async def _describe(self, groups: list[GroupView]) -> None:
        ids = [group.group_id for group in groups]
        found = await _some(self._clients.admin().describe_groups(ids, timeout=CALL_SECONDS)) if ids else {}
        now = time.monotonic()
        for group in groups:
            described = found.get(group.group_id)
            if described is not None:
                group.members = len(described.members)
                group.assignor = described.assignor
                group.coordinator = described.coordinator.id
                group.state, group.type = described.state, described.type
                group.described_at = now

    async def _find_times(self, groups: Iterable[GroupView]) -> None:
        """Timestamps of the first records that are not committed, wherever there are such records."""
        behind = [(group, partition) for group in groups for partition, lag in group.lags.items() if lag > 0]
        await self._times.find({(partition, group.offsets[partition]) for group, partition in behind})
        now_ms = time.time() * 1000
        for group in groups:
            group.times = {
                partition: self._times.age(partition, group.offsets[partition], now_ms) if lag else 0.0
                for partition, lag in group.lags.items()
            }
            group.lag_seconds, group.lag_seconds_at_least = oldest_age(group)


async def _some(call: Awaitable[dict[Key, Value]]) -> dict[Key, Value]:
    """What succeeded, even if some failed: one broker that is away must not hide the others."""
    try:
        return await call
    except AdminError as error:
        if not error.results:
            raise
        results: dict[Any, Any] = error.results
        return results
