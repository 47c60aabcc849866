"""Transactions under faults: producers that crash and come back twice, messages late, lost and doubled, failovers, and
a wall clock that jumps.

One seed is one history: producers of old and new clients, the partitions that they write to, and one coordinator whose
log loses what was not committed when it fails over. After each event the machine checks itself. Over the whole history:
a producer id and epoch belong to one producer, they never go back, states follow each other as they may, and no
transaction outlives its time-out. Then the faults stop, and within a bound: every request is answered; every record is
committed or aborted; all records of a transaction went the same way, the one that its producer was told.

More seeds: `SIM_SEEDS=5000 pytest tests/sim/test_transactions.py`. One seed again: `SIM_FIRST_SEED=1234 SIM_SEEDS=1`.
"""

import heapq
import itertools
import os
from random import Random
from typing import Any

import pytest
from machine_driver import WALL_MS, Entry, MachineDriver
from txn_world import Partition, Produce, Producer

from barnabas.errors import ErrorCode
from barnabas.machines.coordinator import ApplyContext
from barnabas.machines.txn import commands
from barnabas.machines.txn.metadata import MAX_EPOCH, TransactionMetadata
from barnabas.machines.txn.settings import TransactionSettings
from barnabas.machines.txn.shard import TransactionShard
from barnabas.machines.txn.state import AT_REST, PREPARED, TransactionLogState
from barnabas.types import TopicPartition

SEEDS = int(os.environ.get("SIM_SEEDS", "150"))
FIRST_SEED = int(os.environ.get("SIM_FIRST_SEED", "0"))
EVENTS_WITH_FAULTS = 300
CALM_MS = 300_000
RETRY_MS = 1000
DAY_MS = 86_400_000
NO_IDS_MS = 2000
"""An abort may have to wait for a producer id."""
SETTINGS = TransactionSettings(expiry_check_interval_ms=10**9)
RETRIABLE = {ErrorCode.CONCURRENT_TRANSACTIONS, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS}
VALID_PREVIOUS = {
    TransactionLogState.EMPTY: AT_REST,
    TransactionLogState.ONGOING: AT_REST | {TransactionLogState.ONGOING},
    TransactionLogState.PREPARE_COMMIT: {TransactionLogState.ONGOING},
    TransactionLogState.PREPARE_ABORT: AT_REST | {TransactionLogState.ONGOING},
    TransactionLogState.COMPLETE_COMMIT: {TransactionLogState.PREPARE_COMMIT},
    TransactionLogState.COMPLETE_ABORT: {TransactionLogState.PREPARE_ABORT},
}


