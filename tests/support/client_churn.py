"""Our own consumers as threads of one process that come, go, freeze and die; and a ledger of what they did."""

from __future__ import annotations

import itertools
import random
import threading
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, NamedTuple

from barnabas import Consumer
from barnabas.client.consumer.hooks import RebalanceListener
from barnabas.errors import KafkaError
from barnabas.types import TopicPartition


class Tenure(NamedTuple):
    """Who had a partition in which generations, the last one included."""

    partition: int
    first: int
    last: int
    member: str


class Ledger:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self.read: dict[int, set[int]] = defaultdict(set)
        self.tenures: list[Tenure] = []
        self.faults: list[str] = []

    def on_read(self, partition: int, offset: int) -> None:
        with self._lock:
            self.read[partition].add(offset)

    def on_end(self, tenure: Tenure) -> None:
        with self._lock:
            self.tenures.append(tenure)

    def on_fault(self, text: str) -> None:
        with self._lock:
            self.faults.append(text)

    def check(self) -> None:
        assert not self.faults, self.faults
        for one, other in itertools.pairwise(sorted(self.tenures)):
            if one.partition == other.partition and one.member != other.member:
                assert one.last < other.first, f"two owners in one generation: {one} and {other}"


class ChurnMember(RebalanceListener):
    """Reads and commits, by itself or automatically, until it is told to leave."""

    def __init__(
        self, bootstrap: str, group: str, topic: str, name: str, ledger: Ledger, chance: random.Random, **options: Any
    ) -> None:
        self.name = name
        self._ledger = ledger
        self._chance = chance
        self._commits_itself = chance.random() < 0.5
        self._since: dict[int, int] = {}
        self._next: dict[int, int] = {}
        self._generation = -1
        """The last one in which it heard of an assignment; one that it has only joined may be given out again."""
        self._ending = threading.Event()
        self._dies = False
        self._freeze_s = 0.0
        self.consumer = Consumer(
            bootstrap,
            client_id=name,
            group_id=group,
            auto_offset_reset="earliest",
            enable_auto_commit=not self._commits_itself,
            auto_commit_interval_ms=50,
            retry_backoff_ms=20,
            fetch_max_wait_ms=50,
            max_poll_records=chance.choice([1, 7, 500]),
            **options,
        )
        self.consumer.subscribe([topic], listener=self)
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    # from the test

    @property
    def owned(self) -> frozenset[int]:
        return frozenset(self._since)

    def freeze(self, seconds: float) -> None:
        self._freeze_s = seconds

    def leave(self) -> None:
        self._ending.set()

    def die(self) -> None:
        """As if the process were killed: nobody hears of it before the session ends."""
        self._dies = True
        self._ending.set()

    def join(self) -> None:
        self._thread.join(30)
        assert not self._thread.is_alive(), f"{self.name} does not end"

    # in its thread

    def _run(self) -> None:
        try:
            while not self._ending.is_set():
                self._turn()
            if self._dies:
                self._vanish()
                self._give_up(list(self._since))
            else:
                self.consumer.close(10)
        except Exception as error:
            self._ledger.on_fault(f"{self.name}: {error!r}")

    def _vanish(self) -> None:
        """What is left of a process that was killed: connections that end without a word."""
        core = self.consumer._core
        core._io.stop()
        for _, connection in core._runtime.cluster._connections.connected():
            connection._stream.channel.close()

    def _turn(self) -> None:
        if self._freeze_s:
            frozen, self._freeze_s = self._freeze_s, 0.0
            self._ending.wait(frozen)
        records = self.consumer.poll(0.05)
        for record in records:
            expected = self._next.get(record.partition, record.offset)
            if record.offset != expected:
                self._ledger.on_fault(f"{self.name}: offset {record.offset} of {record.partition}, not {expected}")
            self._next[record.partition] = record.offset + 1
            self._ledger.on_read(record.partition, record.offset)
        if self._commits_itself:
            self._commit()

    def _commit(self) -> None:
        try:
            if self._chance.random() < 0.3:
                self.consumer.commit_async()
            else:
                self.consumer.commit(timeout=1.0)
        except KafkaError:
            pass  # refused or late, which the next owner makes up for

    def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
        generation = self.consumer.group_metadata().generation_id
        if generation < 0:
            return  # thrown out just now: it will be told that they are lost
        self._generation = generation
        for _, number in partitions:
            if number in self._since:
                self._ledger.on_fault(f"{self.name}: {number} is assigned twice")
            self._since[number] = generation
            self._next.pop(number, None)

    def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
        if self._commits_itself:
            self._commit()
        if not self._ending.is_set():
            self._generation = max(self._generation, self.consumer.group_metadata().generation_id)
        self._give_up([number for _, number in partitions])

    def on_lost(self, partitions: Sequence[TopicPartition]) -> None:
        self._give_up([number for _, number in partitions])

    def _give_up(self, numbers: list[int]) -> None:
        for number in numbers:
            first = self._since.pop(number, None)
            if first is not None:
                self._ledger.on_end(Tenure(number, first, max(first, self._generation), self.name))


class CommittedWatch:
    """Looks at the group's offsets all the while: they never go back."""

    def __init__(self, bootstrap: str, group: str, topic: str, partitions: int, ledger: Ledger) -> None:
        self._consumer = Consumer(bootstrap, group_id=group, enable_auto_commit=False, retry_backoff_ms=20)
        self._places = [TopicPartition(topic, number) for number in range(partitions)]
        self._ledger = ledger
        self._ending = threading.Event()
        self.latest: dict[int, int] = {}
        self._thread = threading.Thread(target=self._run, name="watch", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        while not self._ending.wait(0.03):
            try:
                found = self._consumer.committed(self._places, timeout=1.0)
            except KafkaError:
                continue  # the broker is away
            for place, committed in found.items():
                before, now = self.latest.get(place.partition, 0), 0 if committed is None else committed.offset
                if now < before:
                    self._ledger.on_fault(f"the offset of {place} went back from {before} to {now}")
                self.latest[place.partition] = now

    def stop(self) -> None:
        self._ending.set()
        self._thread.join(30)
        self._consumer.close()
