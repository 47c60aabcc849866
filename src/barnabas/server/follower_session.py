"""News for one follower: which partitions of its fetch session have something that it has not been sent.

A leader with thousands of partitions must not look at all of them for each fetch of each follower, so partitions tell
the session what happens to them, and a fetch reads those. Records are news at once. A high watermark alone can wait a
little: it mostly goes along with the next records. Made and used by `follower_fetch`, kept by the fetch session.
"""

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING

from barnabas.clock import Clock
from barnabas.machines.fetch_context import PartitionKey
from barnabas.net.timers import Timers

if TYPE_CHECKING:
    from barnabas.server.hosted_partition import HostedPartition

HIGH_WATERMARK_DELAY_MS = 10


class ParkedFetch:
    """A fetch that waits for records. `respond` is to be called once."""

    __slots__ = ("deadline_ms", "missing_bytes", "respond")

    def __init__(self, missing_bytes: int, deadline_ms: int, respond: Callable[[], None]) -> None:
        self.missing_bytes = missing_bytes
        self.deadline_ms = deadline_ms
        self.respond = respond


class FollowerSession:
    __slots__ = (
        "_clock",
        "_deadline_armed_ms",
        "_is_ready",
        "_loop",
        "_parked",
        "_timers",
        "_watched",
        "_watermark_armed",
        "held_back",
        "records",
        "under_replicated",
        "watermarks",
    )

    def __init__(self, loop: asyncio.AbstractEventLoop, timers: Timers, clock: Clock) -> None:
        self._loop = loop
        self._timers = timers
        self._clock = clock
        self.records: dict[PartitionKey, None] = {}
        """Partitions with records, or with a change of leader or existence."""
        self.held_back: dict[PartitionKey, None] = {}
        """Partitions with records that wait for the limit on replication (KIP-73)."""
        self.watermarks: dict[PartitionKey, None] = {}
        """Partitions with another high watermark or log start."""
        self.under_replicated: dict[PartitionKey, HostedPartition] = {}
        """Partitions that lack a replica in sync: it may be this follower, so each of its fetches counts."""
        self._watched: dict[PartitionKey, HostedPartition] = {}
        self._parked: ParkedFetch | None = None
        self._is_ready = False
        self._deadline_armed_ms: int | None = None
        self._watermark_armed = False

    # --- called by partitions ---

    def on_append(self, key: PartitionKey, byte_count: int) -> None:
        if self.held_back and key in self.held_back:
            return
        self.records[key] = None
        parked = self._parked
        if parked is not None:
            parked.missing_bytes -= byte_count
            if parked.missing_bytes <= 0 and not self._is_ready:
                # On the next turn, so that one turn's appends cost one response.
                self._is_ready = True
                self._loop.call_soon(self._on_ready)

    def on_watermark(self, key: PartitionKey) -> None:
        self.watermarks[key] = None
        if self._parked is not None:
            self._arm_watermark()

    def on_change(self, key: PartitionKey) -> None:
        """Leadership or existence changed: the follower has to know at once."""
        self.records[key] = None
        self.finish()

    def release(self, key: PartitionKey) -> None:
        """It need not wait for the limit on replication any more."""
        if key in self.held_back:
            del self.held_back[key]
            self.records[key] = None
            self.finish()

    def release_all(self) -> None:
        """The limit allows more."""
        if self.look_at_held_back():
            self.finish()

    # --- called by the fetch ---

    def watch(self, key: PartitionKey, hosted: "HostedPartition") -> None:
        known = self._watched.get(key)
        if known is not hosted:
            if known is not None:
                known.follower_sessions.pop(self, None)
            self._watched[key] = hosted
            hosted.follower_sessions[self] = key
            if hosted.lacks_replicas:
                self.under_replicated[key] = hosted

    def unwatch(self, key: PartitionKey) -> None:
        hosted = self._watched.pop(key, None)
        if hosted is not None:
            hosted.follower_sessions.pop(self, None)
        self.records.pop(key, None)
        self.watermarks.pop(key, None)
        self.under_replicated.pop(key, None)
        self.held_back.pop(key, None)

    def look_at_under_replicated(self) -> None:
        """At the beginning of a fetch: to be read is how a follower is counted, and how it joins the ISR."""
        for key, hosted in list(self.under_replicated.items()):
            if hosted.lacks_replicas:
                self.records[key] = None
            else:
                del self.under_replicated[key]

    def look_at_held_back(self) -> bool:
        """At the beginning of a fetch, too: whether there are any."""
        found, self.held_back = self.held_back, {}
        self.records |= found
        return bool(found)

    def take(self) -> list[PartitionKey]:
        """The partitions to read now."""
        keys = list(self.records)
        if self.watermarks:
            keys += [key for key in self.watermarks if key not in self.records]
            self.watermarks = {}
        self.records = {}
        return keys

    def park(self, fetch: ParkedFetch) -> None:
        self._parked = fetch
        if self.watermarks:
            self._arm_watermark()
        # One timer for all fetches of the session, looked at when it fires: most are woken long before.
        if self._deadline_armed_ms is None or fetch.deadline_ms < self._deadline_armed_ms:
            self._arm_deadline(fetch.deadline_ms)

    def finish(self) -> None:
        """The fetch that waits responds with what there is, if one waits."""
        parked, self._parked = self._parked, None
        if parked is not None:
            parked.respond()

    def close(self) -> None:
        """The session is over. First the fetch that waits, since what it reads is watched again."""
        self.finish()
        for hosted in self._watched.values():
            hosted.follower_sessions.pop(self, None)
        self._watched.clear()
        self.held_back.clear()
        self.under_replicated.clear()

    def _on_ready(self) -> None:
        self._is_ready = False
        self.finish()

    def _arm_watermark(self) -> None:
        if not self._watermark_armed:
            self._watermark_armed = True
            self._timers.call_after(HIGH_WATERMARK_DELAY_MS, self._on_watermark_due)

    def _on_watermark_due(self) -> None:
        self._watermark_armed = False
        if self.watermarks:
            self.finish()

    def _arm_deadline(self, deadline_ms: int) -> None:
        self._deadline_armed_ms = deadline_ms
        self._timers.call_at(deadline_ms, lambda: self._on_deadline(deadline_ms))

    def _on_deadline(self, armed_ms: int) -> None:
        if self._deadline_armed_ms != armed_ms:
            return
        self._deadline_armed_ms = None
        parked = self._parked
        if parked is None:
            return
        if parked.deadline_ms <= self._clock.monotonic_ms():
            self.finish()
        else:
            self._arm_deadline(parked.deadline_ms)