class Simulation:
    def __init__(self, seed: int) -> None:
        self.random = random = Random(seed)
        self.numbers = itertools.count()
        self.ids = itertools.count(1000)
        self.coordinator_epoch = 0
        self.queue: list[tuple[int, int, str, tuple[Any, ...]]] = []
        self.partitions = {TopicPartition("t", number): Partition() for number in range(random.randint(1, 3))}
        self.producers: list[Producer] = []
        self.waits: dict[Producer, tuple[int, Any]] = {}
        """Producer -> number and command of the request that it waits for."""
        self.owners: dict[tuple[int, int], str] = {}
        self.held: list[tuple[int, str, tuple[Any, ...]]] = []
        """(log end that must be committed first, event, its subject)"""
        self.committed = 0
        self.checked = 0
        self.latest: dict[str, TransactionMetadata] = {}
        self.began_ms: dict[str, int] = {}
        """When the transaction that runs began, or was found in the log; by monotonic time."""
        self.with_faults = True
        self.driver = MachineDriver(self.make_machine)
        self.transactional_ids = ["a", "b"][: random.randint(1, 2)]
        self.bumps = {name: random.random() < 0.7 for name in self.transactional_ids}
        for name in self.transactional_ids:
            if random.random() < 0.3:
                self.begin_near_the_last_epoch(name)
            self.start(name)
        self.driver.load()
        self.at(random.randrange(30_000), "failover")
        self.at(random.randrange(5000), "clock")

    def make_machine(self) -> TransactionShard:
        self.coordinator_epoch += 1
        return TransactionShard(self.coordinator_epoch, SETTINGS, self.take_producer_id)

    def take_producer_id(self) -> int | None:
        return None if self.with_faults and self.random.random() < 0.2 else next(self.ids)

    def begin_near_the_last_epoch(self, name: str) -> None:
        epoch = MAX_EPOCH - self.random.randint(2, 6)
        record = TransactionMetadata(name, next(self.ids), epoch, 5000, TransactionLogState.EMPTY, WALL_MS).record()
        self.driver.log.append(Entry(record.key, record.value, ApplyContext(len(self.driver.log), 0)))
        self.committed = len(self.driver.log)

    def at(self, delay_ms: int, what: str, *subject: Any) -> None:
        heapq.heappush(self.queue, (self.driver.now_ms + delay_ms, next(self.numbers), what, subject))

    def start(self, transactional_id: str) -> None:
        name = f"{transactional_id}#{len(self.producers)}"
        bumps, timeout_ms = self.bumps[transactional_id], self.random.choice((2000, 10_000))
        producer = Producer(name, transactional_id, bumps, timeout_ms, self.random, list(self.partitions))
        self.producers.append(producer)
        self.at(self.random.randrange(1000), "reply", producer, -1, None)

    # ---- the course of things

    def run(self) -> None:
        for _ in range(EVENTS_WITH_FAULTS):
            self.step()
        self.with_faults = False
        for producer in self.producers:
            producer.retires = True
        end_ms = self.driver.now_ms + CALM_MS
        while self.driver.now_ms < end_ms and not self.is_settled():
            self.step()
        assert self.is_settled(), (self.waits, self.latest, [each.open for each in self.partitions.values()])
        self.check_outcomes()

    def step(self) -> None:
        time_ms, _, what, subject = heapq.heappop(self.queue)
        self.driver.advance_to(time_ms)
        self.hold()  # what a timer has set off is lost as well if a failover comes now
        getattr(self, f"on_{what}")(*subject)
        self.hold()
        if len(self.driver.log) > self.checked:
            self.at(self.random.randrange(1, 60), "commit")
        self.check_log()
        self.release()

    def hold(self) -> None:
        """What the coordinator has answered and asked for since the last time waits for its records to be committed."""
        log_end = len(self.driver.log)
        for token, reply in self.driver.answers:
            self.held.append((log_end, "answered", (token, reply)))
        for request in self.driver.requests:
            self.held.append((log_end, "markers", (request, request.partitions)))
        self.driver.answers.clear()
        self.driver.requests.clear()

    def release(self) -> None:
        while self.held and self.held[0][0] <= self.committed:
            _, what, subject = self.held.pop(0)
            getattr(self, f"on_{what}")(*subject)

    def is_settled(self) -> bool:
        states = [each.state for each in self.latest.values()]
        return (
            not self.waits
            and all(state in AT_REST for state in states)
            and not any(each.open for each in self.partitions.values())
            and not any(what in ("append", "deliver") for _, _, what, _ in self.queue)
        )

    def delay_ms(self, bumps: bool) -> int:
        """Only the newer clients can stand requests that come after the client has given them up."""
        if self.with_faults and bumps and self.random.random() < 0.1:
            return self.random.randrange(20_000)
        return self.random.randrange(1, RETRY_MS // 3)

    def is_lost(self) -> bool:
        return self.with_faults and self.random.random() < 0.05

    # ---- producers

    def on_reply(self, producer: Producer, number: int, reply: Any) -> None:
        if producer.is_dead or (number >= 0 and self.waits.get(producer, (None,))[0] != number):
            return
        if _error(reply) in RETRIABLE:
            return  # asks again soon
        self.waits.pop(producer, None)
        before = producer.producer_id, producer.epoch
        try:
            command = producer.life.send(reply)
        except StopIteration:
            producer.is_dead = True
        self.check_owner(producer, before)
        if producer.is_dead:
            if self.with_faults:
                self.start(producer.transactional_id)
            return
        self.waits[producer] = next(self.numbers), command
        self.on_send(producer, self.waits[producer][0])
        if self.with_faults and self.random.random() < 0.03:
            self.crash(producer)

    def crash(self, producer: Producer) -> None:
        """Or only seems to: a second producer begins while the first goes on."""
        if self.random.random() < 0.5:
            producer.is_dead = True
            self.waits.pop(producer, None)
        self.start(producer.transactional_id)

    def on_send(self, producer: Producer, number: int) -> None:
        if self.waits.get(producer, (None,))[0] != number:
            return
        if not self.is_lost():
            self.at(self.delay_ms(producer.bumps), "deliver", producer, number, self.waits[producer][1])
        self.at(RETRY_MS, "send", producer, number)

    def on_deliver(self, producer: Producer, number: int, command: Any) -> None:
        if not isinstance(command, Produce):
            self.driver.submit(command, (producer, number, next(self.numbers), None))
            return
        transaction, leader = command.transaction, self.partitions[command.partition]
        if not command.bumps and transaction.producer_id in leader.open:
            self.on_append(producer, number, command)
            return
        # The leader of the partition asks the coordinator first (KIP-890): adds it, or verifies that it was added.
        add = commands.AddPartitionsToTxn(
            producer.transactional_id,
            transaction.producer_id,
            transaction.epoch,
            (command.partition,),
            5 if command.bumps else 4,
            verify_only=not command.bumps,
        )
        self.driver.submit(add, (producer, number, next(self.numbers), command))

    def on_answered(self, token: Any, reply: Any) -> None:
        producer, number, _, produce = token
        if produce is None:
            self.answer(producer, number, reply)
        elif _error(reply) is ErrorCode.NONE:
            self.at(self.delay_ms(producer.bumps), "append", producer, number, produce)
        else:
            self.answer(producer, number, _error(reply))

    def on_append(self, producer: Producer, number: int, produce: Produce) -> None:
        self.answer(producer, number, self.partitions[produce.partition].append(produce))

    def answer(self, producer: Producer, number: int, reply: Any) -> None:
        if not self.is_lost():
            self.at(self.delay_ms(producer.bumps), "reply", producer, number, reply)

    # ---- the coordinator

    def on_markers(self, request: commands.SendMarkers, partitions: tuple[TopicPartition, ...]) -> None:
        for partition in partitions:
            self.at(self.delay_ms(self.bumps[request.transactional_id]), "mark", request, partition)

    def on_mark(self, request: commands.SendMarkers, partition: TopicPartition) -> None:
        if self.is_lost():
            self.on_markers(request, (partition,))
        elif self.partitions[partition].mark(request):
            for _ in range(1 if self.random.random() < 0.8 else 2):
                self.at(self.delay_ms(True), "written", request, partition)

    def on_written(self, request: commands.SendMarkers, partition: TopicPartition) -> None:
        token = object()
        self.driver.submit(commands.MarkersWritten(request, (partition,)), token)
        del self.driver.asked[token]

    def on_commit(self) -> None:
        self.committed = len(self.driver.log)

    def on_failover(self) -> None:
        if self.with_faults:
            del self.driver.log[self.committed :]
            self.held.clear()
            self.checked, self.latest = 0, {}
            self.driver.load()
            self.at(self.random.randrange(30_000), "failover")

    def on_clock(self) -> None:
        """Somebody sets the wall clock, by up to a day."""
        if self.with_faults:
            self.driver.wall_ahead_ms = WALL_MS + self.random.randint(-DAY_MS, DAY_MS)
            self.at(self.random.randrange(5000), "clock")

    # ---- what must hold

    def check_owner(self, producer: Producer, before: tuple[int, int]) -> None:
        now = producer.producer_id, producer.epoch
        if now != before:
            assert self.owners.setdefault(now, producer.name) == producer.name, f"{now} of two producers"

    def check_log(self) -> None:
        for entry in self.driver.log[self.checked :]:
            assert isinstance(entry, Entry) and entry.value is not None
            name = entry.key.transactional_id
            metadata, previous = TransactionMetadata.of(name, entry.value), self.latest.get(name)
            if previous is not None:
                assert previous.state in VALID_PREVIOUS[metadata.state], (previous, metadata)
                rotated = metadata.producer_id != previous.producer_id
                assert not rotated or metadata.producer_epoch == 0, (previous, metadata)
                assert rotated or metadata.producer_epoch >= previous.producer_epoch, (previous, metadata)
                if previous.state in PREPARED:
                    assert not metadata.partitions
                elif previous.state is TransactionLogState.ONGOING:
                    assert previous.partitions.items() <= metadata.partitions.items(), (previous, metadata)
            if previous is None or previous.state is not TransactionLogState.ONGOING:
                self.began_ms[name] = self.driver.now_ms
            self.latest[name] = metadata
        self.checked = len(self.driver.log)
        for name, metadata in self.latest.items():
            if metadata.state is TransactionLogState.ONGOING:
                age_ms = self.driver.now_ms - self.began_ms[name]
                assert age_ms <= metadata.timeout_ms + NO_IDS_MS, (metadata, age_ms)

    def check_outcomes(self) -> None:
        for producer in self.producers:
            for transaction in producer.transactions:
                outcomes = sorted({str(each.outcome) for each in transaction.written})
                assert len(outcomes) <= 1, (transaction, outcomes)
                if outcomes and transaction.told is not None:
                    assert outcomes == [transaction.told], (transaction, outcomes)
                elif outcomes:
                    assert outcomes == ["abort"] or transaction.asked == "commit", (transaction, outcomes)


def _error(reply: Any) -> ErrorCode:
    if reply is None:
        return ErrorCode.NONE
    if isinstance(reply, ErrorCode):
        return reply
    if hasattr(reply, "topic_results"):
        return ErrorCode(reply.topic_results[0].results_by_partition[0].partition_error_code)
    return ErrorCode(reply.error_code)


@pytest.mark.parametrize("seed", range(FIRST_SEED, FIRST_SEED + SEEDS))
def test_all_or_nothing(seed: int) -> None:
    Simulation(seed).run()
